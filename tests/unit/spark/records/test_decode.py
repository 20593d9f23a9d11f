"""Stored records as Arrow columns, held against the record codec, record by record."""

import zlib
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel.records import RecordItem, encode_records
from gantrymq.model import Queue
from gantrymq.protocol.compression import ZLIB, decompress
from gantrymq.protocol.ids import encode_host, offset_msg_id
from gantrymq.protocol.record import COMPRESSED, I32_LEN, MAGIC_V1, decode_records
from gantrymq.spark.options.columns import COLUMNS, ddl
from gantrymq.spark.options.kafka_names import KAFKA_COLUMNS
from gantrymq.spark.records.decode import MAKERS, decode

QUEUE = Queue("orders", "broker-a", 2)
HOST, HOST_V6 = encode_host("10.1.2.3", 4567), encode_host("2001:db8::7", 80)
NOW_MS = 1_700_000_000_123
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

words = st.text(st.characters(blacklist_characters="\x01\x02", codec="utf-8"), max_size=8)
property_texts = st.lists(
    st.tuples(st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "a", ""]) | words, words), max_size=5
)
bodies = st.binary(max_size=40) | st.just(I32_LEN.pack(MAGIC_V1) * 2)


@st.composite
def items(draw: st.DrawFn) -> RecordItem:
    """A record as the store would write it, odd ones included."""
    body, sys_flag = draw(bodies), 0
    if draw(st.booleans()):
        body, sys_flag = zlib.compress(body), COMPRESSED | draw(st.sampled_from([0, ZLIB]))
    text = "\x02".join(f"{name}\x01{value}" for name, value in draw(property_texts))
    text += draw(st.sampled_from(["", "\x02", "\x02alone", "\x02\x02"]))
    raw = text.encode() + draw(st.sampled_from([b"", b"\xff\xfe"]))
    return (
        draw(st.sampled_from([b"orders", b"o" * 127, b"o" * 128, b"o" * 255])), 2,
        draw(st.integers(0, 2**40)), draw(st.integers(-5, 5)), sys_flag,
        draw(st.integers(0, NOW_MS)), draw(st.sampled_from([HOST, HOST_V6])),
        draw(st.integers(0, 9)), draw(st.integers(0, 2**40)), body, raw,
    )  # fmt: skip


def encoded(found: list[RecordItem], store_host: bytes = HOST) -> bytes:
    return encode_records(found, 10_000, NOW_MS, store_host)[0]


def simple(number: int, body: bytes, properties: bytes = b"") -> RecordItem:
    return (b"orders", 2, number, 0, 0, NOW_MS, HOST, 0, 0, body, properties)


