"""A wrong type or value never becomes a message: it is refused where the message is made."""

import copy
import enum
import pickle
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from gantrymq import (
    App,
    ConfigError,
    Consumer,
    ConsumerOptions,
    GantryError,
    Message,
    Producer,
    ProducerOptions,
    PullOptions,
)
from gantrymq.base.clock import SystemClock
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.sending.send_request import MAX_RECONSUME_TIMES, RECONSUME_TIME, prepare
from gantrymq.message_fields import RESERVED
from gantrymq.protocol import properties
from gantrymq.testing import Cluster


class Tag(str, enum.Enum):  # noqa: UP042  # the older kind, whose text is not its value
    PAID = "paid"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"topic": 5}, "topic is a string"),
        ({"topic": "a b"}, "illegal characters"),
        ({"topic": ""}, "blank"),
        ({"body": 5}, "body is bytes or a string"),
        ({"body": None}, "body is bytes or a string"),
        ({"body": {"id": 1}}, "json.dumps"),
        ({"body": b""}, "body is at least one byte"),
        ({"body": ""}, "body length is zero"),
        ({"body": bytearray()}, "body is at least one byte"),
        ({"tags": ["a", "b"]}, "one tag"),
        ({"tags": "a || b"}, "one tag"),
        ({"tags": " a"}, "blanks around"),
        ({"tags": "a\x01"}, "separator"),
        ({"keys": ["a b"]}, "no space"),
        ({"keys": "a b"}, r'keys=\["a", "b"\]'),
        ({"keys": [""]}, "not empty"),
        ({"keys": [7]}, "a key is a string"),
        ({"keys": 7}, "keys is a string or a list"),
        ({"keys": b"k"}, "keys is a string or a list"),
        ({"keys": {"k": 1}}, "keys is a string or a list"),
        ({"keys": ["a\x02"]}, "separator"),
        ({"properties": {"a": 1}}, "property a is a string"),
        ({"properties": {1: "a"}}, "name is a string"),
        ({"properties": {"a": ""}}, "not empty"),
        ({"properties": {"a": "\x01"}}, "separator"),
        ({"properties": [("a", "b")]}, "mapping"),
        ({"properties": {"TAGS": "a"}}, "'TAGS' is the system's own: give tags="),
        ({"properties": {"mine": "1", "DELAY": "3"}}, "give delay_level="),
        ({"properties": {"PGROUP": "g", "note": "two\nlines"}}, "take another name"),
        ({"topic": "%DLQ%g", "properties": {"RETRY_TOPIC": "T"}}, "take another name"),
        ({"flag": "1"}, "flag is a whole number"),
        ({"flag": 2**31}, "32 bits"),
        ({"flag": False}, "flag is a whole number"),
        ({"delay_level": 19}, r"1 \(1 s\) to 18 \(2 h\)"),
        ({"delay_level": -1}, "delay_level is 1"),
        ({"delay_level": "3"}, "whole number"),
        ({"delay_level": True}, "whole number"),
        ({"deliver_at": 1_700_000_000}, "looks like seconds"),
        ({"deliver_at": int(time.time())}, "looks like seconds"),
        ({"deliver_at": time.time()}, "datetime or whole milliseconds"),
        ({"deliver_at": time.time_ns()}, "microseconds or nanoseconds"),
        ({"deliver_at": "2026-01-31"}, "datetime or whole milliseconds"),
        ({"delay": "5s"}, "timedelta or a number of seconds"),
        ({"delay": -1}, "forward only"),
        ({"delay": float("nan")}, "forward only"),
        ({"delay": 1, "delay_level": 1}, "only one"),
        ({"delay": 1, "deliver_at": datetime.now(UTC)}, "only one"),
        ({"wait_store_ok": "no"}, "True or False"),
        ({"sharding_key": 7}, "sharding_key is a string"),
    ],
)
def test_it_is_refused_with_what_is_right(wrong: dict[str, Any], words: str) -> None:
    """
    A wrong type or value of a field raises an error that says what is allowed.
    """
    with pytest.raises(GantryError, match=words) as caught:
        Message(**{"topic": "T", "body": b"x", **wrong})
    assert isinstance(caught.value, TypeError | ValueError)


def test_what_is_right_is_kept_as_it_was_said() -> None:
    """
    Right values are kept as they were given.
    """
    message = Message(
        "T", bytearray(b"x"), "order-paid", ["k1", "ключ"], properties={"note": "two\nlines"},
        flag=-1, deliver_at=1_700_000_000_000, sharding_key="s",
    )  # fmt: skip

    assert (b"x", "order-paid", ("k1", "ключ")) == (message.body, message.tags, message.keys)
    assert ({"note": "two\nlines"}, -1, "s") == (
        message.properties, message.flag, message.sharding_key,
    )  # fmt: skip
    assert ("TIMER_DELIVER_MS", "1700000000000") == message.timer
    assert ("TIMER_DELAY_MS", "1500") == Message("T", "x", delay=timedelta(seconds=1.5)).timer
    assert () == Message("T", "x", keys="").keys
    assert b"abc" == Message("T", memoryview(b"abc")).body
    assert "%RETRY%" + "g" * 200 == Message("%RETRY%" + "g" * 200, b"x").topic


