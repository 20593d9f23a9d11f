"""Accidents that users of this field report again and again: each is a story with its end."""

import asyncio
from collections import Counter

import pytest
from flaky import FlakyLine
from peer import Run

from gantrymq import ConsumerOptions, Delivery, Message
from gantrymq.client.admin.letters.dead_letters import DeadLetters
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.consume.queues.pull_loop import PullLoop
from gantrymq.model import Queue, retry_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
HOST = "127.0.0.1"


async def fill(cluster: Cluster, first: int, count: int) -> None:
    async with cluster.producer() as producer:
        await producer.send_many(Message("orders", str(n)) for n in range(first, first + count))


async def until_all(seen: "Counter[int] | list[int]", count: int, seconds: float = 600) -> None:
    async with asyncio.timeout(seconds):
        while len(set(seen)) < count:
            await asyncio.sleep(0.05)


class TestANetworkCutOfTwoMinutes:
    @pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
    def test_consumption_resumes_when_nothing_was_said_at_all(self, ordered: bool) -> None:
        """
        Every byte vanishes for two minutes, no connection is closed. Afterwards everything goes on
        by itself within half a minute, nothing is lost, and nothing old is consumed again.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                network = cluster.network
                assert isinstance(network, MemoryNetwork)
                await cluster.create_topic("orders", 4)
                seen: Counter[int] = Counter()
                async with cluster.consumer("g", ordered=ordered, options=FIRST) as consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        seen[int(message.body)] += 1

                    consumer.subscribe("orders")
                    await fill(cluster, 0, 200)
                    await until_all(seen, 200)
                    await asyncio.sleep(6)  # the progress is stored
                    network.part(HOST, HOST)
                    await asyncio.sleep(120)
                    network.join(HOST, HOST)
                    await asyncio.sleep(30)
                    await fill(cluster, 200, 200)
                    await until_all(seen, 400, 60)
                assert {1} == set(seen.values())

        simulate(work)

    @pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
    def test_the_others_take_over_and_the_lost_member_comes_back(self, ordered: bool) -> None:
        """
        One of two members is cut off: the other one consumes all meanwhile; when the line is back
        the queues are shared again.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 4)
                seen: Counter[int] = Counter()
                line = FlakyLine(cluster.network)
                ports = {**cluster._ports, "network": line}
                lost = Consumer(cluster.namesrv, group="g", ordered=ordered, options=FIRST, **ports)
                other = cluster.consumer("g", ordered=ordered, options=FIRST)
                async with lost, other:
                    for consumer in (lost, other):

                        @consumer.handler
                        async def handle(message: Delivery) -> None:
                            seen[int(message.body)] += 1

                        consumer.subscribe("orders")
                    await asyncio.gather(lost.wait_assigned(2), other.wait_assigned(2))
                    await asyncio.sleep(1)
                    line.cut()
                    await fill(cluster, 0, 200)
                    await until_all(seen, 200, 15)
                    await asyncio.sleep(120)
                    line.mend()
                    await asyncio.sleep(40)
                    assert [2, 2] == [len(lost.assignment), len(other.assignment)]
                    await fill(cluster, 200, 200)
                    await until_all(seen, 400, 15)

        simulate(work)


class TestRestartingABusyConsumer:
    def test_doubles_only_what_was_running(self) -> None:
        """
        A consumer with slow handlers is closed and started ten times in the middle of its work. No
        message is lost; only the ones that were running then may come twice, and no copy of any
        appears in the retry topic.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 4)
                seen: Counter[int] = Counter()
                running_at_close = 0
                await fill(cluster, 0, 600)
                for _ in range(10):
                    running = 0
                    async with cluster.consumer("g", options=FIRST, close_grace=0.1) as consumer:

                        @consumer.handler
                        async def handle(message: Delivery) -> None:
                            nonlocal running
                            seen[int(message.body)] += 1
                            running += 1
                            await asyncio.sleep(1)
                            running -= 1

                        consumer.subscribe("orders")
                        await asyncio.sleep(2.5)
                        running_at_close += running
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def finish(message: Delivery) -> None:
                        seen[int(message.body)] += 1

                    consumer.subscribe("orders")
                    await until_all(seen, 600)
                    await asyncio.sleep(60)
                again = sum(seen.values()) - 600
                # What ran, and what was finished behind it: progress is the smallest unfinished.
                assert 0 < again <= running_at_close * 2
                async with cluster.admin() as admin:
                    queue = Queue(retry_topic("g"), "broker-a", 0)
                    assert 0 == await admin.max_offset(queue)

        simulate(work)

    def test_a_killed_one_leaves_no_copies_behind(self) -> None:
        """
        Its line is cut in the middle of the work: the next member gets what was not finished, from
        the topic itself, and failures that cannot be sent back are not multiplied.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 4)
                seen: Counter[int] = Counter()
                await fill(cluster, 0, 100)
                line = FlakyLine(cluster.network)
                ports = {**cluster._ports, "network": line}
                killed = Consumer(cluster.namesrv, group="g", options=FIRST, **ports)

                @killed.handler
                async def fail(message: Delivery) -> None:
                    line.cut()
                    await asyncio.sleep(1)
                    raise ValueError("and it cannot even be sent back")

                await killed.start()
                killed.subscribe("orders")
                await asyncio.sleep(5)
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        seen[int(message.body)] += 1

                    consumer.subscribe("orders")
                    await until_all(seen, 100)
                    await asyncio.sleep(300)
                await killed.close()
                assert {1} == set(seen.values())

        simulate(work)


