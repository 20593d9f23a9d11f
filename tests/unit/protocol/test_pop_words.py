"""The words of popping: handles, offset lists, bit sets, names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol import fastjson
from gantrymq.protocol.pop import (
    OFFSETS_SPAN_MAX,
    Assignments,
    BatchAck,
    Handle,
    Portion,
    bit_set,
    offset_info,
    order_info,
    parse_info,
    pop_retry_topic,
    read_batch_ack,
    real_topic,
    retry_flag,
    start_info,
)

HANDLE = "5 1700000000123 60000 3 1 broker-a 2 7"


def test_a_handle_reads_as_it_is_written() -> None:
    """
    Eight words; seven are enough, then the message is the first one.
    """
    handle = Handle.parse(HANDLE)

    assert HANDLE == str(handle)
    assert (5, 7, "broker-a", False) == (
        handle.start, handle.offset, handle.broker_name, handle.is_ordered,
    )  # fmt: skip
    assert 5 == Handle.parse(HANDLE.rpartition(" ")[0]).offset
    assert Handle.parse("0 1 2 999 0 b 0 0").is_ordered


@pytest.mark.parametrize("text", ["", "1 2 3", "a b c d e f g h", "1 2 3 4 0 b x 1"])
def test_what_is_no_handle_is_refused(text: str) -> None:
    """
    With words, not with an accident.
    """
    with pytest.raises(ProtocolError, match="no handle"):
        Handle.parse(text)


def test_retry_topics_have_two_kinds_of_names() -> None:
    """
    Told apart by their names, and found again from a handle's flag.
    """
    old, new = pop_retry_topic("g", "t"), pop_retry_topic("g", "t", True)

    assert ("%RETRY%g_t", "%RETRY%g+t") == (old, new)
    assert ["0", "1", "2"] == [retry_flag(name) for name in ("t", old, new)]
    assert ["t", old, new] == [real_topic("t", "g", flag) for flag in "012"]
    with pytest.raises(ProtocolError, match="flag"):
        real_topic("t", "g", "3")


def test_offset_lists_name_each_queue_once() -> None:
    """
    In RocketMQ's grammar: entries by semicolon, words by one space.
    """
    portions = [Portion("0", 1, 10, [10, 12]), Portion("1", 0, 3, [3])]

    assert "0 1 10;1 0 3" == start_info(portions)
    assert "0 1 10,12;1 0 3" == offset_info(portions)
    assert {("0", "1"): "10", ("1", "0"): "3"} == parse_info(start_info(portions))
    assert {} == parse_info(None) == parse_info("")
    with pytest.raises(ProtocolError):
        parse_info("0 1")


def test_deliveries_before_are_counted_for_each_message_and_for_the_queue() -> None:
    """
    The queue's number is the smallest of its messages', for clients that look only there.
    """
    assert "0 2 0" == order_info("0", 2, {}, [4, 5])
    assert "0 qo2%4 1;0 2 0" == order_info("0", 2, {4: 1}, [4, 5])
    assert "0 qo2%4 2;0 qo2%5 1;0 2 1" == order_info("0", 2, {4: 2, 5: 1}, [4, 5])


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(0, 1 << 40))
def test_a_bit_set_gives_back_its_offsets(distances: set[int], start: int) -> None:
    """
    Java's form: little-endian bits, base64.
    """
    offsets = sorted(start + distance for distance in distances)
    ack = BatchAck(b=bit_set(offsets, start), c="g", pt=1, q=0, rq=0, so=start, t="t")

    assert offsets == ack.offsets


def test_a_bit_set_is_written_as_java_writes_it() -> None:
    """
    Bits 0, 1 and 9: bytes 3 and 2.
    """
    assert "AwI=" == bit_set([7, 8, 16], 7)


def test_a_bit_set_far_wider_than_any_pop_is_refused() -> None:
    """
    Reading one takes time that grows with its width, and a request may bring many.
    """

    def offsets(last: int) -> list[int]:
        return BatchAck(b=bit_set([0, last], 0), c="g", pt=1, q=0, rq=0, so=5, t="t").offsets

    assert [5, 5 + OFFSETS_SPAN_MAX - 1] == offsets(OFFSETS_SPAN_MAX - 1)
    with pytest.raises(ProtocolError, match="too wide"):
        offsets(OFFSETS_SPAN_MAX)


def test_batches_may_have_long_names() -> None:
    """
    fastjson takes either; unreadable ones are refused.
    """
    long = (
        b'{"acks":[{"bitSet":"AQ==","consumerGroup":"g","invisibleTime":9,"popTime":8,"queueId":1,'
        b'"retry":"0","reviveQueueId":2,"startOffset":3,"topic":"t"}],"brokerName":"b"}'
    )

    (ack,) = read_batch_ack(long)

    assert ("g", "t", [3], 8) == (ack.c, ack.t, ack.offsets, ack.pt)
    assert [] == read_batch_ack(b"") == read_batch_ack(b"{}")
    with pytest.raises(ProtocolError):
        read_batch_ack(b'{"acks":[{"c":"g"}]}')
    with pytest.raises(ProtocolError, match="bit set"):
        assert BatchAck(b="!", c="g", pt=1, q=0, rq=0, so=0, t="t").offsets


def test_no_assignment_is_not_an_empty_one() -> None:
    """
    The first keeps what a client has, the second takes it away.
    """
    assert b"{}" == fastjson.dumps(Assignments())
    empty = fastjson.dumps(Assignments(message_queue_assignments=[]))
    assert b'{"messageQueueAssignments":[]}' == empty
