"""The simple consumer: borrowing, acknowledging, waiting on several brokers, giving back."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
from peer import Run

from gantrymq import ConfigError, LoanOver, Message, NoRoute, Popped, PopUnsupported
from gantrymq import sync as blocking
from gantrymq.base.errors import GantryError
from gantrymq.client.consume.pop.simple_consumer import SimpleConsumer
from gantrymq.client.core.consumer_errors import AlreadyFinished, ConsumerMisused
from gantrymq.client.core.errors import Closed, NotStarted
from gantrymq.client.core.options import ClientOptions
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


async def send(cluster: Cluster, count: int, topic: str = "orders", **more: Any) -> None:
    async with cluster.producer() as producer:
        for number in range(count):
            await producer.send(Message(topic, b"%d" % number, **more))


async def receive_all(consumer: SimpleConsumer, count: int) -> list[Popped]:
    found: list[Popped] = []
    while len(found) < count:
        found += await consumer.receive(32, wait=5)
    return found


def test_messages_are_borrowed_and_acknowledged(run: Run) -> None:
    """
    One by one and many at once; with everything that was sent in them.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=3)
        await send(cluster, 10, tags="t", keys=["k1", "k2"], properties={"mine": "yes"})
        async with cluster.simple_consumer(invisible=1) as consumer:
            consumer.subscribe("orders")
            found = await receive_all(consumer, 10)
            await found[0].ack()
            await consumer.ack_many(found[1:])
            assert [] == await consumer.receive(wait=1.5)

        assert {b"%d" % number for number in range(10)} == {m.body for m in found}
        first = found[0]
        assert ("orders", "t", ("k1", "k2")) == (first.topic, first.tags, first.keys)
        assert ("yes", 0) == (first.properties["mine"], first.reconsume_times)

    run(work)


def test_what_is_not_acknowledged_comes_back(run: Run) -> None:
    """
    Under its own topic and id, counted; `retry` brings it back sooner.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 2)
        async with cluster.simple_consumer(invisible=timedelta(seconds=1)) as consumer:
            consumer.subscribe("orders")
            first, second = await receive_all(consumer, 2)
            await first.retry()
            sooner = (await consumer.receive(wait=5))[0]
            later = (await consumer.receive(wait=5))[0]
            await consumer.ack_many([sooner, later])

        assert [first.msg_id, second.msg_id] == [sooner.msg_id, later.msg_id]
        assert ("orders", 1) == (sooner.topic, sooner.reconsume_times)

    run(work)


def test_a_loan_can_be_extended(run: Run) -> None:
    """
    As often as need be, while it is open; then it is over, and asking says so.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 2)
        async with cluster.simple_consumer(invisible=1) as consumer:
            consumer.subscribe("orders")
            kept, lost = await receive_all(consumer, 2)
            await kept.extend(30)
            await kept.extend(60)
            again = await consumer.receive(wait=5)
            with pytest.raises(LoanOver):
                await lost.extend(10)
            await kept.ack()

        assert [lost.msg_id] == [message.msg_id for message in again]

    run(work)


