"""Attributes of topics: set, changed, refused, and kept over restarts."""

import pytest
from peer import Run

from gantrymq.client.core.errors import BrokerRefused
from gantrymq.testing.cluster import Cluster


async def attributes(cluster: Cluster, topic: str = "orders") -> dict[str, str]:
    async with cluster.admin() as admin:
        (address,) = (await admin.masters()).values()
        return (await admin.topic_configs(address))[topic].attributes


async def create(cluster: Cluster, **wanted: str | None) -> None:
    """Create or change the topic; `message_type` stands for message.type."""
    named = {name.replace("_", "."): value for name, value in wanted.items()}
    async with cluster.admin() as admin:
        await admin.create_topic("orders", queues=1, attributes=named)


def test_they_are_kept_changed_and_removed(run: Run) -> None:
    """
    Those that a request does not name stay, also over a restart.
    """

    async def work(cluster: Cluster) -> None:
        await create(cluster, message_type="FIFO", reserve_time="3600000")
        await create(cluster)
        assert {"message.type": "FIFO", "reserve.time": "3600000"} == await attributes(cluster)

        await create(cluster, message_type="DELAY", reserve_time=None)
        await cluster.stop_broker()
        await cluster.start_broker()
        assert {"message.type": "DELAY"} == await attributes(cluster)

    run(work)


@pytest.mark.parametrize(
    "wanted, words",
    [
        ({"nonsense": "1"}, "unsupported key: nonsense"),
        ({"message_type": "LETTER"}, "value is not in set: .UNSPECIFIED, NORMAL, FIFO"),
        ({"message_type": "MIXED"}, "MIXED message type is not supported"),
        ({"message_type": None}, "only add attribute is supported while creating topic"),
        ({"reserve_time": "-2"}, "value is not in range"),
        ({"queue_type": "BatchCQ"}, "BatchCQ is not supported by this broker"),
        ({"cleanup_policy": "COMPACTION"}, "COMPACTION is not supported by this broker"),
    ],
)
def test_what_is_refused(run: Run, wanted: dict[str, str | None], words: str) -> None:
    """
    In RocketMQ's words; and what would have to be ignored is never accepted.
    """

    async def work(cluster: Cluster) -> None:
        with pytest.raises(BrokerRefused, match=words):
            await create(cluster, **wanted)
        async with cluster.admin() as admin:
            (address,) = (await admin.masters()).values()
            assert "orders" not in await admin.topic_configs(address)

    run(work)