def host_text(host: tuple[str, int]) -> str:
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def time_of(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def expected_rows(data: bytes) -> list[dict[str, object]]:
    """The same records the plain way."""
    rows = []
    for m in decode_records(data):
        place = offset_msg_id(encode_host(*m.store_host), m.physical_offset)
        rows.append(
            {
                "topic": "orders", "brokerName": "broker-a", "queueId": m.queue_id,
                "queueOffset": m.queue_offset, "commitLogOffset": m.physical_offset,
                "storeSize": m.size, "msgId": m.properties.get("UNIQ_KEY", place),
                "offsetMsgId": place, "keys": m.properties.get("KEYS"),
                "tags": m.properties.get("TAGS"), "properties": m.properties,
                "body": decompress(m.body, m.sys_flag), "flag": m.flag, "sysFlag": m.sys_flag,
                "reconsumeTimes": m.reconsume_times, "bornTimestamp": time_of(m.born_ms),
                "bornHost": host_text(m.born_host), "storeTimestamp": time_of(m.store_ms),
                "storeHost": host_text(m.store_host),
                "preparedTransactionOffset": m.prepared_offset, "bodyCRC": m.body_crc,
            }
        )  # fmt: skip
    return rows


def rows_of(batch: pa.RecordBatch) -> list[dict[str, object]]:
    """An Arrow batch as dictionaries; a name that came twice in a map would be seen."""
    rows = batch.to_pylist()
    for row in rows:
        if "properties" in row:
            assert len(row["properties"]) == len(dict(row["properties"]))
            row["properties"] = dict(row["properties"])
    return rows


@given(st.lists(items(), min_size=1, max_size=20), st.sampled_from([HOST, HOST_V6]))
def test_columns_hold_what_the_records_say(found: list[RecordItem], store_host: bytes) -> None:
    """Column by column or record by record: the same values, for every kind of record."""
    data = encoded(found, store_host)

    assert rows_of(decode(data, QUEUE, tuple(COLUMNS))) == expected_rows(data)


@pytest.mark.parametrize("name", COLUMNS)
def test_any_column_can_be_had_alone(name: str) -> None:
    """What was not chosen is not needed."""
    data = encoded([simple(number, b"body %d" % number, b"TAGS\x01t") for number in range(3)])

    assert rows_of(decode(data, QUEUE, [name])) == [
        {name: row[name]} for row in expected_rows(data)
    ]


def test_columns_have_the_types_spark_expects() -> None:
    """Spark compares the schema of a batch with its own, and accepts no near miss."""
    batch = decode(encoded([simple(0, b"x")]), QUEUE, tuple(COLUMNS))
    expected = to_arrow_schema(_parse_datatype(ddl(COLUMNS)), timezone="UTC")

    assert list(MAKERS) == list(COLUMNS | KAFKA_COLUMNS)
    assert expected.equals(batch.schema)


def _parse_datatype(text: str) -> object:
    """A DDL text as Spark's type, without starting Spark."""
    from pyspark.sql.types import StructType

    kinds = {
        "string": "string", "int": "integer", "bigint": "long", "binary": "binary",
        "timestamp": "timestamp",
    }  # fmt: skip
    found = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    fields = [part.split(" ") for part in text.split(", ")]
    return StructType.fromJson(
        {
            "fields": [
                {"name": name, "type": kinds.get(kind, found), "nullable": True, "metadata": {}}
                for name, kind in fields
            ]
        }
    )


def test_a_body_that_looks_like_a_record_does_not_confuse_the_reader() -> None:
    """A message may carry other records, for instance a dead letter archive."""
    inner = encoded([simple(7, b"inner")])
    data = encoded([simple(0, inner), simple(1, b"x" + inner + inner), simple(2, inner[:50])])

    assert [row["queueOffset"] for row in rows_of(decode(data, QUEUE, ["queueOffset"]))] == [
        0,
        1,
        2,
    ]


def test_a_time_no_calendar_has_is_cut() -> None:
    """Producers choose the time of birth; one that is absurd must not stop a query."""
    item = list(simple(0, b"x"))
    item[5] = 2**62
    (row,) = rows_of(decode(encoded([tuple(item)]), QUEUE, ["bornTimestamp"]))  # type: ignore[list-item]

    assert row["bornTimestamp"] == datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)


@pytest.mark.parametrize("cut", [1, 3, 60, 90])
def test_bytes_that_are_no_records_are_refused(cut: int) -> None:
    """Rows are never made up from a damaged answer."""
    data = encoded([simple(0, b"body"), simple(1, b"body")])
    for broken in (data[:-cut], data[cut:]):
        with pytest.raises(ProtocolError):
            decode(broken, QUEUE, ["body"])


def test_parts_of_impossible_sizes_are_refused() -> None:
    """A record whose inner lengths lead out of it is an error that names the message."""
    data = bytearray(encoded([simple(0, b"body"), simple(1, b"body")]))
    data[-10:-4] = b"\xff" * 6
    with pytest.raises(ProtocolError):
        decode(bytes(data), QUEUE, ["tags"])


def test_a_packed_body_that_is_damaged_names_its_message() -> None:
    """The error says where to look."""
    item = list(simple(12, b"not packed"))
    item[4] = COMPRESSED
    with pytest.raises(ProtocolError, match=r"message 12 of .*orders"):
        decode(encoded([tuple(item)]), QUEUE, ["body"])  # type: ignore[list-item]
