"""Received messages: RocketMQ's golden record, read lazily and without trust."""

import asyncio
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.client.core.consumer_errors import AlreadyFinished
from gantrymq.client.messages.delivery import DEAD_LEVEL, Delivery
from gantrymq.client.messages.received import Received
from gantrymq.kernel import cut_records
from gantrymq.kernel.records import encode_records
from gantrymq.model import Queue
from gantrymq.protocol.compression import COMPRESSED, ZLIB
from gantrymq.protocol.ids import encode_host

GOLDEN = bytes.fromhex(
    "00000078daa320a73610a686000000000000000000000000000000050000000000001000000000000000018bcfe5"
    "68000a0000020000c3500000018bcfe56801c0a8000100002a9f0000000000000000000000000000000568656c6c"
    "6f01540017554e49515f4b4559014142430254414753015461674102"
)
QUEUE = Queue("T", "broker-a", 0)
V4, V6 = encode_host("10.0.0.2", 50000), encode_host("fe80::1", 50000)


def record(
    body: bytes = b"hello",
    properties: bytes = b"",
    *,
    sys_flag: int = 0,
    host: bytes = V4,
    offset: int = 0,
    topic: bytes = b"T",
) -> bytes:
    item = (topic, 0, offset, 0, sys_flag, 1_700_000_000_000, host, 2, 0, body, properties)
    return encode_records([item], 4096, 1_700_000_000_001, host)[0]


def first(data: bytes, queue: Queue = QUEUE) -> Received:
    cuts, bad = cut_records(data)
    assert bad is None
    return Received(data, cuts[0][1], cuts[0][2], queue)


def test_the_golden_record_is_read() -> None:
    """
    All fields of RocketMQ's golden record are read.
    """
    message = first(GOLDEN)

    assert message.body == b"hello"
    assert message.topic == message.stored_topic == "T"
    assert message.tags == "TagA"
    assert message.msg_id == "ABC"
    assert message.offset == 5
    assert message.offset_msg_id == "C0A8000100002A9F0000000000001000"
    assert message.born_ms == 1_700_000_000_000
    assert message.store_ms == 1_700_000_000_001
    assert message.born_time.isoformat() == "2023-11-14T22:13:20+00:00"
    assert message.born_host == ("10.0.0.2", 50000)
    assert message.store_host == ("192.168.0.1", 10911)
    assert message.reconsume_times == 0
    assert message.size == len(GOLDEN)


def test_a_message_without_a_unique_key_is_named_by_its_place() -> None:
    """
    A message without UNIQ_KEY has its offset message id as its id.
    """
    message = first(record())

    assert message.msg_id == message.offset_msg_id


def test_records_with_ipv6_hosts_are_read() -> None:
    """
    A record with IPv6 hosts is read.
    """
    message = first(record(b"six", b"KEYS\x01a b\x02", host=V6))

    assert message.body == b"six"
    assert message.keys == ("a", "b")
    assert message.store_host == ("fe80::1", 50000)


def test_a_compressed_body_is_unpacked() -> None:
    """
    `body` is decompressed; `stored_body` is as it was stored.
    """
    packed = zlib.compress(b"x" * 5000)
    message = first(record(packed, sys_flag=COMPRESSED | ZLIB))

    assert message.body == b"x" * 5000
    assert message.stored_body == packed


def test_a_retried_message_names_the_topic_it_was_sent_to() -> None:
    """
    A message of a retry topic names its original topic.
    """
    data = record(properties=b"RETRY_TOPIC\x01orders\x02", topic=b"%RETRY%g")

    assert first(data, Queue("%RETRY%g", "broker-a", 0)).topic == "orders"


@given(cut=st.integers(1, 359))
def test_records_before_the_damage_are_kept(cut: int) -> None:
    """
    Records before a cut are returned, together with an error for the cut one.
    """
    data = b"".join(record(b"12345", offset=number) for number in range(4))[:360]

    cuts, bad = cut_records(data[:cut])

    size = len(record(b"12345"))
    assert [head.queue_offset for _, _, head in cuts] == list(range(cut // size))
    assert (bad is None) == (cut % size == 0)
    assert bad is None or isinstance(bad, ProtocolError)


class Keeper:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def acked(self, message: Delivery) -> None:
        self.seen.append("ack")

    async def sent_back(self, message: Delivery, delay_level: int) -> None:
        self.seen.append(delay_level)


def delivery(keeper: Keeper) -> Delivery:
    cuts, _ = cut_records(GOLDEN)
    return Delivery(GOLDEN, cuts[0][1], cuts[0][2], QUEUE, keeper)


@pytest.mark.parametrize(
    "verb, seen", [("ack", "ack"), ("retry", 0), ("dead", DEAD_LEVEL)], ids=["ack", "retry", "dead"]
)
def test_a_message_is_finished_by_one_verb_once(verb: str, seen: object) -> None:
    """
    A delivery is finished by ack, retry or dead exactly once.
    """
    keeper = Keeper()
    message = delivery(keeper)

    asyncio.run(getattr(message, verb)())

    assert keeper.seen == [seen]
    assert message.finished == verb
    for second in ("ack", "retry", "dead"):
        with pytest.raises(AlreadyFinished, match=verb):
            asyncio.run(getattr(message, second)())


def test_a_message_that_was_taken_back_cannot_be_finished() -> None:
    """
    A delivery whose time is over cannot be finished.
    """
    message = delivery(Keeper())
    message.expire()

    with pytest.raises(AlreadyFinished, match="its time was over"):
        asyncio.run(message.ack())


def test_one_more_try_counts_and_can_be_finished_by_itself() -> None:
    """
    The next delivery of a message counts one more retry, and can be finished by itself.
    """
    keeper = Keeper()
    message = delivery(keeper)
    message.expire()

    again = message.again()
    asyncio.run(again.retry(delay_level=5))

    assert again.reconsume_times == 1
    assert again.again().reconsume_times == 2
    assert again.body == b"hello"
    assert keeper.seen == [5]
