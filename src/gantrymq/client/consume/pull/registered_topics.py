"""The topics that a pull consumer registered: their queues, and this member's share of them."""

from collections.abc import Callable, Iterable
from typing import Final

from gantrymq.client.consume.membership.rebalance import my_queues
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy

RETRY_SECONDS: Final = 5.0
"""How soon a topic is asked for again whose route or members are not known."""

QueueListener = Callable[[str, list[Queue], list[Queue]], None]
"""(topic, all its queues, mine)"""


class RegisteredTopics:
    """Topics with listeners, and their queues as the last rebalance found them."""

    def __init__(self, group: str, topics: Iterable[str], strategy: Strategy, *, broadcast: bool):
        self._group, self._strategy, self._broadcast = group, strategy, broadcast
        self._listeners: dict[str, list[QueueListener]] = {topic: [] for topic in topics}
        self._queues: dict[str, tuple[list[Queue], list[Queue]]] = {}
        """For each topic all its queues, and this member's."""

    @property
    def names(self) -> list[str]:
        """The registered topics, in the order of their registration."""
        return list(self._listeners)

    def listen(self, topic: str, listener: QueueListener) -> None:
        """Register a topic; the listener is called at the next rebalance, and at each change."""
        self._listeners.setdefault(topic, []).append(listener)
        self._queues.pop(topic, None)

    def share(self, topic: str) -> list[Queue]:
        """This member's queues of a topic."""
        return list(self._queues.get(topic, ([], []))[1])

    async def rebalance(self, instance: Instance) -> float | None:
        """Find out the queues of all topics. Returns None if settled, else seconds to a retry."""
        settled = True
        for topic in self.names:
            everything = await self._find(instance, topic, broadcast=True)
            await instance.heartbeats.send_new()
            mine = await self._find(instance, topic, broadcast=self._broadcast)
            if everything is None or mine is None:
                settled = False
            elif self._queues.get(topic) != (everything, mine):
                self._queues[topic] = (everything, mine)
                for listener in list(self._listeners[topic]):
                    listener(topic, list(everything), list(mine))
        return None if settled else RETRY_SECONDS

    async def _find(self, instance: Instance, topic: str, *, broadcast: bool) -> list[Queue] | None:
        return await my_queues(instance, self._group, topic, self._strategy, broadcast=broadcast)
