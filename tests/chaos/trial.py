"""The time of one fault: it comes and goes while writers write; then all is read."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from chaos.checker import check
from chaos.clients import Writing
from chaos.cluster import Cluster, NotSettled
from chaos.faults import Fault, Harm
from chaos.history import Send
from chaos.modes import BROKER_NAME
from chaos.promises import TrialResult

QUEUES: Final = 4
CALM_SECONDS: Final = 1.0
RETURN_SECONDS_MAX: Final = 40.0
"""How long after the fault every queue has to take messages again."""
LAST_SECONDS: Final = 0.3
"""How long writers go on after the leader is lost for good."""
REFUSED_SECONDS: Final = 8.0
"""Slaves try again every five seconds; one that is not in sync by then is refused."""
LOOK_SECONDS: Final = 0.1

Pause = Callable[[float], None]
"""Sleeps; raises when the whole run is to end."""


class Trial:
    """One fault on a running cluster."""

    def __init__(self, cluster: Cluster, fault: Fault, seed: int, pause: Pause) -> None:
        self._cluster, self._fault, self._pause = cluster, fault, pause
        self._rng = random.Random(f"{seed}/{cluster.mode.name}/{fault.name}")
        self._topic = f"{fault.name}-{seed}"

    def run(self, seconds: float) -> TrialResult:
        cluster, clients = self._cluster, self._cluster.clients
        cluster.await_order()
        clients.ours.ask("create", topic=self._topic, queues=QUEUES)
        cluster.await_topic(self._topic)
        harm = self._fault.harm(cluster.scene(), self._rng)
        writing = clients.write(self._topic, BROKER_NAME, QUEUES)
        if not self._await_writers(writing, 0.0):
            raise NotSettled("no messages are taken before the fault")
        self._pause(CALM_SECONDS)
        cluster.begin(harm)
        self._pause(seconds)
        cluster.undo(harm)
        healed = time.monotonic()
        came_back = self._await_writers(writing, healed)
        if came_back:
            self._await_copies(harm)
        lost_at = time.monotonic()
        if came_back:
            cluster.nodes[cluster.await_leader()].kill()
            self._pause(LAST_SECONDS)
        sends = clients.finish(writing)
        copied = clients.ours.read(self._topic, BROKER_NAME, QUEUES) if came_back else None
        cluster.start(*cluster.nodes)
        cluster.await_leader()
        read = clients.ours.read(self._topic, BROKER_NAME, QUEUES)
        verdict = check(sends, read, copied, healed=healed, until=lost_at)
        return TrialResult(cluster.mode.name, self._fault.name, harm.text, verdict, came_back)

    def _await_writers(self, writing: Writing, since: float) -> bool:
        """Wait until every queue has taken a message that was sent after this time."""
        end = time.monotonic() + RETURN_SECONDS_MAX
        while not returned(writing.sends(), since):
            if time.monotonic() > end:
                return False
            self._pause(LOOK_SECONDS)
        return True

    def _await_copies(self, harm: Harm) -> None:
        """A copy is promised of members that are in sync.

        After its disk broke a master may lack what its slave has, and then it refuses the slave.
        """
        if harm.action == "disk-read-only":
            with suppress(NotSettled):
                self._cluster.await_order(REFUSED_SECONDS)
        else:
            self._cluster.await_order()
            self._cluster.await_topic(self._topic)
        self._pause(CALM_SECONDS)


def returned(sends: list[Send], since: float) -> bool:
    """Whether each queue has acknowledged a message that was begun after `since`."""
    late = {send.name.queue for send in sends if send.acknowledged and send.began > since}
    return len(late) == QUEUES
