"""The plain way from store files to Spark: a tuple a message. Only to be measured against."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from gantrymq import kernel  # a layout of bytes can be sent to workers only by its module
from gantrymq.protocol import record
from gantrymq.protocol.ids import encode_host, offset_msg_id
from gantrymq.spark.options.columns import COLUMNS, ddl

RUN_BYTES_MAX = 4 << 20
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
        queues = Path(self._store, "consumequeue", self._topic).iterdir()
        return [InputPartition(number) for number in sorted(int(queue.name) for queue in queues)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        make = _all if self._all_columns else _four
        for data in _records(Path(self._store), self._topic, partition.value):
            yield make(data)


def _records(store: Path, topic: str, queue_id: int) -> Iterator[bytes]:
    """The records of a queue in their order; neighbours in the log are read at once."""
    logs = {int(path.name): path for path in (store / "commitlog").iterdir()}
    file_bytes = logs[min(logs)].stat().st_size
    files = {base: os.open(path, os.O_RDONLY) for base, path in logs.items()}
    try:
        for path in sorted((store / "consumequeue" / topic / str(queue_id)).iterdir()):
            for position, size in _runs(path.read_bytes(), file_bytes):
                base = position // file_bytes * file_bytes
                data = os.pread(files[base], size, position - base)
                walk = kernel.walk_records(data, position, size + record.BLANK_BYTES, False)
                for _, _, _, at, length, *_ in walk.records:
                    yield data[at - position : at - position + length]
    finally:
        for file in files.values():
            os.close(file)


def _runs(entries: bytes, file_bytes: int) -> Iterator[tuple[int, int]]:
    """Stretches of neighbours within one file of the log: where each begins, and its size."""
    start = end = 0
    for position, size, _ in kernel.ENTRY.iter_unpack(entries):
        if size == 0:
            break
        if position != end or position % file_bytes == 0 or end - start >= RUN_BYTES_MAX:
            if end > start:
                yield start, end - start
            start = position
        end = position + size
    if end > start:
        yield start, end - start


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
