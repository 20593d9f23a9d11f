"""Messages that wait for company: what leaves as a batch, when, and what each sender gets."""

import asyncio
from collections.abc import Callable

import pytest

from gantrymq import Message, ProducerOptions, SendFailed, SendResult
from gantrymq.protocol.command import Command
from gantrymq.testing import Cluster

Simulate = Callable[..., None]
BATCH, SINGLE = 320, 310


class Requests:
    """A hook that notes the codes of all sends."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def before_request(self, address: str, request: Command) -> None:
        if request.code in (BATCH, SINGLE):
            self.codes.append(request.code)

    def after_response(self, address: str, request: Command, response: Command) -> None:
        """Nothing to note."""


def test_tasks_share_a_request(gantry_sim: Simulate) -> None:
    """
    What 64 tasks send in one turn of the loop is one request; each gets a result of its own.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=2)
        seen = Requests()
        async with cluster.producer(options=ProducerOptions(linger_ms=0), hooks=[seen]) as producer:
            await producer.send(Message("T", "first"))
            results = await asyncio.gather(
                *(producer.send(Message("T", f"{n}")) for n in range(64))
            )
        assert seen.codes == [SINGLE, BATCH]
        assert [result.offset for result in results] == list(
            range(results[0].offset, results[0].offset + 64)
        )
        assert len({result.msg_id for result in results}) == 64
        async with cluster.admin() as admin:
            for n in (0, 30, 63):
                found = await admin.message(results[n].offset_msg_id)
                assert (found.body, found.msg_id) == (f"{n}".encode(), results[n].msg_id)

    gantry_sim(story)


def test_a_batch_leaves_in_time_or_when_it_is_full(gantry_sim: Simulate) -> None:
    """
    The first message waits no longer than `linger_ms`; a full batch does not wait.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        loop, seen = asyncio.get_running_loop(), Requests()
        options = ProducerOptions(linger_ms=200)
        async with cluster.producer(options=options, hooks=[seen]) as producer:
            await producer.send(Message("T", "x"), timeout=3)
            seen.codes.clear()
            began = loop.time()
            early = producer.submit(Message("T", "1"))
            await asyncio.sleep(0.1)
            late = producer.submit(Message("T", "2"))
            await early
            assert 0.2 <= loop.time() - began < 0.3
            assert late.done()
            began = loop.time()
            await asyncio.gather(*(producer.submit(Message("T", "y")) for _ in range(256)))
            assert loop.time() - began < 0.1
            assert seen.codes == [BATCH, BATCH]

    gantry_sim(story)


def test_what_has_a_wish_of_its_own_does_not_wait(gantry_sim: Simulate) -> None:
    """
    A chosen queue, a selector, a time limit, a sharding key or a delay: such a message leaves at
    once and alone.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=2)
        loop, seen = asyncio.get_running_loop(), Requests()
        options = ProducerOptions(linger_ms=5_000)
        async with cluster.producer(options=options, hooks=[seen]) as producer:
            queues = await producer.queues("T")
            began = loop.time()
            await producer.send(Message("T", "a"), queue=queues[1])
            await producer.send(Message("T", "b"), selector=lambda each: each[0])
            await producer.send(Message("T", "c"), timeout=2)
            await producer.send(Message("T", "d", sharding_key="k"))
            await producer.submit(Message("T", "e", delay=1))
            assert loop.time() - began < 1
            assert seen.codes == [SINGLE] * 5

    gantry_sim(story)


def test_flush_and_close_let_everything_leave(gantry_sim: Simulate) -> None:
    """
    `flush`, `send_many` and the end of the block do not wait for the time to pass.
    """

    async def story(cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        options = ProducerOptions(linger_ms=60_000)
        began = loop.time()
        async with cluster.producer(options=options) as producer:
            flushed = [producer.submit(Message(topic, "x")) for topic in "ABA"]
            await producer.flush()
            assert all(future.done() for future in flushed)
            sent = await producer.send_many(Message("A", "y") for _ in range(10))
            assert all(isinstance(result, SendResult) for result in sent)
            left = producer.submit(Message("A", "z"))
        assert left.result().status == "SEND_OK"
        assert loop.time() - began < 10

    gantry_sim(story)


def test_one_refused_message_fails_alone(gantry_sim: Simulate) -> None:
    """
    A message that the broker finds illegal fails by itself; those that waited with it are stored. A
    sender that gave up disturbs nobody.
    """

    async def story(cluster: Cluster) -> None:
        many = {f"p{n}": "x" for n in range(2_000)}
        async with cluster.producer(options=ProducerOptions(linger_ms=10)) as producer:
            good = [producer.submit(Message("T", f"{n}")) for n in range(5)]
            bad = producer.submit(Message("T", "bad", properties=many))
            good[2].cancel()
            with pytest.raises(SendFailed, match="userPropertyMaxNum"):
                await bad
            good.pop(2)
            assert {(await future).status for future in good} == {"SEND_OK"}

    gantry_sim(story)


def test_errors_reach_every_sender(gantry_sim: Simulate) -> None:
    """
    When a batch cannot be sent each of its senders gets the error.
    """

    async def story(cluster: Cluster) -> None:
        options = ProducerOptions(linger_ms=10, send_timeout_ms=500, retries=0)
        async with cluster.producer(options=options) as producer:
            await producer.send(Message("T", "x"))
            await cluster.stop_broker("broker-a")
            futures = [producer.submit(Message("T", "y")) for _ in range(3)]
            outcomes = await asyncio.gather(*futures, return_exceptions=True)
        assert [isinstance(each, Exception) for each in outcomes] == [True] * 3

    gantry_sim(story)
