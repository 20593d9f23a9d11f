"""What is cut off in the middle: a verb, a handler, a wait, a run. Nothing is lost or left over."""

import asyncio
from contextlib import suppress

import pytest
from peer import Run

from gantrymq import App, Message, Queue
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.errors import Closed
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.testing.cluster import Cluster

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


async def send(cluster: Cluster, *bodies: str) -> None:
    queue = Queue("T", "broker-a", 0)
    async with cluster.producer("sender") as producer:
        for body in bodies:
            await producer.send(Message("T", body), queue=queue)


async def next_message(consumer: Consumer) -> Delivery:
    async with asyncio.timeout(20):
        return await anext(aiter(consumer))


async def cut_off(message: Delivery, verb: str) -> None:
    """Begin a verb and cancel it before the broker can have answered."""
    task = asyncio.create_task(getattr(message, verb)())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("ordered", [False, True])
def test_a_message_whose_verb_is_cut_off_is_delivered_again(run: Run, ordered: bool) -> None:
    """
    Nobody knows whether the broker took it back: the queue must not wait for it for ever.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        await send(cluster, "1", "2")
        async with cluster.consumer("g", options=FIRST, ordered=ordered) as consumer:
            consumer.subscribe("T")
            await cut_off(await next_message(consumer), "dead")
            bodies = set()
            while len(bodies) < 2:
                message = await next_message(consumer)
                bodies.add(message.body)
                await message.ack()
            assert {b"1", b"2"} == bodies

    run(work)


def test_what_was_acknowledged_in_order_is_stored_although_one_is_open_at_close(run: Run) -> None:
    """
    The next member begins with the open one, not with what was done before it.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        await send(cluster, "1", "2", "3")
        async with cluster.consumer("g", options=FIRST, ordered=True) as consumer:
            consumer.subscribe("T")
            for _ in range(2):
                await (await next_message(consumer)).ack()
            await next_message(consumer)
        assert set() == {task for task in asyncio.all_tasks() if "Claims" in repr(task.get_coro())}
        async with cluster.consumer("g", options=FIRST, ordered=True) as consumer:
            consumer.subscribe("T")
            assert b"3" == (await next_message(consumer)).body

    run(work)


def test_a_handler_that_ends_cancelled_is_one_that_failed(run: Run) -> None:
    """
    It waited for something that somebody cancelled. The worker goes on, the message is retried.
    """
    seen = []

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        await send(cluster, "1", "2")
        done = asyncio.Event()
        async with cluster.consumer("g", options=FIRST, concurrency=1) as consumer:
            consumer.subscribe("T")

            @consumer.handler
            async def handle(message: Delivery) -> None:
                seen.append(message.body)
                if message.body == b"1" and not message.reconsume_times:
                    inner = asyncio.create_task(asyncio.sleep(60))
                    asyncio.get_running_loop().call_soon(inner.cancel)
                    await inner
                if message.body == b"2":
                    done.set()

            async with asyncio.timeout(20):
                await done.wait()
            async with cluster.admin() as admin:
                assert "%RETRY%g" in await admin.topics()

    run(work)
    assert [b"1", b"2"] == seen


def test_an_app_that_is_cancelled_leaves_nothing_behind(run: Run) -> None:
    """
    `run` is a task like any other.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        app = App(
            cluster.namesrv, group="g", network=cluster.network, clock=cluster.clock,
            rng=cluster.rng,
        )  # fmt: skip

        @app.on("T")
        async def handle(body: bytes) -> None:
            raise AssertionError(body)

        async with cluster.producer("another"):
            before = asyncio.all_tasks()
            running = asyncio.create_task(app.run())
            await asyncio.sleep(1)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            left = [repr(task) for task in asyncio.all_tasks() - before]
            # What can be released is a wait of the cluster itself.
            assert [] == [t for t in left if "Event.wait" in t and "_release_waiter" not in t]

    run(work)


def test_who_waits_for_queues_hears_of_the_end(run: Run) -> None:
    """
    Closing ends the wait with an error, and a wait that is over is not kept.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        consumer = cluster.consumer("g")
        async with consumer:
            consumer.subscribe("T")
            for _ in range(3):
                assert 1 == len(await consumer.wait_assigned())
            waiting = asyncio.create_task(consumer.wait_assigned(2))
            await asyncio.sleep(0.1)
            waiters = consumer._running.waiters
        with pytest.raises(Closed):
            async with asyncio.timeout(5):
                await waiting
        assert {} == waiters._waiters

    run(work)