def test_a_verb_counts_once(run: Run) -> None:
    """
    Whatever comes second raises and says what came first.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 1)
        async with cluster.simple_consumer() as consumer:
            consumer.subscribe("orders")
            (message,) = await consumer.receive()
            await message.ack()
            for verb in (message.ack, message.retry, lambda: message.extend(1)):
                with pytest.raises(AlreadyFinished, match="ack"):
                    await verb()
            with pytest.raises(AlreadyFinished):
                await consumer.ack_many([message])

    run(work)


def test_two_topics_on_two_brokers_are_waited_for_together(run: Run) -> None:
    """
    A message wakes the wait wherever it arrives.
    """

    async def work(cluster: Cluster) -> None:
        for topic in ("orders", "payments"):
            await cluster.create_topic(topic, queues=2)
        async with cluster.simple_consumer() as consumer, cluster.producer() as producer:
            consumer.subscribe("orders")
            consumer.subscribe("payments")
            assert [] == await consumer.receive(wait=0.2)
            found = set()
            for queue in [*await producer.queues("orders"), *await producer.queues("payments")]:
                waiting = asyncio.create_task(consumer.receive(wait=10))
                await asyncio.sleep(0.05)
                await producer.send(Message(queue.topic, str(queue)), queue=queue)
                for message in await waiting:
                    await message.ack()
                    found.add(message.body.decode())

            assert 8 == len(found)

    run(work, brokers=2)


def test_messages_can_be_iterated_over(run: Run) -> None:
    """
    Until the consumer is closed, by whomever.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=2)
        await send(cluster, 5)
        found = []
        consumer = cluster.simple_consumer()
        await consumer.start()
        consumer.subscribe("orders")
        async for message in consumer:
            await message.ack()
            found.append(message.body)
            if len(found) == 5:
                asyncio.get_running_loop().call_later(0.1, asyncio.ensure_future, consumer.close())

        assert 5 == len(found)

    run(work)


def test_tags_and_sql_are_chosen_by_the_broker(run: Run) -> None:
    """
    As with every other consumer.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        async with cluster.producer() as producer:
            for number in range(6):
                tag, size = ("a", "b")[number % 2], str(number)
                await producer.send(Message("orders", size, tags=tag, properties={"size": size}))
        async with cluster.simple_consumer("tags") as consumer:
            consumer.subscribe("orders", tags="a || c")
            by_tag = await receive_all(consumer, 3)
        async with cluster.simple_consumer("sql") as consumer:
            consumer.subscribe("orders", sql="size >= 4")
            by_sql = await receive_all(consumer, 2)

        assert [b"0", b"2", b"4"] == [message.body for message in by_tag]
        assert [b"4", b"5"] == [message.body for message in by_sql]

    run(work)


def test_ordered_messages_come_one_batch_at_a_time(run: Run) -> None:
    """
    The next ones only after the last are acknowledged; a retried one before its successors.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 4)
        async with cluster.simple_consumer(ordered=True) as consumer:
            consumer.subscribe("orders")
            first, second = await consumer.receive(2)
            assert [] == await consumer.receive(2, wait=0.3)
            await first.ack()
            await second.retry()
            again = await consumer.receive(1, wait=5)
            await again[0].ack()
            rest = await consumer.receive(4)

        assert [b"0", b"1"] == [first.body, second.body]
        assert (b"1", 1) == (again[0].body, again[0].reconsume_times)
        assert [b"2", b"3"] == [message.body for message in rest]

    run(work)


def test_a_cancelled_receive_loses_nothing(run: Run) -> None:
    """
    What its answer brings goes to whoever receives next.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        async with cluster.simple_consumer() as consumer:
            consumer.subscribe("orders")
            await consumer.receive(wait=0.1)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await consumer.receive(wait=10)
            await send(cluster, 1)

            assert [b"0"] == [message.body for message in await consumer.receive(wait=3)]

    run(work)


def test_the_binary_header_does_not_stand_in_the_way(run: Run) -> None:
    """
    Pop codes do not fit its 16 bits: these requests travel as JSON whatever was chosen.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 1)
        options = ClientOptions(serialize="ROCKETMQ")
        async with cluster.simple_consumer(client=options) as consumer:
            consumer.subscribe("orders")
            (message,) = await consumer.receive()
            await message.ack()

            assert b"0" == message.body

    run(work)


