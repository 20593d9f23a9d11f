"""Pull and lite pull consumers against a real cluster in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.consume.pull.lite_pull_consumer import LitePullConsumer
from gantrymq.client.consume.pull.pull_consumer import PullConsumer, received
from gantrymq.client.consume.queues.pull_request import PullStatus
from gantrymq.client.core.consumer_errors import ConsumerMisused, QueueNotAssigned
from gantrymq.client.core.errors import Closed, NotStarted
from gantrymq.client.core.instance import _instances
from gantrymq.client.core.options import PullOptions
from gantrymq.client.messages.received import Received
from gantrymq.model import Message, Queue
from gantrymq.testing import Cluster, simulate

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
Q0 = Queue("T", "broker-a", 0)
FIRST = "CONSUME_FROM_FIRST_OFFSET"


def ports(cluster: Cluster) -> dict[str, Any]:
    return {"network": cluster.network, "clock": cluster.clock, "rng": cluster.rng}


def puller(cluster: Cluster) -> PullConsumer:
    return PullConsumer(cluster.namesrv, group="g", **ports(cluster))


def lite(cluster: Cluster, **options: Any) -> LitePullConsumer:
    settings = PullOptions(consume_from_where=FIRST, **options)
    return LitePullConsumer(cluster.namesrv, group="g", options=settings, **ports(cluster))


async def fill(cluster: Cluster, count: int, tags: str | None = None) -> None:
    """Messages 0 to `count` - 1, all in queue 0 of T."""
    async with cluster.producer("sender") as producer:
        for number in range(count):
            await producer.send(Message("T", str(number), tags=tags), queue=Q0)


async def make_topic(cluster: Cluster) -> None:
    async with cluster.producer("sender") as producer:
        for queue_id in range(1, 4):
            await producer.send(Message("T", "x"), queue=Queue("T", "broker-a", queue_id))


def bodies(messages: list[Received]) -> list[int]:
    return [int(message.body) for message in messages]


def test_a_pull_reads_any_offset(gantry_sim: Simulate) -> None:
    """
    A pull reads from the offset that it names and returns the next, first and last offsets.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 50)
        async with puller(cluster) as consumer:
            assert [queue.queue_id for queue in await consumer.queues("T")] == [0, 1, 2, 3]
            found = await consumer.pull(Q0, 10, max_count=5)
            assert found.status is PullStatus.FOUND
            assert bodies(found.messages) == [10, 11, 12, 13, 14]
            assert (found.next_offset, found.min_offset, found.max_offset) == (15, 0, 50)
            assert (await consumer.pull(Q0, 50)).status is PullStatus.NO_NEW
            beyond = await consumer.pull(Q0, 99)
            assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_MOVED, 50)

    gantry_sim(story)


def test_a_pull_filters_by_tag(gantry_sim: Simulate) -> None:
    """
    A pull with tags returns only matching messages, and NO_MATCH with the next offset when
    there are none.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 3, tags="a")
        await fill(cluster, 3, tags="b")
        async with puller(cluster) as consumer:
            assert bodies((await consumer.pull(Q0, 0, tags="b")).messages) == [0, 1, 2]
            none = await consumer.pull(Q0, 0, tags="c")
            assert (none.status, none.next_offset) == (PullStatus.NO_MATCH, 6)

    gantry_sim(story)


def test_a_blocking_pull_waits_for_a_message(gantry_sim: Simulate) -> None:
    """
    A blocking pull returns as soon as a message comes, or NO_NEW after its time.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 1)
        loop = asyncio.get_running_loop()
        async with puller(cluster) as consumer:
            started = loop.time()
            empty = await consumer.pull_blocking(Q0, 1)
            assert empty.status is PullStatus.NO_NEW
            assert 19 <= loop.time() - started <= 26
            waiting = asyncio.ensure_future(consumer.pull_blocking(Q0, 1))
            await asyncio.sleep(3)
            await fill(cluster, 1)
            assert bodies((await waiting).messages) == [0]
            assert loop.time() - started < 40

    gantry_sim(story)


