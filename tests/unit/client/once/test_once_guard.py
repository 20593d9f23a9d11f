"""The guard in front of a handler, in virtual time on a real SQLite file."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

from gantrymq import App, WrongValue, sync
from gantrymq.base.offload import InlineOffload
from gantrymq.client.consume.push.ack_first import ack_first
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.consumer_errors import ConsumerMisused, HandlerRefused
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.guard import Once
from gantrymq.client.once.keys import KEY_BYTES_MAX, by_message_id, row_key
from gantrymq.client.once.redis_store import RedisStore
from gantrymq.client.once.sqlite_store import SqliteStore, SqliteTransaction
from gantrymq.client.once.store import StoreUnusable, WorkState
from gantrymq.model import Message, Queue, dead_topic
from gantrymq.testing import Cluster

Story = Callable[[Cluster], Coroutine[Any, Any, None]]
Simulate = Callable[[Story], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
Q0 = Queue("orders", "broker-a", 0)
A_WHILE = 120.0
"""Longer than two retries take (10 s and 30 s)."""
LONG = 1800.0


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(str(tmp_path / "once.db"), offload=InlineOffload())


async def send(cluster: Cluster, *keys: str, body: str = "x", **fields: Any) -> None:
    async with cluster.producer("sender") as producer:
        for key in keys:
            await producer.send(Message("orders", body, keys=key, **fields), queue=Q0)


def member(cluster: Cluster, once: Once, **options: Any) -> Consumer:
    consumer = cluster.consumer("g", **{"once": once, "options": FIRST, **options})
    consumer.subscribe("orders")
    return consumer


class Works:
    """A handler that remembers what it was given and fails as often as it is told to."""

    def __init__(self, fails: int = 0, seconds: float = 0.0) -> None:
        self.keys: list[str] = []
        self._fails, self._seconds = fails, seconds

    async def __call__(self, message: Delivery, *transaction: SqliteTransaction) -> None:
        self.keys.append(" ".join(message.keys))
        await asyncio.sleep(self._seconds)
        if len(self.keys) <= self._fails:
            raise ValueError("told to fail")


@pytest.mark.parametrize("transaction", [True, False])
def test_failed_work_is_not_done_and_is_tried_again(
    gantry_sim: Simulate, store: SqliteStore, transaction: bool
) -> None:
    """
    An exception gives the claim up, or rolls back: the retry is no double.
    """
    works, once = Works(fails=2), Once(store, transaction=transaction)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (["a", "a", "a"], 0) == (works.keys, once.suppressed_count)


@pytest.mark.parametrize("transaction", [True, False])
@pytest.mark.parametrize("verb, times", [("retry", 2), ("dead", 1)])
def test_a_handler_that_says_itself_that_it_failed_is_believed(
    gantry_sim: Simulate, store: SqliteStore, transaction: bool, verb: str, times: int
) -> None:
    """
    After `retry` it comes again, and a dead letter that is sent anew is new work.
    """
    once = Once(store, transaction=transaction)
    seen: list[str] = []

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a")
        async with member(cluster, once) as consumer:

            @consumer.handler
            async def work(message: Delivery, *_: SqliteTransaction) -> None:
                seen.append(message.msg_id)
                if len(seen) == 1:
                    await getattr(message, verb)()

            await asyncio.sleep(A_WHILE)
            assert times == len(seen)
            await send(cluster, "a")
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (2, 2 - (verb == "dead")) == (len(seen), 1 + once.suppressed_count)


@pytest.mark.parametrize("transaction", [True, False])
def test_a_handler_that_returns_something_has_not_done_its_work(
    gantry_sim: Simulate, store: SqliteStore, transaction: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """
    The same mistake as without `once`, with the same outcome: a logged TypeError and a retry.
    """
    once = Once(store, transaction=transaction)
    values: list[int | None] = [42, None]
    seen: list[str] = []

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a")
        async with member(cluster, once) as consumer:

            async def work(message: Delivery, *_: SqliteTransaction) -> int | None:
                seen.append(message.msg_id)
                return values.pop(0)

            consumer.handler(work)  # type: ignore[type-var]
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (2, 0) == (len(seen), once.suppressed_count)
    assert "return None to acknowledge" in caplog.text


def test_a_long_handler_keeps_its_claim(gantry_sim: Simulate, store: SqliteStore) -> None:
    """
    Claims are renewed every third of a lease, so a short lease is no limit for the work.
    """
    works = Works(seconds=60)
    once, other = Once(store, lease=3), Once(store, lease=3)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a")
        async with member(cluster, once) as consumer, member(cluster, other) as second:
            consumer.handler(works)
            second.handler(works)
            while not works.keys:
                await asyncio.sleep(1)
            await send(cluster, "a")
            for queue in range(1, 4):
                async with cluster.producer("sender") as producer:
                    message = Message("orders", "x", keys="a")
                    await producer.send(message, queue=Queue("orders", "broker-a", queue))
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (["a"], 4) == (works.keys, once.suppressed_count + other.suppressed_count)
    assert 0 == once.lost_count + other.lost_count


def test_who_stays_busy_for_two_leases_is_left_alone_until_later(
    gantry_sim: Simulate, store: SqliteStore
) -> None:
    """
    The double is sent back instead of holding a worker for ever, and found out when it returns.
    """
    works, once = Works(seconds=100), Once(store, lease=30)
    waits: list[int] = []

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "a")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            while not once.suppressed_count:
                waits.append(1)
                await asyncio.sleep(1)

    gantry_sim(story)
    assert ["a"] == works.keys
    assert 100 <= len(waits) <= 110


def test_a_claim_that_lapsed_under_the_work_is_counted(
    gantry_sim: Simulate, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    When renewing fails for a whole lease another member may do the same: that is told, not hidden.
    """
    works, once = Works(seconds=60), Once(store, lease=30)

    async def story(cluster: Cluster) -> None:
        async def fail(*_: object) -> None:
            raise OSError("unreachable")

        monkeypatch.setattr(store, "renew", fail)
        await send(cluster, "a")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            while not works.keys:
                await asyncio.sleep(1)
            await asyncio.sleep(31)
            (key,) = once._working
            assert {key: WorkState.OURS} == await store.claim("g", [key], "another", 600)
            await asyncio.sleep(60)

    gantry_sim(story)
    assert 1 == once.lost_count