def test_the_blocking_one_does_the_same() -> None:
    """
    `gantrymq.sync.SimpleConsumer` receives and acknowledges over TCP.
    """

    async def main() -> tuple[list[bytes], list[str]]:
        async with Cluster() as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, 4)
            return await asyncio.to_thread(use, cluster.namesrv)

    def use(namesrv: str) -> tuple[list[bytes], list[str]]:
        said = []
        with blocking.SimpleConsumer(namesrv, group="g", invisible=30) as consumer:
            consumer.subscribe("orders")
            found = consumer.receive(2)
            found[0].ack()
            found[1].extend(60)
            try:
                found[0].retry()
            except AlreadyFinished as error:
                said.append(str(error))
            for message in consumer:
                found.append(message)
                if len(found) == 4:
                    break
            consumer.ack_many(found[1:])
        return [message.body for message in found], said

    bodies, said = asyncio.run(main())

    assert [b"0", b"1", b"2", b"3"] == bodies
    assert 1 == len(said)


def test_the_groups_progress_shows_what_was_popped_and_what_is_retried(run: Run) -> None:
    """
    An operator sees how far the group is, its retries included, while a member is there.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 4)
        async with cluster.simple_consumer("g", invisible=0.5) as consumer:
            consumer.subscribe("orders")
            (first, *_) = await receive_all(consumer, 3)
            await first.retry()
            for message in await consumer.receive(wait=5):
                await message.ack()
            async with cluster.admin() as admin:
                progress = await admin.consume_stats("g")

        rows = {queue.topic: row for queue, row in progress.queues.items()}
        assert (4, 4) == (rows["orders"].consumer_offset, rows["orders"].broker_offset)
        assert rows["%RETRY%g_orders"].broker_offset >= 1

    run(work)


# memory only: long waits


def in_memory(work: Any, **settings: Any) -> Any:
    async def main() -> Any:
        async with Cluster(memory=True, **settings) as cluster:
            return await work(cluster)

    return simulate(main)


def test_many_members_share_one_queue() -> None:
    """
    One queue, three members, each message once: nobody owns the queue.
    """

    async def work(cluster: Cluster) -> list[list[bytes]]:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 60)
        shares: list[list[bytes]] = [[], [], []]

        async def member(share: list[bytes]) -> None:
            async with cluster.simple_consumer("g") as consumer:
                consumer.subscribe("orders")
                while found := await consumer.receive(5, wait=2):
                    await consumer.ack_many(found)
                    share += [message.body for message in found]
                    await asyncio.sleep(0.01)

        await asyncio.gather(*map(member, shares))
        return shares

    shares = in_memory(work)

    assert {b"%d" % number for number in range(60)} == {body for s in shares for body in s}
    assert 60 == sum(map(len, shares))
    assert min(map(len, shares)) > 5


def test_a_broker_that_restarts_is_waited_for() -> None:
    """
    receive goes on as soon as it is back; handles from before still count.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 1)
        async with cluster.simple_consumer(invisible=120) as consumer:
            consumer.subscribe("orders")
            (before,) = await consumer.receive()
            waiting = asyncio.create_task(consumer.receive(wait=60))
            await asyncio.sleep(1)
            await cluster.stop_broker()
            await asyncio.sleep(5)
            await cluster.start_broker()
            await before.ack()
            await send(cluster, 2)
            return [message.body for message in await waiting]

    assert b"0" in in_memory(work)