def test_offsets_can_be_asked_for_and_stored(gantry_sim: Simulate) -> None:
    """
    Smallest, largest, by-time and committed offsets of a queue can be asked for, and one
    committed.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 2)
        await asyncio.sleep(60)
        between = cluster.clock.now_ms()
        await asyncio.sleep(60)
        await fill(cluster, 3)
        async with puller(cluster) as consumer:
            assert await consumer.min_offset(Q0) == 0
            assert await consumer.max_offset(Q0) == 5
            assert await consumer.search_offset(Q0, between) == 2
            assert await consumer.committed(Q0) is None
            await consumer.commit(Q0, 4)
            assert await consumer.committed(Q0) == 4

    gantry_sim(story)


def test_bulk_readers_get_the_bytes(gantry_sim: Simulate) -> None:
    """
    `pull_raw` returns the records as the broker sent them.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 100)
        async with puller(cluster) as consumer:
            pulled = await consumer.pull_raw(Q0, 0, max_count=100)
            assert pulled.status is PullStatus.FOUND
            assert pulled.next_offset == 100
            assert bodies(received(pulled.body, Q0)) == list(range(100))

    gantry_sim(story)


def test_a_listener_hears_of_its_share(gantry_sim: Simulate) -> None:
    """
    A listener is called with all queues and its own share whenever the share changes.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        heard: list[tuple[int, int]] = []
        async with puller(cluster) as one:
            one.on_queues_changed("T", lambda _, all_, mine: heard.append((len(all_), len(mine))))
            await asyncio.sleep(30)
            assert heard == [(4, 4)]
            async with puller(cluster) as two:
                two.on_queues_changed("T", lambda *_: None)
                await asyncio.sleep(30)
                assert heard == [(4, 4), (4, 2)]
                assert sorted(one.share("T") + two.share("T")) == await one.queues("T")
            await asyncio.sleep(30)
            assert heard[-1] == (4, 4)

    gantry_sim(story)


def test_a_pull_consumer_that_is_not_open_says_so(gantry_sim: Simulate) -> None:
    """
    A pull consumer raises NotStarted before its start and Closed after its end.
    """

    async def story(cluster: Cluster) -> None:
        consumer = puller(cluster)
        with pytest.raises(NotStarted):
            await consumer.pull(Q0, 0)
        async with consumer:
            pass
        with pytest.raises(Closed):
            await consumer.pull(Q0, 0)

    gantry_sim(story)


def test_polls_return_batches_in_order_and_then_nothing(gantry_sim: Simulate) -> None:
    """
    `poll` returns full batches in order, and an empty list after its time.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 25)
        loop = asyncio.get_running_loop()
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            batches = [bodies(await consumer.poll()) for _ in range(3)]
            assert [len(batch) for batch in batches] == [10, 10, 5]
            assert [number for batch in batches for number in batch] == list(range(25))
            started = loop.time()
            assert await consumer.poll() == []
            assert round(loop.time() - started) == 5
            assert await consumer.poll(timeout=0) == []

    gantry_sim(story)


def test_what_was_polled_counts_as_read_at_the_next_poll(gantry_sim: Simulate) -> None:
    """
    A batch counts as read, and its offset is committed, when the next one is polled.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 20)
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            await consumer.poll()
            await asyncio.sleep(30)
            assert consumer.position(Q0) == 0
            await consumer.poll()
            await asyncio.sleep(30)
            assert consumer.position(Q0) == 10
            assert await consumer.committed(Q0) == 10

    gantry_sim(story)


def test_leaving_by_an_exception_leaves_the_last_batch_unread(gantry_sim: Simulate) -> None:
    """
    A consumer that is left by an exception does not commit its last batch.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 20)

        async def fail() -> None:
            async with lite(cluster) as consumer:
                consumer.subscribe("T")
                await consumer.poll()
                await consumer.poll()
                raise RuntimeError("the work failed")

        with pytest.raises(RuntimeError):
            await fail()
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            assert bodies(await consumer.poll()) == list(range(10, 20))
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            assert await consumer.poll() == []

    gantry_sim(story)