def test_a_mark_that_fails_is_tried_again(
    gantry_sim: Simulate, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A short outage of the store between work and mark does not repeat the work.
    """
    works, once, failures = Works(), Once(store), [OSError("gone"), OSError("gone")]
    real = store.done

    async def done(*arguments: Any) -> list[str]:
        if failures:
            raise failures.pop()
        return await real(*arguments)

    async def story(cluster: Cluster) -> None:
        monkeypatch.setattr(store, "done", done)
        await send(cluster, "a", "a")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (["a"], 1) == (works.keys, once.suppressed_count)


@pytest.mark.parametrize("transaction", [True, False])
def test_a_batch_is_given_each_work_once(
    gantry_sim: Simulate, store: SqliteStore, transaction: bool
) -> None:
    """
    Doubles within a batch and doubles of earlier batches are left out of it.
    """
    once = Once(store, transaction=transaction)
    batches: list[list[str]] = []

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "b", "a", "c")
        async with member(cluster, once) as consumer:

            @consumer.handler(batch=10)
            async def work(messages: list[Delivery], *_: SqliteTransaction) -> None:
                batches.append([message.keys[0] for message in messages])

            await asyncio.sleep(60)
            await send(cluster, "c", "d", "a")
            await asyncio.sleep(60)

    gantry_sim(story)
    assert ["a", "b", "c", "d"] == sorted(key for batch in batches for key in batch)
    assert 3 == once.suppressed_count


def test_a_batch_undone_in_part_is_rolled_back_as_a_whole(
    gantry_sim: Simulate, store: SqliteStore
) -> None:
    """
    One transaction, one fate: what was not finished by hand is tried again.
    """
    once = Once(store, transaction=True)
    batches: list[list[str]] = []

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "b")
        async with member(cluster, once) as consumer:
            await consumer.wait_assigned(4)
            await asyncio.sleep(1)

            @consumer.handler(batch=10)
            async def work(messages: list[Delivery], transaction: SqliteTransaction) -> None:
                batches.append([message.keys[0] for message in messages])
                if len(batches) == 1:
                    await messages[0].dead()

            await asyncio.sleep(A_WHILE)
            async with cluster.consumer("undertaker", options=FIRST) as reader:
                reader.subscribe(dead_topic("g"))
                assert ("a",) == (await anext(aiter(reader))).keys

    gantry_sim(story)
    assert [["a", "b"], ["b"]] == batches


def test_at_most_once_marks_before_the_work(gantry_sim: Simulate, store: SqliteStore) -> None:
    """
    What fails is not tried again, and a double of it is no second chance.
    """
    works, once = Works(fails=9), Once(store, at_most_once=True)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "b", "a")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            await asyncio.sleep(A_WHILE)

    gantry_sim(story)
    assert (["a", "b"], 1) == (sorted(works.keys), once.suppressed_count)


def test_acknowledging_first_gives_up_what_a_crash_interrupts(gantry_sim: Simulate) -> None:
    """
    The broker has the progress before the program sees the message.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "b")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("orders")
            messages = ack_first(consumer)
            assert ("a",) == (await anext(messages)).keys
            async with cluster.admin() as admin:
                progress = await admin.consume_stats("g", "orders")
            assert 1 == progress.queues[Q0].consumer_offset
            assert ("b",) == (await anext(messages)).keys

    gantry_sim(story)