def test_one_dead_broker_does_not_stop_the_others() -> None:
    """
    Its messages wait; those of the other broker come.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        await cluster.create_topic("orders", queues=1)
        async with cluster.simple_consumer() as consumer, cluster.producer() as producer:
            consumer.subscribe("orders")
            await consumer.receive(wait=0.1)
            await cluster.kill_broker("broker-b")
            queue = (await producer.queues("orders"))[0]
            await producer.send(Message("orders", b"alive"), queue=queue)
            return [message.body for message in await consumer.receive(wait=30)]

    assert [b"alive"] == in_memory(work, brokers=2)


def test_a_new_group_begins_with_what_comes_or_with_everything() -> None:
    """
    `from_first` asks for what is there; without it a queue whose beginning is gone is joined at
    its end.
    """

    async def work(cluster: Cluster) -> tuple[int, int]:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 3)
        counts = []
        for from_first in (True, False):
            async with cluster.simple_consumer(f"g{from_first}", from_first=from_first) as member:
                member.subscribe("orders")
                counts.append(len(await member.receive()))
        return counts[0], counts[1]

    assert (3, 3) == in_memory(work)


def test_misuse_is_named() -> None:
    """
    Before anything is sent.
    """

    async def work(cluster: Cluster) -> None:
        with pytest.raises(ConfigError, match="invisible"):
            cluster.simple_consumer(invisible=0)
        consumer = cluster.simple_consumer()
        with pytest.raises(NotStarted):
            await consumer.receive()
        async with consumer:
            with pytest.raises(ConsumerMisused, match="subscribe"):
                await consumer.receive()
            consumer.subscribe("nowhere")
            with pytest.raises(ConsumerMisused, match="32"):
                await consumer.receive(33)
            with pytest.raises(NoRoute):
                await consumer.receive(wait=1)
        with pytest.raises(Closed):
            await consumer.receive()

    in_memory(work)


def test_an_older_broker_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    RocketMQ 4 answers that it does not know the request: the error says what would.
    """
    from gantrymq.broker import routes

    whole = routes.broker_routes

    def older(*parts: Any) -> Any:
        return whole(*parts).without(200050)

    monkeypatch.setattr("gantrymq.broker.serving.broker_routes", older)

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        async with cluster.simple_consumer() as consumer:
            consumer.subscribe("orders")
            with pytest.raises(PopUnsupported, match="RocketMQ 5"):
                await consumer.receive(wait=1)

    in_memory(work)


class RefuseAcks:
    """Stops the first acknowledgements of a client."""

    def __init__(self, count: int) -> None:
        self.left = count

    def before_request(self, address: str, command: Command) -> None:
        if command.code in (RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE) and self.left:
            self.left -= 1
            raise GantryError("not now")

    def after_response(self, address: str, command: Command, answer: Command) -> None:
        """Nothing to see."""


def test_an_acknowledgement_that_failed_may_be_tried_again(run: Run) -> None:
    """
    The loan is open until the broker knows better, one by one and many at once.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 3)
        async with cluster.simple_consumer(hooks=[RefuseAcks(2)], invisible=1) as consumer:
            consumer.subscribe("orders")
            found = await receive_all(consumer, 3)
            with pytest.raises(GantryError, match="not now"):
                await found[0].ack()
            with pytest.raises(GantryError, match="not now"):
                await consumer.ack_many(found)
            assert [None] * 3 == [message.finished for message in found]
            await found[0].ack()
            with pytest.raises(AlreadyFinished):
                await consumer.ack_many([found[1], found[0]])
            await consumer.ack_many([*found[1:], found[1]])
            assert ["ack"] * 3 == [message.finished for message in found]
            assert [] == await consumer.receive(wait=1.5)

    run(work)


def test_a_loop_that_is_left_leaves_the_rest_to_the_next(run: Run) -> None:
    """
    They were borrowed together; nobody waits until the time of the rest is over.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, 5)
        bodies = []
        async with cluster.simple_consumer(invisible=60) as consumer:
            consumer.subscribe("orders")
            for _ in range(5):
                async with asyncio.timeout(5):
                    async for message in consumer:
                        bodies.append(message.body)
                        await message.ack()
                        break
        assert [b"%d" % number for number in range(5)] == bodies

    run(work)


def test_a_blocking_loop_that_is_left_leaves_the_rest_as_well() -> None:
    """
    Whatever thread comes next.
    """

    def read(namesrv: str) -> list[bytes]:
        bodies = []
        with blocking.SimpleConsumer(
            namesrv, group="left", invisible=60, from_first=True
        ) as consumer:
            consumer.subscribe("orders")
            for _ in range(3):
                for message in consumer:
                    bodies.append(message.body)
                    message.ack()
                    break
        return bodies

    async def main() -> None:
        async with asyncio.timeout(30), Cluster(memory=False) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, 3)
            assert [b"0", b"1", b"2"] == await asyncio.to_thread(read, cluster.namesrv)

    asyncio.run(main())