def test_what_the_system_writes_into_messages_is_reserved() -> None:
    """
    By the names under which the protocol knows it.
    """
    written = {
        properties.KEYS, properties.TAGS, properties.WAIT, properties.DELAY, properties.UNIQ_KEY,
        properties.CLUSTER, properties.MSG_REGION, properties.TRACE_ON, properties.RETRY_TOPIC,
        properties.REAL_TOPIC, properties.REAL_QUEUE, properties.ORIGIN_MESSAGE_ID,
        properties.TRANSACTION_PREPARED, properties.PRODUCER_GROUP, properties.MIN_OFFSET,
        properties.MAX_OFFSET, properties.PREPARED_QUEUE_OFFSET, properties.CHECK_TIMES,
        properties.CHECK_IMMUNITY, RECONSUME_TIME, MAX_RECONSUME_TIMES,
    }  # fmt: skip

    assert set() == written - RESERVED


def test_own_ids_and_the_counts_of_a_retry_are_kept() -> None:
    """
    A sender may bring its own id, and a message to a retry topic says how often it was tried.
    """
    counts = {"RECONSUME_TIME": "2", "RETRY_TOPIC": "T"}

    assert {"UNIQ_KEY": "A1"} == Message("T", b"x", properties={"UNIQ_KEY": "A1"}).properties
    assert counts == Message("%RETRY%g", b"x", properties=counts).properties


@pytest.mark.parametrize(
    "name, value",
    [("delay_level", 19), ("delay_level", 3), ("body", b""), ("keys", "a b"), ("topic", "U")],
)
def test_a_message_does_not_change_once_it_is_made(name: str, value: Any) -> None:
    """
    Neither a wrong value nor a right one is assigned; the error says how another one is made.
    """
    message = Message("T", b"x", delay_level=2)

    with pytest.raises(AttributeError, match=rf"message\.replace\({name}=") as caught:
        setattr(message, name, value)

    assert isinstance(caught.value, GantryError)
    assert ("T", b"x", (), 2) == (message.topic, message.body, message.keys, message.delay_level)


def test_a_changed_message_is_another_one_and_is_checked() -> None:
    """
    `replace` returns a checked copy and leaves the message as it was.
    """
    own = {"colour": "red"}
    message = Message("T", b"x", properties=own, delay=5)

    other = message.replace(tags="paid", properties={**own, "size": "9"}, delay=7)
    own["colour"] = "blue"

    assert (None, {"colour": "red"}, ("TIMER_DELAY_MS", "5000")) == (
        message.tags, message.properties, message.timer,
    )  # fmt: skip
    assert ("T", b"x", "paid", ("TIMER_DELAY_MS", "7000")) == (
        other.topic, other.body, other.tags, other.timer,
    )  # fmt: skip
    assert {"colour": "red", "size": "9"} == other.properties
    with pytest.raises(GantryError, match="1 \\(1 s\\) to 18"):
        message.replace(delay=None, delay_level=19)
    with pytest.raises(GantryError, match="only one"):
        message.replace(delay_level=3)


def test_a_message_is_copied_and_pickled_whole() -> None:
    """
    A copy, a deep copy and a pickled message have all fields.
    """
    message = Message("T", b"x", "t", ["k"], properties={"a": "b"}, flag=7, delay_level=3)

    for again in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert ("T", b"x", "t", ("k",), {"a": "b"}, 7, 3) == (
            again.topic, again.body, again.tags, again.keys, again.properties, again.flag,
            again.delay_level,
        )  # fmt: skip


def test_a_member_of_an_enum_is_its_value() -> None:
    """
    Formatting one gives its name, which no subscription asks for.
    """
    message = Message("T", b"x", Tag.PAID, [Tag.PAID], properties={"state": Tag.PAID})
    ids = MessageIds("10.0.0.2", 4711, 0xABCD, SystemClock())

    text = prepare(message, ids, ProducerOptions()).properties

    assert "Tag" not in text
    assert 3 == text.count("paid")


