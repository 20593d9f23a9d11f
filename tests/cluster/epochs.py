"""What the tests of epochs share: a writer in a cluster, and what consumers can see."""

from collections.abc import Sequence
from typing import Any

from gantrymq.client.produce.epochs import Epoch
from gantrymq.client.produce.publishing import EpochResult, Publisher
from gantrymq.model import Message
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import ReadResult
from gantrymq.testing.cluster import Cluster

WRITER = "the-writer"
TOPIC = "orders"


def publisher(cluster: Cluster, writer: str = WRITER, **options: Any) -> Publisher:
    """On the cluster's network and clock."""
    ports = {"network": cluster.network, "clock": cluster.clock, "rng": cluster.rng}
    return Publisher(cluster.namesrv, writer, **ports, **options)


async def write(
    cluster: Cluster, number: int, bodies: Sequence[str], *, writer: str = WRITER, **options: Any
) -> EpochResult:
    """One driver's life: stage an epoch and publish it."""
    async with publisher(cluster, writer, **options) as one:
        epoch = Epoch(one, number)
        await epoch.add([Message(TOPIC, body, sharding_key=body[:1]) for body in bodies])
        return await epoch.publish()


def stored(
    cluster: Cluster, topic: str = TOPIC, names: Sequence[str] | None = None
) -> list[StoredMessage]:
    """Every message of a topic on all brokers that run, or on some of them."""
    found: list[StoredMessage] = []
    for name in names or cluster.running:
        store = cluster.broker(name).store
        for queue_id in store.queues.ids(topic):
            at = store.queues.min_offset(topic, queue_id)
            while at < store.queues.max_offset(topic, queue_id):
                pulled = store.reads.pull(topic, queue_id, at, 1000, 1 << 20)
                assert isinstance(pulled, ReadResult)
                found += decode_records(pulled.body)
                at = pulled.next_offset
    return found


def visible(cluster: Cluster, topic: str = TOPIC) -> list[str]:
    """The bodies that consumers can see, sorted: a repeat shows as well as a gap."""
    return sorted(message.body.decode() for message in stored(cluster, topic))