class TestADeadDatabase:
    def test_does_not_push_everything_into_retry(self, run: Run) -> None:
        """
        A handler that finds its database down holds the consumer and tries its own message again
        later: the others wait, and only the few that were running go through the retry topic.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 4)
            await fill(cluster, 0, 500)
            seen: Counter[int] = Counter()
            failed = 0
            down = True
            async with cluster.consumer("g", options=FIRST, concurrency=5) as consumer:

                @consumer.handler
                async def handle(message: Delivery) -> None:
                    nonlocal failed
                    await asyncio.sleep(0)
                    if down:
                        failed += 1
                        consumer.pause(30)
                        await message.retry(1, reason="the database is down")
                    else:
                        seen[int(message.body)] += 1

                consumer.subscribe("orders")
                await asyncio.sleep(1)
                assert 1 <= failed <= 5
                down = False
                consumer.resume()
                await until_all(seen, 500, 30)
            assert ({1}, 500) == (set(seen.values()), len(seen))

        run(work)

    def test_a_poison_message_alone_is_retried_and_the_rest_goes_on(self, run: Run) -> None:
        """
        Without a hold one message that fails costs the others nothing.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, 0, 50)
            seen: Counter[int] = Counter()
            async with cluster.consumer("g", options=FIRST, max_retries=1) as consumer:

                @consumer.handler
                async def handle(message: Delivery) -> None:
                    if message.body == b"7":
                        await message.retry(1)
                    else:
                        seen[int(message.body)] += 1

                consumer.subscribe("orders")
                await until_all(seen, 49, 30)
                async with DeadLetters(cluster.namesrv, group="g", **cluster._ports) as letters:
                    async with asyncio.timeout(10):
                        while not (page := await letters.page()).letters:
                            await asyncio.sleep(0.05)
            assert [b"7"] == [letter.message.body for letter in page.letters]
            assert {1} == set(seen.values())

        run(work)


class TestAPullThatDies:
    def test_is_found_and_begun_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        However a queue's pulls end, the next look at the queues takes it afresh.
        """
        run_pulls = PullLoop.run
        deaths = 0

        async def die_once(self: PullLoop, claim: object) -> None:
            nonlocal deaths
            if deaths == 0:
                deaths += 1
                raise SystemError("nobody expected this")
            await run_pulls(self, claim)  # type: ignore[arg-type]

        monkeypatch.setattr(PullLoop, "run", die_once)

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 4)
                await fill(cluster, 0, 40)
                seen: Counter[int] = Counter()
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        seen[int(message.body)] += 1

                    consumer.subscribe("orders")
                    await until_all(seen, 40, 45)
                assert (1, {1}) == (deaths, set(seen.values()))

        simulate(work)

    def test_that_hangs_is_found_as_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        A queue without a pull for two minutes is taken afresh.
        """
        once = PullLoop._once
        hung = 0

        async def hang_once(self: PullLoop, claim: object) -> float:
            nonlocal hung
            if hung == 0:
                hung += 1
                await asyncio.sleep(10**6)
            return await once(self, claim)  # type: ignore[arg-type]

        monkeypatch.setattr(PullLoop, "_once", hang_once)

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 4)
                await fill(cluster, 0, 40)
                seen: Counter[int] = Counter()
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        seen[int(message.body)] += 1

                    consumer.subscribe("orders")
                    await until_all(seen, 40, 160)
                assert (1, {1}) == (hung, set(seen.values()))

        simulate(work)
