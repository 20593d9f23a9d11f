"""From a message to bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import WrongValue
from gantrymq.client.core.errors import MessageRefused
from gantrymq.client.core.identity import MessageIds, month_bounds_ms
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.sending.send_request import (
    BinarySendFrames,
    SendFrames,
    check_topic,
    prepare,
    prepare_batch,
)
from gantrymq.kernel import cut_commands
from gantrymq.message_fields import RESERVED
from gantrymq.model import Message, NameRefused, Queue
from gantrymq.protocol import batch, compression, properties
from gantrymq.protocol.command import Command

NOW_MS = 1_700_000_000_000
OPTIONS = ProducerOptions()


class FixedClock:
    """A calendar that stands still until told otherwise."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


def ids(clock: FixedClock | None = None) -> MessageIds:
    return MessageIds("10.0.0.2", 4711, 0xABCD, clock or FixedClock())


def decoded(frame: bytes) -> Command:
    commands, used, error = cut_commands(bytearray(frame), 1 << 24, 2)
    assert (error, used, len(commands)) == (None, len(frame), 1)
    return commands[0]


TEXT = st.text(st.characters(blacklist_characters="\x01\x02", blacklist_categories=["Cs"]))


TAG = TEXT.map(str.strip).filter(lambda tag: "||" not in tag)
KEY = TEXT.map(lambda key: key.replace(" ", "_")).filter(bool)


@given(
    topic=st.from_regex(r"[%|a-zA-Z0-9_-]{1,40}", fullmatch=True),
    group=st.from_regex(r"[%|a-zA-Z0-9_-]{1,40}", fullmatch=True),
    body=st.binary(min_size=1, max_size=200),
    tags=TAG,
    keys=st.lists(KEY, max_size=3),
    own=st.dictionaries(TEXT.filter(lambda name: name and name not in RESERVED), TEXT.filter(bool)),
    flag=st.integers(-(2**31), 2**31 - 1),
    opaque=st.integers(0, 2**31 - 1),
)
def test_the_template_says_the_same_as_the_typed_header(
    topic: str,
    group: str,
    body: bytes,
    tags: str,
    keys: list[str],
    own: dict[str, str],
    flag: int,
    opaque: int,
) -> None:
    """
    A frame from the prepared template decodes to the same header as the typed one.
    """
    message = Message(topic, body, tags=tags, keys=keys, properties=own, flag=flag)
    prepared = prepare(message, ids(), OPTIONS)
    frames = SendFrames(group, Queue(topic, "broker-a", 3), OPTIONS)

    command = decoded(frames.frame(prepared, opaque))

    assert (command.code, command.opaque, command.body) == (310, opaque, body)
    expected = frames.header(prepared).to_ext()
    assert command.ext == expected
    found = properties.decode(command.ext["i"])
    assert found["UNIQ_KEY"] == prepared.msg_id
    assert found.get("TAGS", "") == tags


def test_the_broker_name_topic_and_queue_are_in_the_header() -> None:
    """
    The header of a send has group, topic, queue and broker name in RocketMQ's short fields.
    """
    frames = SendFrames("g", Queue("T", "broker-b", 5), OPTIONS)

    ext = decoded(frames.frame(prepare(Message("T", "x"), ids(), OPTIONS), 1)).ext

    names = {name: ext[name] for name in "abcdefghjkmn"}
    assert names == {
        "a": "g",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "5",
        "f": "0",
        "g": str(NOW_MS),
        "h": "0",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-b",
    }


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_a_body_at_the_limit_is_compressed_and_says_how(kind: str) -> None:
    """
    A body of at least 4096 bytes is compressed, and the system flag names the algorithm.
    """
    options = ProducerOptions(compression=kind)
    body = b"gantry " * 600

    prepared = prepare(Message("T", body), ids(), options)

    assert len(prepared.body) < len(body)
    assert compression.decompress(prepared.body, prepared.sys_flag) == body
    assert prepare(Message("T", body[:4095]), ids(), options).sys_flag == 0


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_a_body_that_packing_makes_no_smaller_travels_as_it_is(kind: str) -> None:
    """
    Otherwise 4 MiB of it would be over the broker's limit in their packed form.
    """
    body = random.Random(1).randbytes(64 * 1024)
    assert len(compression.compress(body, kind)[0]) > len(body)

    prepared = prepare(Message("T", body), ids(), ProducerOptions(compression=kind))

    assert (body, 0) == (prepared.body, prepared.sys_flag)


def test_everything_a_message_can_carry_becomes_a_property() -> None:
    """
    Tags, keys, delay level, WAIT and sharding key become RocketMQ's properties.
    """
    message = Message(
        "T",
        "x",
        tags="t",
        keys=["k1", "k2"],
        properties={"own": "1"},
        delay_level=3,
        wait_store_ok=False,
        sharding_key="s",
    )

    found = properties.decode(prepare(message, ids(), OPTIONS).properties)

    del found["UNIQ_KEY"]
    assert found == {
        "own": "1",
        "TAGS": "t",
        "KEYS": "k1 k2",
        "DELAY": "3",
        "WAIT": "false",
        "__SHARDINGKEY": "s",
    }


def test_a_sender_may_bring_its_own_id_but_no_other_system_property() -> None:
    """
    A message may bring its own UNIQ_KEY; any other system property is refused.
    """
    own = prepare(Message("T", "x", properties={"UNIQ_KEY": "MINE"}), ids(), OPTIONS)

    assert own.msg_id == "MINE"
    changed = Message("T", "x")
    changed.properties["TAGS"] = "a"
    with pytest.raises(WrongValue, match="'TAGS' is the system's own: give tags="):
        prepare(changed, ids(), OPTIONS)