def test_finished_work_is_forgotten_in_time(gantry_sim: Simulate, store: SqliteStore) -> None:
    """
    Rows live for `keep` seconds and are purged every ten minutes; then the same key is new work.
    """
    works, once = Works(), Once(store, keep=LONG)
    counts: list[int] = []

    async def count() -> None:
        counts.append(store._db.execute("SELECT count(*) FROM gantrymq_once").fetchone()[0])

    async def story(cluster: Cluster) -> None:
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            for pause in (LONG - 60, 660):
                await send(cluster, "a")
                await asyncio.sleep(pause)
                await count()
            await send(cluster, "a")
            await asyncio.sleep(60)

    gantry_sim(story)
    assert (["a", "a"], 1, [1, 0]) == (works.keys, once.suppressed_count, counts)


def test_the_same_key_with_another_tag_or_topic_is_other_work(
    gantry_sim: Simulate, store: SqliteStore
) -> None:
    """
    An order is created once and paid once.
    """
    works, once = Works(), Once(store)

    async def story(cluster: Cluster) -> None:
        for tag in ("created", "paid", "created"):
            await send(cluster, "a", tags=tag)
        async with cluster.producer("sender") as producer:
            await producer.send(Message("returns", "x", tags="created", keys="a"))
        async with member(cluster, once) as consumer:
            consumer.subscribe("returns")
            consumer.handler(works)
            await asyncio.sleep(60)

    gantry_sim(story)
    assert (3, 1) == (len(works.keys), once.suppressed_count)


@pytest.mark.parametrize(
    "key, expected", [(by_message_id, 3), (lambda message: message.body.decode(), 1)]
)
def test_the_user_chooses_what_makes_work_the_same(
    gantry_sim: Simulate, store: SqliteStore, key: Callable[[Delivery], str], expected: int
) -> None:
    """
    By id only repeated deliveries are doubles; by anything in the message whatever shares it.
    """
    works, once = Works(), Once(store, key=key)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "a", "b")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            await asyncio.sleep(60)

    gantry_sim(story)
    assert (expected, 3 - expected) == (len(works.keys), once.suppressed_count)