def test_without_auto_commit_only_commit_stores(gantry_sim: Simulate) -> None:
    """
    Without auto commit only `commit` stores offsets.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 30)
        async with lite(cluster, auto_commit=False) as consumer:
            consumer.subscribe("T")
            await consumer.poll()
            await consumer.commit()
            await consumer.poll()
            await consumer.poll()
        async with lite(cluster, auto_commit=False) as consumer:
            consumer.subscribe("T")
            assert bodies(await consumer.poll())[0] == 10

    gantry_sim(story)


def test_seeking_goes_anywhere_in_the_queue(gantry_sim: Simulate) -> None:
    """
    `seek`, `seek_to_begin` and `seek_to_end` move the position of a queue.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 30)
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            await consumer.wait_assigned(4)
            await consumer.poll()
            await consumer.seek(Q0, 25)
            assert bodies(await consumer.poll()) == [25, 26, 27, 28, 29]
            await consumer.seek_to_begin(Q0)
            assert bodies(await consumer.poll()) == list(range(10))
            await consumer.seek_to_end(Q0)
            assert await consumer.poll() == []
            with pytest.raises(ConsumerMisused, match="0 to 30"):
                await consumer.seek(Q0, 31)

    gantry_sim(story)


def test_assigned_queues_are_read_alone_and_never_shared(gantry_sim: Simulate) -> None:
    """
    Assigned queues are read without a rebalance, and exclude a subscription.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 5)
        await make_topic(cluster)
        async with lite(cluster) as one:
            one.assign([Q0])
            assert bodies(await one.poll()) == [0, 1, 2, 3, 4]
            assert one.assignment == [Q0]
            with pytest.raises(ConsumerMisused):
                one.subscribe("T")
            with pytest.raises(QueueNotAssigned):
                one.position(Queue("T", "broker-a", 1))
            one.assign([Queue("T", "broker-a", 1)])
            assert [message.body for message in await one.poll()] == [b"x"]

    gantry_sim(story)


def test_a_paused_queue_rests_while_others_go_on(gantry_sim: Simulate) -> None:
    """
    A paused queue is not read until it is resumed, while the others are.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 5)
        await make_topic(cluster)
        async with lite(cluster) as consumer:
            consumer.subscribe("T")
            consumer.pause([Q0])
            polled = [message async for message in polls(consumer, 3)]
            assert {message.queue.queue_id for message in polled} == {1, 2, 3}
            assert await consumer.poll(60) == []
            consumer.resume([Q0])
            assert bodies(await consumer.poll()) == [0, 1, 2, 3, 4]

    gantry_sim(story)


async def polls(consumer: LitePullConsumer, count: int) -> Any:
    """Messages of so many polls."""
    for _ in range(count):
        for message in await consumer.poll():
            yield message


def test_a_start_that_fails_leaves_no_connection_behind() -> None:
    """
    A start that fails while it loads offsets closes the connections again.
    """

    async def story() -> None:
        class Broken:
            async def load(self) -> None:
                raise OSError("no such disk")

        async with Cluster(memory=True) as cluster:
            consumer = PullConsumer(
                cluster.namesrv,
                group="g",
                offsets=Broken(),  # type: ignore[arg-type]
                network=cluster.network,
                clock=cluster.clock,
            )
            before = list(_instances.get(asyncio.get_running_loop(), []))
            with pytest.raises(OSError, match="no such disk"):
                await consumer.start()
            assert before == list(_instances.get(asyncio.get_running_loop(), []))

    simulate(story)


def test_who_waits_for_queues_is_told_when_the_consumer_closes() -> None:
    """
    A lite pull consumer that closes ends `wait_assigned` by Closed; nobody waits for ever.
    """

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            async with LitePullConsumer(cluster.namesrv, group="g", **ports(cluster)) as consumer:
                waiting = asyncio.create_task(consumer.wait_assigned())
                await asyncio.sleep(1)
            with pytest.raises(Closed):
                await waiting

    simulate(story)
