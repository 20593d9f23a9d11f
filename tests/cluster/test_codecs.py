"""The Python client with either header codec."""

from peer import Run

from gantrymq import Message
from gantrymq.client.core.options import ClientOptions
from gantrymq.testing.cluster import Cluster


def test_everything_works_with_the_binary_header(run: Run) -> None:
    """
    Sends, pulls, heartbeats and offsets of a client that speaks ROCKETMQ instead of JSON.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        client = ClientOptions(serialize="ROCKETMQ")
        sent = [b"%d" % number for number in range(50)]
        async with cluster.producer(client=client) as producer:
            for body in sent:
                await producer.send(Message("orders", body, tags="a", keys=["k"]))
        found = []
        async with cluster.consumer(client=client) as consumer:
            consumer.subscribe("orders", tags="a")
            async for message in consumer:
                found.append(message.body)
                await message.ack()
                if len(found) == len(sent):
                    break

        assert sorted(sent) == sorted(found)

    run(work)
