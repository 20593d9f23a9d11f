"""Where a group begins, in words; and handlers that are looked at when they are registered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from gantrymq import (
    App,
    ConfigError,
    ConsumeStatus,
    Delivery,
    GantryError,
    HandlerRefused,
    Message,
    NotReady,
    Once,
    Received,
    SqliteStore,
)
from gantrymq.base.offload import InlineOffload
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.model import dead_topic
from gantrymq.sync import Consumer as SyncConsumer
from gantrymq.sync import Delivery as SyncDelivery
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]


async def three_hours_of_messages(cluster: Cluster) -> None:
    await cluster.create_topic("T", 1)
    async with cluster.producer() as producer:
        for hour in ("two hours ago", "one hour ago", "now"):
            await producer.send(Message("T", hour))
            if hour != "now":
                await asyncio.sleep(3600)


async def first_body(cluster: Cluster, group: str, start: Any) -> str:
    async with cluster.consumer(group, start=start) as consumer:
        consumer.subscribe("T")
        async with asyncio.timeout(60):
            message = await anext(consumer)
        await message.ack()
        return message.body.decode()


def test_a_group_begins_where_start_says(gantry_sim: Simulate) -> None:
    """
    A new group begins at the first message, at the last, or at the time that `start` names.
    """

    async def story(cluster: Cluster) -> None:
        await three_hours_of_messages(cluster)
        now = datetime.fromtimestamp(cluster.clock.now_ms() / 1000, UTC)
        ninety = now - timedelta(minutes=90)

        assert "two hours ago" == await first_body(cluster, "g1", "first")
        assert "one hour ago" == await first_body(cluster, "g2", "90m ago")
        assert "one hour ago" == await first_body(cluster, "g3", ninety)
        assert "now" == await first_body(cluster, "g4", "30m ago")
        # It has progress by now: that counts.
        assert "one hour ago" == await first_body(cluster, "g1", "first")

        async with cluster.consumer("g5", start="last") as consumer:
            consumer.subscribe("T")
            await consumer.wait_assigned()
            assert "CONSUME_FROM_LAST_OFFSET" == consumer.options.consume_from_where

    gantry_sim(story)


def test_an_app_begins_there_as_well(gantry_sim: Simulate) -> None:
    """
    `App(start=...)` begins at the same position as a consumer, and honours `start_timeout`.
    """

    async def story(cluster: Cluster) -> None:
        await three_hours_of_messages(cluster)
        seen: list[Delivery] = []
        app = App(group="g", start="90m ago", start_timeout=10)
        app.on("T")(seen.append)
        async with app.test(cluster):
            await asyncio.sleep(10)
        assert ["one hour ago", "now"] == [message.body.decode() for message in seen]

        app = App(group="h", start_timeout=10)
        app.on("nowhere")(seen.append)
        with pytest.raises(NotReady, match="nowhere"):
            async with app.test(cluster):
                pass

    gantry_sim(story)


@pytest.mark.parametrize("wrong", ["FIRST", "", "in 5 minutes", 5, True, b"first"])
def test_what_is_no_start_is_refused(wrong: Any) -> None:
    """
    A value of `start` that is neither a word nor a time is refused where the consumer is made.
    """
    with pytest.raises(GantryError, match='"first", "last"') as caught:
        Consumer("127.0.0.1:1", group="g", start=wrong)
    assert isinstance(caught.value, ConfigError | TypeError)
    with pytest.raises(GantryError, match='"first", "last"'):
        App(group="g", start=wrong)


class Order:
    """Not a message."""


async def two(message: Delivery, transaction: object) -> None: ...
async def none() -> None: ...
async def of_order(order: Order) -> None: ...
async def of_list(messages: list) -> None: ...  # type: ignore[type-arg]
async def of_one(message: Delivery) -> None: ...
async def waits(message: Any) -> None: ...
def of_blocking(message: SyncDelivery) -> None: ...


def yields(message: Delivery) -> Iterator[None]:
    yield


async def yields_later(message: Delivery) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    "wrong, words",
    [
        (two, r"must take \(message\): missing a required argument: 'transaction'"),
        (none, r"must take \(message\): too many positional arguments"),
        (of_order, "takes a Order, but is given a Delivery; gantrymq.App"),
        (of_list, "is given a Delivery"),
        (yields, "has a `yield`"),
        (yields_later, "has a `yield`"),
        ("print", "a handler is a function"),
    ],
)
def test_a_handler_is_looked_at_when_it_is_registered(wrong: Any, words: str) -> None:
    """
    A handler with wrong parameters is refused when it is registered, with the reason.
    """
    with pytest.raises(HandlerRefused, match=words):
        Consumer("127.0.0.1:1", group="g").handler(wrong)


def test_a_handler_that_says_little_about_its_message_is_taken() -> None:
    """
    Handlers with a protocol, a base class, further optional parameters or no annotation are
    accepted.
    """

    class Bodied(Protocol):
        body: bytes

    def of_protocol(message: Bodied) -> None: ...
    def of_received(message: Received) -> None: ...
    def with_more(message: Delivery, seen: object = None, *more: object) -> None: ...
    def unreadable(message: "Nobody") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for right in (waits, of_protocol, of_received, with_more, unreadable, [].append):
        Consumer("127.0.0.1:1", group="g").handler(right)


def test_a_handler_of_lists_and_a_blocking_one_are_looked_at_as_well() -> None:
    """
    Handlers of lists and of blocking consumers are checked in the same way.
    """
    with pytest.raises(HandlerRefused, match="a list of Delivery objects"):
        Consumer("127.0.0.1:1", group="g").handler(batch=3)(of_one)  # type: ignore[type-var]
    with pytest.raises(HandlerRefused, match="without `async`"):
        SyncConsumer("127.0.0.1:1", group="g").handler(waits)
    with pytest.raises(HandlerRefused, match="a list of Delivery objects"):
        SyncConsumer("127.0.0.1:1", group="g").handler(batch=3)(of_blocking)  # type: ignore[type-var]
    with pytest.raises(GantryError, match="batch"):
        SyncConsumer("127.0.0.1:1", group="g").handler(batch=0)
    with pytest.raises(HandlerRefused, match=r"must take \(message\)"):
        SyncConsumer("127.0.0.1:1", group="g").handler(lambda: None)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_handler_may_return_a_status(gantry_sim: Simulate, ordered: bool) -> None:
    """
    A ConsumeStatus that a handler returns acknowledges the message, retries it or makes it a
    dead letter.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", 1)
        async with cluster.producer() as producer:
            for body in ("good", "later", "never"):
                await producer.send(Message("T", body))
        seen: list[tuple[str, int]] = []
        consumer = cluster.consumer("g", start="first", ordered=ordered)

        @consumer.handler
        async def listen(message: Delivery) -> ConsumeStatus:
            body = message.body.decode()
            seen.append((body, message.reconsume_times))
            if body == "never":
                return ConsumeStatus.DEAD
            if body == "later" and not message.reconsume_times:
                return ConsumeStatus.RECONSUME_LATER
            return ConsumeStatus.SUCCESS

        consumer.subscribe("T")
        async with consumer:
            await asyncio.sleep(60)
        assert [("good", 0), ("later", 0), ("later", 1), ("never", 0)] == sorted(seen)
        async with cluster.consumer("reader", start="first") as dead:
            dead.subscribe(dead_topic("g"))
            letter = await anext(dead)
            assert b"never" == letter.body
            assert "the handler returned DEAD" == letter.properties["GANTRY_REASON"]

    gantry_sim(story)


@pytest.mark.parametrize("transaction", [False, True])
def test_a_status_counts_for_once_as_well(
    gantry_sim: Simulate, tmp_path: Path, transaction: bool
) -> None:
    """
    What is to come later is not remembered as done; what is done is not done again.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", 1)
        async with cluster.producer() as producer:
            await producer.send(Message("T", "x", keys="k"))
        store = SqliteStore(str(tmp_path / "once.db"), offload=InlineOffload())
        once = Once(store, transaction=transaction)
        consumer = cluster.consumer("g", start="first", once=once)
        seen: list[int] = []

        async def listen(message: Delivery, *_: object) -> ConsumeStatus:
            seen.append(message.reconsume_times)
            later = not message.reconsume_times
            return ConsumeStatus.RECONSUME_LATER if later else ConsumeStatus.SUCCESS

        consumer.handler(listen)
        consumer.subscribe("T")
        async with consumer, cluster.producer() as producer:
            await asyncio.sleep(60)
            await producer.send(Message("T", "x", keys="k"))
            await asyncio.sleep(60)
        assert [0, 1] == seen
        assert 1 == once.suppressed_count

    gantry_sim(story)
