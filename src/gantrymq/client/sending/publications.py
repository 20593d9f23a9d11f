"""The queues that one producer may send to, by topic, and the choice of the next one."""

from collections.abc import Sequence

from gantrymq.client.core.errors import BrokerUnknown, MessageRefused, NoMaster, NoRoute
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.core.routes import lacks_masters, publish_queues
from gantrymq.client.sending.latency_fault import FaultTable
from gantrymq.client.sending.pending_send import PendingSend, Selector, SendTarget
from gantrymq.client.sending.send_policy import next_index, sharded_index
from gantrymq.client.sending.send_request import BinarySendFrames, SendFrames, is_unusual
from gantrymq.model import Queue
from gantrymq.protocol.command import BINARY_CODEC


class Publication:
    """A topic as a producer sees it: its queues in order, and the next one."""

    __slots__ = ("brokers", "cursor", "queues", "targets", "unusual", "version")

    def __init__(self, targets: list[SendTarget], cursor: int, version: int) -> None:
        self.targets, self.cursor, self.version = targets, cursor, version
        self.queues = [target.queue for target in targets]
        self.brokers = [queue.broker_name for queue in self.queues]
        self.unusual = is_unusual(self.queues[0].topic)
        """Whether its requests need more fields than usual, or another request code."""

    def next_targets(self, count: int) -> list[SendTarget]:
        """The queues of the next sends, in turn."""
        targets, first = self.targets, self.cursor + 1
        self.cursor += count
        size = len(targets)
        return [targets[at % size] for at in range(first, first + count)]


class Publications:
    """The publications of one producer, made of cached routes."""

    def __init__(
        self, instance: Instance, group: str, options: ProducerOptions, faults: FaultTable | None
    ) -> None:
        self._group, self._options, self._faults = group, options, faults
        self._routes, self._rng = instance.routes, instance.rng
        self._frames = BinarySendFrames if instance.codec == BINARY_CODEC else SendFrames
        self.by_topic: dict[str, Publication] = {}
        """Each fits one version of the routes; `get` replaces it after a change."""

    def get(self, topic: str) -> Publication | None:
        """The topic's queues by the cached route; None without a route or a writable queue."""
        publication = self.by_topic.get(topic)
        if publication is None or publication.version != self._routes.version:
            publication = self._publish(topic)
        return publication

    async def find_route(self, topic: str) -> None:
        """Ask for the route of a topic; raises NoRoute unless it has a writable queue."""
        options = self._options
        route = await self._routes.get_for_sending(
            topic, options.create_topic_key, options.default_topic_queue_nums
        )
        if not publish_queues(route, topic):
            route = await self._routes.refresh(topic)
            if not publish_queues(route, topic):
                if lacks_masters(route):
                    raise NoMaster(topic)
                raise NoRoute(topic, "it has brokers, but none with a queue to write to")

    def _publish(self, topic: str) -> Publication | None:
        """Turn a cached route into targets; a changed route keeps the cursor."""
        route = self._routes.cached(topic)
        if route is None:
            return None
        targets = [self._target(queue) for queue in publish_queues(route, topic)]
        if not targets:
            return None
        old = self.by_topic.get(topic)
        cursor = old.cursor if old is not None else self._rng.randrange(1 << 16)
        publication = Publication(targets, cursor, self._routes.version)
        self.by_topic[topic] = publication
        return publication

    def _target(self, queue: Queue) -> SendTarget:
        try:
            address = self._routes.address_of(queue.broker_name)
        except BrokerUnknown:
            address = ""  # a broker of an order topic may be down: the send fails
        return SendTarget(queue, address, self._frames(self._group, queue, self._options))

    def choose(self, pending: PendingSend, publication: Publication) -> SendTarget:
        """The queue for a send: the caller's, or the next in turn that was not tried yet."""
        if pending.fixed:
            return self._fixed_target(pending, publication)
        avoid = pending.tried
        publication.cursor += 1
        if self._faults is None:
            at = next_index(publication.brokers, publication.cursor, avoid)
        else:
            at = self._choose_by_latency(publication, avoid, self._faults)
        return publication.targets[at]

    def _choose_by_latency(
        self, publication: Publication, avoid: tuple[str, ...], faults: FaultTable
    ) -> int:
        brokers = publication.brokers
        at = next_index(brokers, publication.cursor, avoid, faults.available)
        if faults.available(brokers[at]):
            return at
        least_bad = faults.least_bad()
        if least_bad in brokers:
            return next_index(brokers, publication.cursor, (), lambda name: name == least_bad)
        if least_bad is not None:
            faults.forget(least_bad)
        return at

    def _fixed_target(self, pending: PendingSend, publication: Publication) -> SendTarget:
        if pending.sharding_key is not None and pending.queue is None and pending.selector is None:
            return publication.targets[
                sharded_index(pending.sharding_key, len(publication.targets))
            ]
        if pending.queue is None:
            assert pending.selector is not None
            pending.queue = _selected(pending.selector, publication.queues)
        queue = pending.queue
        if queue.topic != pending.prepared.topic:
            raise MessageRefused(f"message to {pending.prepared.topic!r}: {queue} is none of its")
        for target in publication.targets:
            if target.queue == queue:
                return target
        return self._target(queue)  # not in the route: the broker decides


def _selected(selector: Selector, queues: Sequence[Queue]) -> Queue:
    """Call the caller's selector; its errors must not stop other sends."""
    try:
        queue = selector(queues)
    except Exception as error:
        raise MessageRefused(f"the selector failed: {error!r}") from error
    if not isinstance(queue, Queue):
        raise MessageRefused(f"a selector returns one of the queues, not {queue!r}")
    return queue
