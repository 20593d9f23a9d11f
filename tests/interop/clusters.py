"""The clusters of a run: one of each kind, shared by all tests."""

import contextlib
import os
from collections.abc import Mapping

import toolchain
from real import OurCluster, RealCluster

OURS = "ours"
AGAINST = os.environ.get("INTEROP_AGAINST", OURS)
REAL = list(toolchain.JAVA_SERVERS)
EVERYWHERE = [OURS, *REAL]

# What the tests need switched on, and waits that would be long for a test.
SETTINGS: Mapping[str, str] = {
    # RocketMQ refuses SQL filters and takes no traces by default.
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    # Timers; RocketMQ 5.3.3 cannot delete topics without them.
    "timerWheelEnable": "true",
    "recallMessageEnable": "true",
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
    # RocketMQ 5 writes down late what was decided, and would ask about it once more.
    "transactionOpBatchInterval": "200",
}

Cluster = OurCluster | RealCluster


class Clusters:
    """Clusters that are started when they are first wanted."""

    def __init__(self) -> None:
        self._running: dict[str, Cluster] = {}
        self._stack = contextlib.ExitStack()

    def of(self, kind: str) -> Cluster:
        """Ours, or RocketMQ's of a release."""
        if kind not in self._running:
            cluster = (
                OurCluster(settings=SETTINGS)
                if kind == OURS
                else RealCluster(kind, settings=SETTINGS)
            )
            self._running[kind] = self._stack.enter_context(cluster)
        return self._running[kind]

    def close(self) -> None:
        """End them all; nobody needs what RocketMQ's would take half a minute to put in order."""
        for cluster in self._running.values():
            if isinstance(cluster, RealCluster):
                cluster.kill_broker()
        self._stack.close()
