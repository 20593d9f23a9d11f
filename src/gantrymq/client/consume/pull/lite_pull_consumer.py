"""The lite pull consumer: subscribe or assign, poll batches, seek, commit."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network
from gantrymq.client.consume.broker_requests import ServerRequests
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.queue_offsets import timestamp_of
from gantrymq.client.consume.membership.rebalance import RebalanceService, my_queues
from gantrymq.client.consume.membership.setup import Setup, check_group, strategy_named
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.queues.process_queues import ProcessQueues
from gantrymq.client.consume.queues.ready_queues import ReadyQueues, ReadyQueuesClosed
from gantrymq.client.core.consumer_errors import ConsumerMisused, QueueNotAssigned
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle
from gantrymq.client.core.options import (
    ClientOptions,
    ConsumerOptions,
    PullOptions,
    chosen,
    with_namesrv,
)
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy
from gantrymq.protocol.bodies import ConsumerData

log = logging.getLogger(__name__)


class LitePullConsumer(Lifecycle):
    """Returns the next messages at each poll; a poll marks those of the poll before as read.

    async with LitePullConsumer("localhost:9876", group="loader") as consumer:
        consumer.subscribe("orders")
        while batch := await consumer.poll():
            ...
    """

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: PullOptions | None = None,
        client: ClientOptions | None = None,
        strategy: Strategy | None = None,
        offsets: OffsetStore | None = None,
        hooks: Sequence[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.group = check_group(group)
        self.options = chosen(PullOptions, options)
        super().__init__(
            f"lite pull consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._strategy = strategy or strategy_named(self.options.allocate_strategy)
        self._own_offsets = offsets
        self._subscriptions = Subscriptions(self.group, retries=False)
        self._assigned: list[Queue] | None = None
        self._polled: list[Delivery] = []
        self._background = Background(f"lite pull consumer of {self.group}")
        self._setup: Setup
        self._ready: ReadyQueues
        self._process_queues: ProcessQueues
        self._offsets: OffsetStore
        self._rebalance_service: RebalanceService
        self._stops: list[Callable[[], None]] = []

    # life

    async def _open(self, instance: Instance) -> None:
        options = self.options
        self._setup = Setup(
            instance,
            self.group,
            as_push_options(options),
            False,
            self._strategy,
            timestamp_of(options.consume_timestamp, instance.clock.now_ms()),
            self._subscriptions.table,
        )
        self._offsets = self._own_offsets or self._setup.offset_store()
        await self._offsets.load()
        self._ready = ReadyQueues()
        interval = options.rebalance_interval_ms
        if self._assigned is not None:
            interval = options.topic_metadata_check_interval_ms
        self._rebalance_service = RebalanceService(self._rebalance, interval / 1000)
        self._process_queues = ProcessQueues(
            self._setup,
            self._ready,
            self._offsets,
            None,
            retries_max=None,
            spawn=self._background.spawn,
            wake=self._rebalance_service.wake,
            shares=self._shares,
            total_max=options.pull_threshold_for_all,
            commits=options.auto_commit,
        )
        requests = ServerRequests(self._setup, self._process_queues, lambda: None)
        instance.register_consumer(self.group, self._consumer_data)
        requests.listen()
        self._stops = [requests.stop, self._rebalance_service.listen(instance, self.group)]
        self._subscriptions.start(instance, self._rebalance_service.wake)
        self._background.spawn(self._rebalance_service.run())
        if options.auto_commit:
            seconds = options.auto_commit_interval_ms / 1000
            self._background.every(seconds, self._process_queues.persist)

    async def _shut(self) -> None:
        """Leave the group; with auto commit, polled messages count as read."""
        for stop in self._stops:
            stop()
        self._process_queues.stop_pulls()
        self._ready.close()
        await self._background.close()
        self._subscriptions.stop()
        if self.options.auto_commit:
            self._count_as_read()
        await self._process_queues.close()
        await self._instance.unregister_consumer(self.group)

    async def __aexit__(self, kind: object, *exc: object) -> None:
        if kind is not None:
            # The last batch may be unfinished: it will be delivered again.
            self._polled.clear()
        await self.close()

    # what to read

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Share the topic's queues with the other members of the group."""
        if self._assigned is not None:
            raise ConsumerMisused("this consumer was assigned its queues: it cannot subscribe")
        self._subscriptions.subscribe(topic, tags, sql)

    def assign(self, queues: Iterable[Queue]) -> None:
        """Read exactly these queues, outside of the rebalance; replaces an earlier assignment."""
        if self._assigned is None and self._subscriptions.table:
            raise ConsumerMisused("this consumer has subscribed: it cannot be assigned queues")
        self._assigned = sorted(dict.fromkeys(queues))
        topics = dict.fromkeys(queue.topic for queue in self._assigned)
        for topic in topics:
            if topic not in self._subscriptions.table:
                self._subscriptions.subscribe(topic, "*", None)
        for topic in list(self._subscriptions.table):
            if topic not in topics:
                self._subscriptions.unsubscribe(topic)
        if self._state == "open":
            self._rebalance_service.wake()

    async def _shares(self, topic: str) -> list[Queue] | None:
        if self._assigned is not None:
            return [queue for queue in self._assigned if queue.topic == topic]
        return await my_queues(
            self._instance, self.group, topic, self._strategy, broadcast=self._setup.broadcast
        )

    async def _rebalance(self) -> float | None:
        try:
            await self._subscriptions.announce()
        except GantryError as error:
            log.warning("subscriptions of %s not announced: %s", self.group, error)
        return await self._process_queues.rebalance()

    def _consumer_data(self) -> ConsumerData:
        subscribed = self._assigned is None
        return ConsumerData(
            consume_from_where=self.options.consume_from_where,
            consume_type="CONSUME_ACTIVELY",
            group_name=self.group,
            message_model=self.options.message_model,
            subscription_data_set=list(self._subscriptions.table.values()) if subscribed else [],
        )

    @property
    def assignment(self) -> list[Queue]:
        """The queues this consumer reads now."""
        self._check_open()
        return sorted(self._process_queues.held)

    async def wait_assigned(self, count: int = 1) -> list[Queue]:
        """Wait until at least `count` queues are held."""
        self._check_open()
        changed = asyncio.Event()
        listeners = self._process_queues.on_change

        def look(_: list[Queue]) -> None:
            changed.set()

        listeners.append(look)
        try:
            while len(self._process_queues.held) < count:
                await changed.wait()
                changed.clear()
        finally:
            listeners.remove(look)
        return self.assignment

    async def queues(self, topic: str) -> list[Queue]:
        """All readable queues of a topic."""
        self._check_open()
        route = await self._instance.routes.get(topic)
        return sorted(self._instance.routes.subscribe_queues(route, topic))

    # messages

    async def poll(self, timeout: float | None = None) -> list[Received]:
        """The next messages of one queue; [] when none came within `timeout` (5 s)."""
        self._check_open()
        self._count_as_read()
        limit = self.options.poll_timeout_ms / 1000 if timeout is None else timeout
        batch = self._ready.take(self.options.pull_batch_size)
        if not batch and limit > 0:
            try:
                async with asyncio.timeout(limit):
                    batch = await self._ready.next(self.options.pull_batch_size)
            except (TimeoutError, ReadyQueuesClosed):
                batch = []
        self._polled = batch
        return list(batch)

    def _count_as_read(self) -> None:
        polled, self._polled = self._polled, []
        for message in polled:
            process_queue = self._process_queues.held.get(message.queue)
            if process_queue is not None:
                process_queue.acked(message)

    async def seek(self, queue: Queue, offset: int) -> None:
        """Continue at another offset; messages pulled ahead are dropped."""
        self._check_open()
        low = await queue_offsets.min_offset(self._instance, queue)
        high = await queue_offsets.max_offset(self._instance, queue)
        if not low <= offset <= high:
            raise ConsumerMisused(f"{queue} has offsets {low} to {high}, not {offset}")
        self._polled = [message for message in self._polled if message.queue != queue]
        self._process_queues.restart(queue, offset)

    async def seek_to_begin(self, queue: Queue) -> None:
        self._check_open()
        await self.seek(queue, await queue_offsets.min_offset(self._instance, queue))

    async def seek_to_end(self, queue: Queue) -> None:
        self._check_open()
        await self.seek(queue, await queue_offsets.max_offset(self._instance, queue))

    async def offset_for_time(self, queue: Queue, when: datetime | int) -> int:
        """The offset of the first message stored at a time (a datetime, or ms) or later."""
        self._check_open()
        at_ms = int(when.timestamp() * 1000) if isinstance(when, datetime) else when
        return await queue_offsets.search_offset(self._instance, queue, at_ms)

    def pause(self, queues: Iterable[Queue]) -> None:
        """Neither pull nor return messages of these queues."""
        self._check_open()
        for queue in queues:
            self._process_queues.paused[queue] = None
            if queue in self._process_queues.held:
                self._process_queues.held[queue].paused = True

    def resume(self, queues: Iterable[Queue]) -> None:
        """End the pause of these queues."""
        self._check_open()
        for queue in queues:
            self._process_queues.paused.pop(queue, None)
            if queue in self._process_queues.held:
                self._process_queues.held[queue].resume()

    # progress

    def position(self, queue: Queue) -> int:
        """The offset of the next message that counts as unread."""
        self._check_open()
        process_queue = self._process_queues.held.get(queue)
        if process_queue is None:
            raise QueueNotAssigned(f"{queue} is not held by this consumer")
        return process_queue.progress.done

    async def committed(self, queue: Queue) -> int | None:
        """The group's stored progress; None when there is none."""
        self._check_open()
        return await self._offsets.read(queue)

    async def commit(self) -> None:
        """Store the progress now, the last poll included."""
        self._check_open()
        self._count_as_read()
        await self._process_queues.persist(wait=True)


def as_push_options(options: PullOptions) -> ConsumerOptions:
    """The settings as ConsumerOptions, which the shared parts take."""
    return ConsumerOptions(
        message_model=options.message_model,
        consume_from_where=options.consume_from_where,
        consume_timestamp=options.consume_timestamp,
        consume_max_span=options.consume_max_span,
        pull_threshold_for_queue=options.pull_threshold_for_queue,
        pull_threshold_size_for_queue_mib=options.pull_threshold_size_for_queue_mib,
        pull_batch_size=options.pull_batch_size,
        broker_suspend_ms=options.broker_suspend_ms,
        pull_timeout_ms=options.suspend_timeout_ms,
        offset_dir=options.offset_dir,
    )