def test_what_the_client_refuses_says_that_the_client_refused() -> None:
    """
    A message that the client refuses says which limit it broke.
    """
    small = ProducerOptions(max_message_bytes=10)
    with pytest.raises(MessageRefused, match=r"this client refuses more than 10 .*maxMessageSize"):
        prepare(Message("T", "x" * 11), ids(), small)
    changed = Message("T", "x")
    changed.properties["n"] = "a\x02b"
    with pytest.raises(MessageRefused, match="separator"):
        prepare(changed, ids(), OPTIONS)
    with pytest.raises(MessageRefused, match="properties need"):
        prepare(Message("T", "x", properties={"n": "y" * 40_000}), ids(), OPTIONS)


@pytest.mark.parametrize("topic", ["", "  ", "a b", "../etc", "x" * 128, "t\n"])
def test_a_bad_topic_name_is_refused(topic: str) -> None:
    """
    A topic name with forbidden characters, or too long, is refused.
    """
    with pytest.raises(NameRefused):
        check_topic(topic)


def test_nobody_sends_to_a_topic_of_the_brokers_own() -> None:
    """
    A system topic of the broker is refused; a retry topic is not.
    """
    with pytest.raises(MessageRefused, match="forbidden"):
        check_topic("SCHEDULE_TOPIC_XXXX")
    check_topic("%RETRY%" + "g" * 200)


def test_a_resend_of_a_consumer_carries_its_counts_in_the_header() -> None:
    """
    A message that is resent by a consumer has its retry counts in the header.
    """
    own = {"RECONSUME_TIME": "2", "MAX_RECONSUME_TIMES": "16", "RETRY_TOPIC": "T"}
    prepared = prepare(Message("%RETRY%g", "x", properties=own), ids(), OPTIONS)

    header = SendFrames("g", Queue("%RETRY%g", "a", 0), OPTIONS).header(prepared)

    assert (header.reconsume_times, header.max_reconsume_times) == (2, 16)
    assert properties.decode(header.properties or "").keys() == {"UNIQ_KEY", "RETRY_TOPIC"}


def test_a_batch_is_one_body_with_an_id_for_each_message() -> None:
    """
    A batch has one body, in which every message has an id of its own.
    """
    messages = [Message("T", "one", tags="a"), Message("T", "two", flag=7)]

    prepared = prepare_batch(messages, ids(), OPTIONS)

    items = batch.decode(prepared.body)
    assert [(item.body, item.flag) for item in items] == [(b"one", 0), (b"two", 7)]
    own_ids = [properties.decode(item.properties)["UNIQ_KEY"] for item in items]
    assert prepared.msg_id == ",".join(own_ids)
    command = decoded(SendFrames("g", Queue("T", "a", 0), OPTIONS).frame(prepared, 9))
    assert (command.code, command.ext["m"]) == (320, "true")


@pytest.mark.parametrize(
    "messages, complaint",
    [
        ([], "at least one"),
        ([Message("T", "x"), Message("U", "x")], "one topic"),
        ([Message("T", "x", delay_level=1)], "delayed"),
        ([Message("%RETRY%g", "x")], "retry topic"),
        ([Message("T", "x"), Message("T", "x", wait_store_ok=False)], "wait_store_ok"),
        ([Message("T", "x" * 3_000_000), Message("T", "x" * 3_000_000)], "this client refuses"),
    ],
)
def test_a_batch_that_cannot_be_one_is_refused(messages: list[Message], complaint: str) -> None:
    """
    A batch that is empty, too large, delayed, for a retry topic or mixed is refused with the
    reason.
    """
    with pytest.raises(MessageRefused, match=complaint):
        prepare_batch(messages, ids(), OPTIONS)


def test_ids_differ_and_hold_address_process_and_time() -> None:
    """
    Message ids are unique, and contain address, process and time as RocketMQ's do.
    """
    clock = FixedClock()
    made = ids(clock)
    found = []
    for number in range(70_000):
        clock.ms = NOW_MS + number // 1000
        found.append(made.next()[0])

    assert len(set(found)) == len(found)
    assert {(len(text), text[:12]) for text in found} == {(32, "0A0000021267")}
    assert int(found[-1][20:28], 16) == NOW_MS + 69 - month_bounds_ms(NOW_MS)[0]


def test_a_new_month_starts_the_time_in_ids_afresh() -> None:
    """
    The time in message ids starts at zero in a new month.
    """
    start_ms, end_ms = month_bounds_ms(NOW_MS)
    clock = FixedClock(end_ms - 1)
    made = ids(clock)

    last = made.next()[0]
    clock.ms = end_ms
    first = made.next()[0]

    assert int(last[20:28], 16) == end_ms - 1 - start_ms
    assert int(first[20:28], 16) == 0


def test_a_binary_header_says_the_same_as_the_json_one() -> None:
    """
    The binary header of a send has the same fields as the JSON one.
    """
    queue = Queue("T", "broker-a", 3)
    prepared = prepare(Message("T", b"x", tags="a"), ids(), OPTIONS)
    plain = decoded(SendFrames("g", queue, OPTIONS).frame(prepared, 9))
    binary = decoded(BinarySendFrames("g", queue, OPTIONS).frame(prepared, 9))

    assert plain.ext == binary.ext
    assert (plain.code, plain.opaque, plain.body) == (binary.code, binary.opaque, binary.body)
    assert (0, 1) == (plain.codec, binary.codec)
