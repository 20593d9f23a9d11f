"""Plain sends of one turn leave together, and are otherwise sends like all others."""

import asyncio
from collections.abc import Callable

import pytest
from scripted import SILENT, World, play

from gantrymq import ClientOptions, Message, PullConsumer
from gantrymq.client.core.errors import SendFailed
from gantrymq.client.produce.producer import Producer
from gantrymq.remoting.connection import Connection
from gantrymq.testing import Cluster

Simulate = Callable[..., None]
X = Message("T", "x")


async def warmed(world: World, producer: Producer) -> None:
    """Send to every queue, so that plain sends have connections; forget that."""
    for _ in range(12):
        await producer.send(X)
    for broker in world.brokers:
        broker.sends.clear()


def test_sends_of_a_turn_leave_in_one_write_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Sends of one turn are spread over all queues, and each broker gets its own in one piece.
    """
    writes: list[int] = []
    flush = Connection._flush

    def counted(connection: Connection) -> None:
        writes.append(len(connection._out))
        flush(connection)

    async def story(world: World) -> None:
        async with world.producer() as producer:
            await warmed(world, producer)
            with monkeypatch.context() as patched:
                patched.setattr(Connection, "_flush", counted)
                futures = [producer.submit(X) for _ in range(24)]
                await asyncio.sleep(0)
                assert [each for each in writes if each] == [8, 8, 8]
            results = await asyncio.gather(*futures)
        assert [len(broker.sends) for broker in world.brokers] == [8, 8, 8]
        assert len({result.queue for result in results}) == 12
        assert len({result.msg_id for result in results}) == 24
        sent = {each.ext["i"] for broker in world.brokers for each in broker.sends}
        assert sent == {f"UNIQ_KEY\x01{result.msg_id}\x02" for result in results}

    play(story)


def test_a_plain_send_is_tried_again_with_its_id() -> None:
    """
    After a code that is worth a retry, a plain send goes to two other brokers with the same id.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            await warmed(world, producer)
            world.plan(1, 1, 1)
            with pytest.raises(SendFailed, match="after 3 tries"):
                await producer.send(X)
            sends = [send for broker in world.brokers for send in broker.sends]
            assert len({send.ext["i"] for send in sends}) == 1
            assert len(sends) == 3
            world.plan(1, 1, 1)
            with pytest.raises(SendFailed, match="after 1 try"):
                await producer.submit(X)
            assert not producer._running.window.count

    play(story)


def test_a_plain_send_without_an_answer_times_out() -> None:
    """
    A broker that does not answer costs a plain send its time, and the window has room again.
    """

    async def story(world: World) -> None:
        async with world.producer(retries=0, send_timeout_ms=2_000) as producer:
            await warmed(world, producer)
            world.plan(SILENT, SILENT, SILENT)
            began = asyncio.get_running_loop().time()
            with pytest.raises(SendFailed, match="did not answer in time"):
                await producer.send(X)
            assert 1.9 < asyncio.get_running_loop().time() - began < 2.1
            assert (producer._running.window.count, producer._running.window.bytes) == (0, 0)

    play(story)


def test_a_connection_that_is_lost_in_the_turn_is_made_anew() -> None:
    """
    Plain sends whose connection closes before they leave go the ordinary way, over a new one.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            await warmed(world, producer)
            futures = [producer.submit(X) for _ in range(24)]
            connections = producer._running.instance.connections
            for broker in world.brokers[:2]:
                connection = connections.ready(broker.address)
                assert connection is not None
                connection.open = False
                connection.transport.abort()
            assert len(await asyncio.gather(*futures)) == 24
        assert sum(len(broker.sends) for broker in world.brokers) == 24

    play(story)


@pytest.mark.parametrize("serialize", ["JSON", "ROCKETMQ"])
def test_no_send_overtakes_another(gantry_sim: Simulate, serialize: str) -> None:
    """
    Plain sends and others to a topic with one queue are stored in the order of the calls.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        client = ClientOptions(serialize=serialize)  # type: ignore[arg-type]
        async with cluster.producer(client=client) as producer:
            (queue,) = await producer.queues("T")
            futures = []
            for number in range(60):
                body = str(number)
                if number % 7 == 3:
                    message = Message("T", body, properties={"a": "b"})
                elif number % 7 == 5:
                    message = Message("T", body, sharding_key="k")
                else:
                    message = Message("T", body, "tag", ["k1", "k2"], flag=number)
                futures.append(producer.submit(message, queue=queue if number % 7 == 1 else None))
                if number == 20:
                    futures[-1].cancel()
                if number % 20 == 0:
                    await asyncio.sleep(0.1)
            results = await asyncio.gather(*futures, return_exceptions=True)
        async with PullConsumer(
            cluster.namesrv, group="r", network=cluster.network, clock=cluster.clock
        ) as consumer:
            found, offset = [], 0
            while (pulled := await consumer.pull(queue, offset)).messages:
                found += pulled.messages
                offset = pulled.next_offset
        assert [message.body.decode() for message in found] == [str(n) for n in range(60)]
        for number, (message, result) in enumerate(zip(found, results, strict=True)):
            if number == 20:
                continue
            assert (message.msg_id, message.offset_msg_id, message.offset, message.queue) == (
                result.msg_id, result.offset_msg_id, result.offset, result.queue
            )  # fmt: skip
            assert result.transaction_id == result.msg_id
            if number % 7 not in (3, 5):
                assert (message.tags, message.keys, message.flag) == ("tag", ("k1", "k2"), number)

    gantry_sim(story)
