"""The time of one fault: it comes and goes while writers write; then all is read."""

import random
import time
from collections.abc import Callable
from typing import Final

from chaos.checker import check
from chaos.clients import Writing
from chaos.cluster import Cluster
from chaos.faults import Fault
from chaos.history import Send
from chaos.modes import BROKER_NAME
from chaos.promises import Window

QUEUES: Final = 4
CALM_SECONDS: Final = 1.0
RETURN_SECONDS_MAX: Final = 40.0
"""How long after the fault every queue has to take messages again."""
LAST_SECONDS: Final = 0.3
"""How long writers go on after the leader is lost for good."""
LOOK_SECONDS: Final = 0.1

Pause = Callable[[float], None]
"""Sleeps; raises when the whole run is to end."""


class Story:
    """One fault on a running cluster."""

    def __init__(self, cluster: Cluster, fault: Fault, seed: int, pause: Pause) -> None:
        self._cluster, self._fault, self._pause = cluster, fault, pause
        self._rng = random.Random(f"{seed}/{cluster.mode.name}/{fault.name}")
        self._topic = f"{fault.name}-{seed}"

    def run(self, seconds: float) -> Window:
        cluster, clients = self._cluster, self._cluster.clients
        cluster.await_order()
        clients.ours.ask("create", topic=self._topic, queues=QUEUES)
        harm = self._fault.harm(cluster.scene(), self._rng)
        writing = clients.write(self._topic, BROKER_NAME, QUEUES)
        self._pause(CALM_SECONDS)
        cluster.begin(harm)
        self._pause(seconds)
        cluster.undo(harm)
        came_back = self._await_writers(writing, time.monotonic())
        lost_at = time.monotonic()
        copy = self._lose_leader(writing) if came_back else None
        sends = clients.finish(writing)
        copied = clients.ours.read(self._topic, BROKER_NAME, QUEUES) if copy else None
        cluster.start(*cluster.nodes)
        cluster.await_leader()
        read = clients.ours.read(self._topic, BROKER_NAME, QUEUES)
        verdict = check(sends, read, copied, until=lost_at)
        return Window(
            cluster.mode.name, self._fault.name, harm.text, verdict, came_back, copied is not None
        )

    def _await_writers(self, writing: Writing, since: float) -> bool:
        """Wait until every queue has taken a message that was sent after the fault."""
        end = since + RETURN_SECONDS_MAX
        while not returned(writing.sends(), since):
            if time.monotonic() > end:
                return False
            self._pause(LOOK_SECONDS)
        self._pause(CALM_SECONDS)
        return True

    def _lose_leader(self, writing: Writing) -> bool:
        """Kill the leader while writers write; False when nobody leads."""
        leader = self._cluster.leader()
        if leader is None:
            return False
        self._cluster.nodes[leader].kill()
        self._pause(LAST_SECONDS)
        return True


def returned(sends: list[Send], since: float) -> bool:
    """Whether each queue has acknowledged a message that was begun after `since`."""
    late = {send.name.queue for send in sends if send.acknowledged and send.began > since}
    return len(late) == QUEUES
