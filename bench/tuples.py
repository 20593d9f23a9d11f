"""The plain way from store files to Spark: a tuple a message. Only to be measured against."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from gantrymq.protocol import record
from gantrymq.protocol.ids import encode_host, offset_msg_id
from gantrymq.spark.options.columns import COLUMNS, ddl
from gantrymq.store.reader import StoreReader

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BROKER = "broker-a"


class TupleSource(DataSource):  # type: ignore[misc, unused-ignore]
    """`format("tuples")`, with the options via, storePath, topic and columns."""

    @classmethod
    def name(cls) -> str:
        return "tuples"

    def _columns(self) -> list[str]:
        text = self.options.get("columns")
        return text.split(",") if text else list(COLUMNS)

    def schema(self) -> str:
        return ddl({name: COLUMNS[name] for name in self._columns()})

    def reader(self, schema: Any) -> DataSourceReader:
        return TupleReader(
            self.options["storepath"], self.options["topic"], all_columns=len(self._columns()) > 4
        )


class TupleReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    def __init__(self, store: str, topic: str, *, all_columns: bool) -> None:
        self._store, self._topic, self._all_columns = store, topic, all_columns

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in StoreReader(self._store).queues(self._topic)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        make = _all if self._all_columns else _four
        for each in StoreReader(self._store).records(self._topic, partition.value):
            yield make(each.data)


def _four(data: bytes) -> tuple[Any, ...]:
    """queueId, queueOffset, storeTimestamp, body, by the shortest way there is."""
    head, size = record.HEAD.unpack_from(data), record.HEAD.size
    body = data[size : size + head[14]]
    return head[3], head[5], _time(head[10]), body


def _all(data: bytes) -> tuple[Any, ...]:
    m = record.decode_record(data)
    place = offset_msg_id(encode_host(*m.store_host), m.physical_offset)
    words = m.properties
    return (
        m.topic, BROKER, m.queue_id, m.queue_offset, m.physical_offset, m.size,
        words.get("UNIQ_KEY", place), place, words.get("KEYS"), words.get("TAGS"), words, m.body,
        m.flag, m.sys_flag, m.reconsume_times, _time(m.born_ms), _host(m.born_host),
        _time(m.store_ms), _host(m.store_host), m.prepared_offset, m.body_crc,
    )  # fmt: skip


def _time(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def _host(host: tuple[str, int]) -> str:
    return f"{host[0]}:{host[1]}"