def test_messages_without_keys_are_told_apart_by_id_and_warned_about(
    gantry_sim: Simulate, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Two of them are never taken for one, and one warning a topic says what that costs.
    """
    works, once = Works(), Once(store)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "", "")
        async with member(cluster, once) as consumer:
            consumer.handler(works)
            await asyncio.sleep(60)

    with caplog.at_level(logging.WARNING):
        gantry_sim(story)
    assert (2, 0) == (len(works.keys), once.suppressed_count)
    assert 1 == caplog.text.count("have no keys")


def test_a_key_too_long_or_odd_for_a_database_is_kept_as_its_hash() -> None:
    """
    Equal stays equal, different stays different.
    """
    odd = ["a" * (KEY_BYTES_MAX + 1), "a" * (KEY_BYTES_MAX + 2), "nul \0", "nul \x01", "\ud800"]
    kept = [row_key(key) for key in odd]

    assert "order 7 für 木" == row_key("order 7 für 木")
    assert len(odd) == len(set(kept))
    assert all(key.startswith("sha256 ") and len(key) == 71 for key in kept)


def refuses(text: str, work: Callable[[], Any]) -> None:
    with pytest.raises(ConsumerMisused, match=text):
        work()


def test_settings_that_make_no_sense_are_refused(store: SqliteStore) -> None:
    """
    At once, with the reason.
    """
    refuses("no transactions", lambda: Once(RedisStore("redis://x"), transaction=True))
    refuses("not at most once", lambda: Once(store, transaction=True, at_most_once=True))
    with pytest.raises(WrongValue, match="lease is more than 0 seconds"):
        Once(store, lease=0)


def test_a_handler_written_for_another_store_is_refused(store: SqliteStore) -> None:
    """
    By a consumer and an app when it is registered; a blocking one may say what it looks like.
    """

    async def one(message: Delivery, transaction: sqlite3.Connection) -> None: ...
    async def many(messages: list[Delivery], transaction: sqlite3.Connection) -> None: ...
    async def of_body(body: bytes, message: Delivery, transaction: sqlite3.Connection) -> None: ...
    def blocks(body: bytes, message: sync.Delivery, transaction: sqlite3.Connection) -> None: ...
    async def right(message: Delivery, tx: Annotated[SqliteTransaction, "the store's"]) -> None: ...
    async def either(message: Delivery, tx: sqlite3.Connection | SqliteTransaction) -> None: ...

    def consumer() -> Consumer[Any]:
        return Consumer("127.0.0.1:1", group="g", once=Once(store, transaction=True))

    words = "takes a Connection as its transaction, but .*sqlite_store.SqliteTransaction objects"
    with pytest.raises(HandlerRefused, match=words):
        consumer().handler(one)
    with pytest.raises(HandlerRefused, match=words):
        consumer().handler(batch=2)(many)
    with pytest.raises(HandlerRefused, match=words):
        App("127.0.0.1:1", group="g", once=Once(store, transaction=True)).on("orders")(of_body)
    blocking = sync.App("127.0.0.1:1", group="g", once=Once(store, transaction=True))
    assert blocks is blocking.on("orders")(blocks)
    for each in (right, either):
        assert each is consumer().handler(each)


def test_consumers_that_cannot_have_once_say_so(gantry_sim: Simulate, store: SqliteStore) -> None:
    """
    Broadcasting, iterating, and two consumers with one `Once`.
    """
    once = Once(store)

    async def story(cluster: Cluster) -> None:
        with pytest.raises(ConsumerMisused, match="broadcasting"):
            await member(cluster, Once(store), broadcast=True).start()
        async with member(cluster, once) as consumer:
            with pytest.raises(ConsumerMisused, match="needs a handler"):
                await anext(aiter(consumer))
            with pytest.raises(ConsumerMisused, match="one per consumer"):
                await member(cluster, once).start()

    gantry_sim(story)


def test_a_store_that_cannot_be_opened_stops_the_start(gantry_sim: Simulate) -> None:
    """
    With the store's name and its reason.
    """

    async def story(cluster: Cluster) -> None:
        lost = SqliteStore("/nonexistent/folder/once.db", offload=InlineOffload())
        with pytest.raises(StoreUnusable, match="SqliteStore cannot be opened: unable to open"):
            await member(cluster, Once(lost)).start()

    gantry_sim(story)


def test_a_running_handler_that_is_cancelled_at_close_gives_its_claim_up(
    gantry_sim: Simulate, store: SqliteStore
) -> None:
    """
    The next member need not wait for the lease.
    """
    slow, quick = Works(seconds=LONG), Works()
    waits: Sequence[float] = []

    async def story(cluster: Cluster) -> None:
        nonlocal waits
        loop = asyncio.get_running_loop()
        await send(cluster, "a")
        async with member(cluster, Once(store, lease=600)) as consumer:
            consumer.handler(slow)
            while not slow.keys:
                await asyncio.sleep(1)
        started = loop.time()
        async with member(cluster, Once(store, lease=600)) as consumer:
            consumer.handler(quick)
            while not quick.keys:
                await asyncio.sleep(1)
            waits = [loop.time() - started]

    gantry_sim(story)
    assert (["a"], ["a"]) == (slow.keys, quick.keys)
    assert waits[0] < 60
