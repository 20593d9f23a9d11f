"""Settings as RocketMQ's tools read them."""

import os

from peer import Peer, Run

from gantrymq.base.config import parse_properties
from gantrymq.broker.settings.rocketmq_keys import STATED
from gantrymq.testing.cluster import Cluster

GET, CHANGE = 26, 25
EXPORTED = [
    "brokerClusterName",
    "brokerId",
    "brokerName",
    "brokerRole",
    "fileReservedTime",
    "filterServerNums",
    "flushDiskType",
    "maxMessageSize",
    "messageDelayLevel",
    "msgTraceTopicName",
    "slaveReadEnable",
    "traceOn",
    "traceTopicEnable",
    "useTLS",
    "autoCreateTopicEnable",
    "autoCreateSubscriptionGroup",
]
"""What mqadmin exportConfigs writes down."""


async def settings(peer: Peer) -> dict[str, str]:
    return parse_properties((await peer.call(GET)).body.decode())


def test_what_tools_export_is_told(run: Run) -> None:
    """
    Also keys without a setting here say how it is; exportMetrics asks for the number of CPUs.
    """

    async def work(cluster: Cluster) -> None:
        found = await settings(await Peer.to(cluster))
        assert [] == [key for key in EXPORTED if not found.get(key)]
        assert STATED.items() <= found.items()
        assert str(os.cpu_count()) == found["clientCallbackExecutorThreads"]

    run(work)


def test_an_old_name_of_a_setting_is_told_and_taken(run: Run) -> None:
    """
    4.9 calls the distance of a slave haSlaveFallbehindMax, 5.x haMaxGapNotInSync.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        answer = await peer.call(CHANGE, b"haSlaveFallbehindMax=1000000\n")
        assert "next start of this broker: haMaxGapNotInSync" in (answer.remark or "")
        await cluster.stop_broker()
        await cluster.start_broker()
        found = await settings(await Peer.to(cluster))
        assert found["haSlaveFallbehindMax"] == found["haMaxGapNotInSync"]

    run(work)