@pytest.mark.parametrize(
    "kind, wrong, words",
    [
        (ConsumerOptions, {"consume_from_where": "FIRST"}, "'CONSUME_FROM_FIRST_OFFSET'"),
        (ConsumerOptions, {"message_model": "clustering"}, "'CLUSTERING', 'BROADCASTING'"),
        (ConsumerOptions, {"consume_timestamp": "2026-01-31"}, "yyyyMMddHHmmss"),
        (ConsumerOptions, {"consume_thread_max": 0}, "consume_thread_max must be int >= 1, not 0"),
        (ConsumerOptions, {"pull_batch_size": "32"}, "pull_batch_size must be int, not '32'"),
        (ConsumerOptions, {"offset_dir": 5}, "offset_dir must be str | None, not 5"),
        (PullOptions, {"auto_commit": "no"}, "auto_commit must be bool"),
        (PullOptions, {"consume_from_where": "LAST"}, "'CONSUME_FROM_LAST_OFFSET'"),
        (ProducerOptions, {"compression": "gzip"}, "'zlib', 'lz4', 'zstd'"),
        (ProducerOptions, {"compression_level": 12}, "0 to 9"),
        (ProducerOptions, {"send_timeout_ms": 1.5}, "send_timeout_ms must be int"),
    ],
)
def test_an_option_is_refused_with_what_is_right(
    kind: Any, wrong: dict[str, Any], words: str
) -> None:
    """
    A wrong option of a client raises ConfigError with what is allowed.
    """
    with pytest.raises(ConfigError) as caught:
        kind(**wrong)
    assert words in str(caught.value)


def test_arguments_of_clients_are_refused_as_well() -> None:
    """
    A wrong argument of a client's constructor is refused with what is allowed.
    """
    wrong: Any
    for wrong, words in [
        ({"concurrency": 0}, "consume_thread_max"),
        ({"max_retries": "3"}, "max_reconsume_times"),
        ({"ordered": "yes"}, "ordered is True or False"),
        ({"broadcast": 1}, "broadcast is True or False"),
        ({"options": ProducerOptions()}, "options must be ConsumerOptions"),
        ({"client": ConsumerOptions()}, "client must be ClientOptions"),
        ({"namesrv": 9876}, "namesrv must be str"),
        ({"namesrv": "localhost"}, "write host:port"),
        ({"namesrv": "http://localhost:9876"}, "without a scheme"),
        ({"close_grace": "x"}, "close_grace is a number of seconds"),
        ({"start_timeout": 0}, "start_timeout is more than 0 seconds"),
        ({"strategy": "AVG"}, "allocate_strategy"),
        ({"once": "x.db"}, "once is an Once"),
        ({"trace": 5}, "trace (which may also be a topic) is True or False"),
    ]:
        with pytest.raises(GantryError) as caught:
            Consumer(group="g", **wrong)
        assert words in str(caught.value)
    with pytest.raises(GantryError, match="a group is named by a string"):
        Producer(group=5)  # type: ignore[arg-type]


def test_arguments_of_calls_are_refused_at_once(gantry_sim: Any) -> None:
    """
    Also where nobody would have noticed: a wrong queue let a send wait for ever.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        fine, wrong = Message("T", "x"), cast("Any", "x")
        async with (
            cluster.producer() as producer,
            cluster.consumer() as consumer,
            cluster.admin() as admin,
        ):
            for work, words in [
                (lambda: producer.send(wrong), "what is sent is a Message"),
                (lambda: producer.request(wrong), "what is sent is a Message"),
                (lambda: producer.send_batch(cast("Any", fine)), "a batch is a list"),
                (lambda: producer.send_batch([fine, wrong]), "a batch is a list"),
                (lambda: producer.send(fine, queue=cast("Any", 1)), "queue is a Queue"),
                (lambda: producer.send(fine, selector=wrong), "selector is a function"),
                (lambda: producer.send(fine, timeout=wrong), "timeout is a number of seconds"),
                (lambda: producer.send(fine, timeout=0), "timeout is more than 0"),
                (lambda: admin.create_topic("U", queues=0), "queues is 1 or more"),
                (lambda: admin.create_topic("U", read_queues=wrong), "a whole number"),
            ]:
                with pytest.raises(GantryError, match=words):
                    await cast("Any", work)()
            for plain, words in [
                (lambda: consumer.subscribe("T", tags=cast("Any", ["a"])), "tags is one string"),
                (lambda: consumer.subscribe("T", sql=cast("Any", 5)), "sql is one string"),
                (lambda: consumer.handler(batch=0), "batch is 1 or more"),
                (lambda: consumer.pause(-1), "a pause is 0 or more"),
                (lambda: App(group="g").on("T", retries=wrong), "retries is a whole number"),
                (lambda: App(group="g").on("T", tags=cast("Any", ["a"])), "tags is one string"),
                (lambda: App(group="g").on("T", undecodable=wrong), "undecodable is"),
            ]:
                with pytest.raises(GantryError, match=words):
                    cast("Any", plain)()

    gantry_sim(story)
