"""Trace records: the bytes that the encoders of RocketMQ 4.9.8 and 5.3.3 yield."""

import pytest

from gantrymq.protocol import trace
from gantrymq.protocol.trace import (
    ConsumeReturnType,
    EndTransaction,
    MessageType,
    Pub,
    Recall,
    Record,
    SubAfter,
    SubBefore,
)

ONE, TWO = "0A000001000018B4AAC2000000000001", "0A000001000018B4AAC2000000000002"
REQUEST, PLACE = "0A000001000018B4AAC2000000000099", "7F00000100002A9F0000000000000000"
AT_MS = 1700000000123
WHO = {"at_ms": AT_MS, "region": "DefaultRegion", "group": "shop"}
SENT = {
    **WHO,
    "topic": "orders",
    "store_host": "127.0.0.1:10911",
    "body_bytes": 11,
    "cost_ms": 7,
    "offset_msg_id": PLACE,
}

GOLDEN: dict[str, tuple[bytes, list[Record]]] = {
    "sent": (
        b"Pub\x011700000000123\x01DefaultRegion\x01shop\x01orders\x01"
        b"0A000001000018B4AAC2000000000001\x01paid\x01order-1 gr\xc3\xbcn\x01127.0.0.1:10911\x0111"
        b"\x017\x010\x017F00000100002A9F0000000000000000\x01true\x02",
        [Pub(msg_id=ONE, tags="paid", keys="order-1 grün", **SENT)],
    ),
    "sent without tag and keys": (
        b"Pub\x011700000000123\x01DefaultRegion\x01shop\x01orders\x01"
        b"0A000001000018B4AAC2000000000001\x01null\x01null\x01127.0.0.1:10911\x0111\x017\x010\x01"
        b"7F00000100002A9F0000000000000000\x01true\x02",
        [Pub(msg_id=ONE, **SENT)],
    ),
    "a delayed one, not stored as safely as asked for": (
        b"Pub\x011700000000123\x01DefaultRegion\x01shop\x01orders\x01"
        b"0A000001000018B4AAC2000000000001\x01null\x01null\x01127.0.0.1:10911\x0111\x017\x013\x01"
        b"7F00000100002A9F0000000000000000\x01false\x02",
        [Pub(msg_id=ONE, message_type=MessageType.DELAY, ok=False, **SENT)],
    ),
    "handed out": (
        b"SubBefore\x011700000000123\x01DefaultRegion\x01shop\x01"
        b"0A000001000018B4AAC2000000000099\x010A000001000018B4AAC2000000000001\x012\x01order-1\x02"
        b"SubBefore\x011700000000123\x01DefaultRegion\x01shop\x01"
        b"0A000001000018B4AAC2000000000099\x010A000001000018B4AAC2000000000002\x012\x01null\x02",
        [
            SubBefore(msg_id=ONE, request_id=REQUEST, retry_times=2, keys="order-1", **WHO),
            SubBefore(msg_id=TWO, request_id=REQUEST, retry_times=2, **WHO),
        ],
    ),
    "finished": (
        b"SubAfter\x010A000001000018B4AAC2000000000099\x010A000001000018B4AAC2000000000001\x017\x01"
        b"false\x01order-1\x014\x011700000000123\x01shop\x02"
        b"SubAfter\x010A000001000018B4AAC2000000000099\x010A000001000018B4AAC2000000000002\x017\x01"
        b"false\x01null\x014\x011700000000123\x01shop\x02",
        [
            SubAfter(
                msg_id=msg_id, request_id=REQUEST, cost_ms=7, ok=False, keys=keys,
                outcome=ConsumeReturnType.FAILED, at_ms=AT_MS, group="shop",
            )
            for msg_id, keys in ((ONE, "order-1"), (TWO, ""))
        ],
    ),
    "a transaction": (
        b"EndTransaction\x011700000000123\x01DefaultRegion\x01shop\x01orders\x01"
        b"0A000001000018B4AAC2000000000001\x01paid\x01null\x01127.0.0.1:10911\x012\x01T1\x01"
        b"COMMIT_MESSAGE\x01true\x02",
        [
            EndTransaction(
                msg_id=ONE, topic="orders", tags="paid", store_host="127.0.0.1:10911",
                transaction_id="T1", state="COMMIT_MESSAGE", from_check=True, **WHO,
            )
        ],
    ),
    "called back": (
        b"Recall\x011700000000123\x01DefaultRegion\x01shop\x01orders\x01"
        b"0A000001000018B4AAC2000000000001\x01true\x02",
        [Recall(msg_id=ONE, topic="orders", **WHO)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GOLDEN)
def test_records_are_written_as_rocketmq_writes_them(case: str) -> None:
    """
    Byte for byte what TraceDataEncoder of 4.9.8 and 5.3.3 returned (Recall: 5.3.3 only).
    """
    golden, records = GOLDEN[case]

    assert golden == "".join(map(trace.encode, records)).encode()


@pytest.mark.parametrize("case", GOLDEN)
def test_records_of_rocketmq_are_read(case: str) -> None:
    """
    Everything a record says is understood, `null` as nothing.
    """
    golden, records = GOLDEN[case]

    assert trace.Decoded(records, 0) == trace.decode(golden)


def test_records_of_the_clouds_writers_lack_time_and_group() -> None:
    """
    5.3.3 with AccessChannel.CLOUD: the last two fields are not there.
    """
    golden = (
        b"SubAfter\x010A000001000018B4AAC2000000000099\x010A000001000018B4AAC2000000000001\x017\x01"
        b"true\x01order-1\x010\x01\x02"
    )
    wanted = SubAfter(msg_id=ONE, request_id=REQUEST, cost_ms=7, keys="order-1")

    assert trace.Decoded([wanted], 0) == trace.decode(golden)


@pytest.mark.parametrize(
    "tail, wanted",
    [
        ("\x01true", {"offset_msg_id": "", "ok": True}),
        (f"\x01{PLACE}\x01true\x0110.0.0.1", {"offset_msg_id": PLACE, "client_host": "10.0.0.1"}),
        (f"\x01{PLACE}\x01false\x0110.0.0.1\x01more", {"ok": False, "client_host": "10.0.0.1"}),
    ],
)
def test_older_and_newer_sent_records_are_read(tail: str, wanted: dict[str, object]) -> None:
    """
    The first writers knew no offset id, others added where they run: RocketMQ reads them all.
    """
    text = f"Pub\x01{AT_MS}\x01r\x01g\x01t\x01{ONE}\x01a\x01k\x01h\x011\x012\x010{tail}\x02"
    ((record,), unreadable) = trace.decode(text.encode())

    assert 0 == unreadable
    assert wanted == {name: getattr(record, name) for name in wanted}


@pytest.mark.parametrize(
    "damage", [b"Pub\x01x\x02", b"Pub\x02", b"Else\x011\x02", b"\xff\xfe\x02", b"SubAfter\x01a\x02"]
)
def test_what_cannot_be_read_is_counted_and_the_rest_kept(damage: bytes) -> None:
    """
    One bad record must not hide the good ones around it.
    """
    golden, records = GOLDEN["sent"]

    assert trace.Decoded(records * 2, 1) == trace.decode(golden + damage + golden)


def test_a_trace_message_is_found_by_ids_and_keys() -> None:
    """
    Ids first: what does not fit into the properties is a key, not an id.
    """
    records = GOLDEN["handed out"][1]

    assert [ONE, TWO, "order-1"] == trace.index_keys(records)


COUNT = trace.TraceCount(
    at_ms=AT_MS, group="shop", side="CONSUME", client_id="10.0.0.1@7", begun_ms=5, first=300,
    records=2, dropped=9, waiting=1, closed=True, met=3, members=("10.0.0.1@7", 'a\x01"b"'),
)  # fmt: skip


def test_a_writers_count_is_a_line_that_readers_of_records_pass_over() -> None:
    """
    RocketMQ's reader takes the kinds that it knows by name and no others; so does ours.
    """
    golden, records = GOLDEN["handed out"]
    line = trace.encode(COUNT).encode()
    body = golden + line

    assert (
        b"TraceCount\x011700000000123\x01shop\x01CONSUME\x0110.0.0.1@7\x015\x01300\x012\x019\x011"
        b'\x01true\x013\x01["10.0.0.1@7","a\\u0001\\"b\\""]\x02'
    ) == line
    assert trace.Decoded(records, 0) == trace.decode(body)
    assert [COUNT] == trace.decode_counts(body)
    assert [] == trace.decode_counts(golden) == trace.decode_counts(b"TraceCount\x01x\x02")
    assert [] == trace.decode_counts(line.replace(b'["', b"["))
    (old,) = trace.decode_counts(line.split(b"\x013\x01")[0] + b"\x02")
    assert (True, 0, ()) == (old.closed, old.met, old.members)
