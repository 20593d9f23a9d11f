"""A consumer that cannot read says so once, and fails where that was asked for."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.consume.membership.readiness import NotReady
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.errors import NoNameServer
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message
from gantrymq.testing import Cluster, MemoryNetwork

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def elsewhere(cluster: Cluster, address: str, **options: Any) -> Consumer:
    ports = {"network": cluster.network, "clock": cluster.clock, "rng": cluster.rng}
    return Consumer(address, group="g", **ports, **options)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name.startswith("gantrymq.client")
    ]


def test_a_missing_topic_is_told_once(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A consumer warns once about a topic that does not exist, and says when it can read it.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("nowhere")
            await asyncio.sleep(120)
            said = warnings(caplog)
            assert 1 == len(said)
            assert "consumer group g cannot read nowhere: no route for topic 'nowhere'" in said[0]

            await cluster.create_topic("nowhere")
            await asyncio.sleep(40)
            assert "can read nowhere now" in warnings(caplog)[-1]

    gantry_sim(story)


def test_a_missing_subscription_is_told_to_who_waits(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A consumer without a subscription warns whoever waits for a message, and only then.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.consumer("g") as consumer:
            await asyncio.sleep(1)
            assert [] == warnings(caplog)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(100):
                    await anext(consumer)
        assert ["it has no subscription: call subscribe(topic). It goes on asking"] == [
            said.partition("reads nothing: ")[2] for said in warnings(caplog)
        ]

    gantry_sim(story)


def test_an_unreachable_name_server_is_told_once(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A consumer warns once that no name server answers.
    """

    async def story(cluster: Cluster) -> None:
        async with elsewhere(cluster, "127.0.0.1:9") as consumer:
            consumer.subscribe("T")
            await asyncio.sleep(100)
        said = warnings(caplog)
        assert 1 == len(said)
        assert "cannot read T: no name server answers" in said[0]

    gantry_sim(story)


def test_a_silent_broker_is_told_once(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A consumer warns once about a broker that does not answer.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            await consumer.wait_assigned(4)
            assert [] == warnings(caplog)
        network = cluster.network
        assert isinstance(network, MemoryNetwork)
        network.stop_listening("127.0.0.1", cluster.broker().config.listen_port)
        network.cut_port(cluster.broker().config.listen_port)
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            await asyncio.sleep(60)
            said = [line for line in warnings(caplog) if "cannot read" in line]
            address = cluster.broker().address
            assert [f"no broker of it answers (broker-a at {address}). It goes on asking"] == [
                line.partition("cannot read T: ")[2] for line in said
            ]

    gantry_sim(story)


def test_a_brokers_port_is_recognised(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    An address that belongs to a broker instead of a name server is recognised and said.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        address = f"127.0.0.1:{cluster.broker().config.listen_port}"
        async with elsewhere(cluster, address, start_timeout=3) as consumer:
            consumer.subscribe("T")
            with pytest.raises(NotReady, match=f"{address} is no name server, .*port 9876"):
                await consumer.run()
        async with cluster.producer() as producer:
            producer.instance.name_servers.known.replace([address])
            with pytest.raises(NoNameServer, match="it answers as a broker does"):
                await producer.send(Message("U", "x"))

        # Among several it is passed over.
        async with elsewhere(cluster, f"{address};{cluster.namesrv}", start_timeout=3) as consumer:
            consumer.subscribe("T")
            assert await consumer.wait_assigned(4)

    gantry_sim(story)


def test_a_start_that_takes_too_long_fails_on_request(gantry_sim: Simulate) -> None:
    """
    With `start_timeout` a consumer that cannot read raises NotReady with the cause.
    """

    async def story(cluster: Cluster) -> None:
        consumer = cluster.consumer("g", start_timeout=10)
        consumer.subscribe("nowhere")
        with pytest.raises(NotReady, match=r"nowhere.*create the topic first"):
            await consumer.start()

        async with cluster.consumer("g", start_timeout=10) as consumer:
            with pytest.raises(NotReady, match="no subscription"):
                await anext(consumer)

        await cluster.create_topic("T")
        consumer = cluster.consumer("g", start_timeout=10)
        consumer.subscribe("T")
        async with consumer:
            assert await consumer.wait_assigned(4)
            await asyncio.sleep(30)

    gantry_sim(story)


@pytest.mark.parametrize("ordered", [False, True])
def test_each_retry_and_each_death_is_logged(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture, ordered: bool
) -> None:
    """
    Each retry and each dead letter is logged with its cause, in ordered and concurrent mode.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            await producer.send(Message("T", "x"))
        tries = []
        options: dict[str, Any] = {"options": FIRST, "max_retries": 2, "ordered": ordered}
        async with cluster.consumer("g", **options) as consumer:

            @consumer.handler
            async def fail(message: Delivery) -> None:
                tries.append(message.reconsume_times)
                raise ValueError("no such customer")

            consumer.subscribe("T")
            await asyncio.sleep(300)
        assert [0, 1, 2] == tries

    gantry_sim(story)
    said = [line for line in warnings(caplog) if "(try " in line]
    assert 3 == len(said)
    whens = ["again in 1 s, and its queue waits"] * 2 if ordered else ["again in 10 s", "in 30 s"]
    for number, when in enumerate(whens):
        assert f"(try {number + 1} of 3): ValueError: no such customer; " in said[number]
        assert said[number].endswith(when)
    assert "no such customer; it goes to the dead letters (%DLQ%g)" in said[2]
