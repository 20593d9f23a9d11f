"""The lite pull consumer: subscribe or assign, poll batches, seek, commit."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.client.consume.broker_requests import ServerRequests
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.assignment_waiters import AssignmentWaiters
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.queue_offsets import timestamp_of
from gantrymq.client.consume.membership.rebalance import RebalanceService, my_queues
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.pull.pull_client import PullClient
from gantrymq.client.consume.queues.process_queues import ProcessQueues
from gantrymq.client.consume.queues.ready_queues import ReadyQueues, ReadyQueuesClosed
from gantrymq.client.core.consumer_errors import ConsumerMisused, QueueNotAssigned
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.lifecycle import RunningPart
from gantrymq.client.core.options import ConsumerOptions, PullOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.bodies import ConsumerData

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Running(RunningPart):
    """What a started lite pull consumer has."""

    offsets: OffsetStore
    ready: ReadyQueues
    process_queues: ProcessQueues
    rebalance: RebalanceService
    requests: ServerRequests
    background: Background
    waiters: AssignmentWaiters = field(default_factory=AssignmentWaiters)
    polled: list[Delivery] = field(default_factory=list)
    """What the last poll returned."""


class LitePullConsumer(PullClient[_Running]):
    """Returns the next messages at each poll; a poll marks those of the poll before as read.

    async with LitePullConsumer("localhost:9876", group="loader") as consumer:
        consumer.subscribe("orders")
        while batch := await consumer.poll():
            ...
    """

    _kind = "lite pull consumer"

    # life

    def _prepare(self) -> None:
        self._subscriptions = Subscriptions(self.group, retries=False)
        self._assigned: list[Queue] | None = None

    async def _open(self, instance: Instance) -> _Running:
        options = self.options
        setup = Setup(
            instance,
            self.group,
            as_push_options(options),
            False,
            self._strategy,
            timestamp_of(options.consume_timestamp, instance.clock.now_ms()),
            self._subscriptions.table,
        )
        offsets = self._own_offsets or setup.offset_store()
        await offsets.load()
        running = self._build(setup, offsets)
        running.process_queues.on_change.append(running.waiters.wake)
        instance.register_consumer(self.group, self._consumer_data)
        running.requests.listen()
        self._subscriptions.start(instance, running.rebalance.wake)
        process_queues, background = running.process_queues, running.background
        running.rebalance.start(lambda: self._rebalance(process_queues), background)
        if options.auto_commit:
            background.every(options.auto_commit_interval_ms / 1000, process_queues.persist)
        return running

    def _build(self, setup: Setup, offsets: OffsetStore) -> _Running:
        instance, options = setup.instance, self.options
        interval_ms = options.rebalance_interval_ms
        if self._assigned is not None:
            interval_ms = options.topic_metadata_check_interval_ms
        background, ready = Background(self._what), ReadyQueues()
        rebalance = RebalanceService(instance, self.group, interval_ms / 1000)
        process_queues = ProcessQueues(
            setup,
            ready,
            offsets,
            None,
            retries_max=None,
            spawn=background.spawn,
            wake=rebalance.wake,
            shares=lambda topic: self._shares(instance, topic),
            total_max=options.pull_threshold_for_all,
            commits=options.auto_commit,
        )
        requests = ServerRequests(setup, process_queues, lambda: None)
        return _Running(instance, offsets, ready, process_queues, rebalance, requests, background)

    async def _shut(self, running: _Running) -> None:
        """Leave the group; with auto commit, polled messages count as read."""
        running.waiters.wake()
        running.requests.stop()
        running.rebalance.stop()
        running.process_queues.stop_pulls()
        running.ready.close()
        await running.background.close()
        self._subscriptions.stop()
        if self.options.auto_commit:
            _count_as_read(running)
        await running.process_queues.close()
        await running.instance.unregister_consumer(self.group)

    async def __aexit__(self, kind: object, *exc: object) -> None:
        if kind is not None and self._started is not None:
            # The last batch may be unfinished: it will be delivered again.
            self._started.polled.clear()
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
        if self._started is not None:
            self._started.rebalance.wake()

    async def _shares(self, instance: Instance, topic: str) -> list[Queue] | None:
        if self._assigned is not None:
            return [queue for queue in self._assigned if queue.topic == topic]
        return await my_queues(
            instance, self.group, topic, self._strategy, broadcast=self._broadcast
        )

    async def _rebalance(self, process_queues: ProcessQueues) -> float | None:
        try:
            await self._subscriptions.announce()
        except GantryError as error:
            log.warning("subscriptions of %s not announced: %s", self.group, error)
        return await process_queues.rebalance()

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
        return sorted(self._running.process_queues.held)

    async def wait_assigned(self, count: int = 1) -> list[Queue]:
        """Wait until at least `count` queues are held."""
        return await self._running.waiters.wait(count, lambda: self.assignment)

    # messages

    async def poll(self, timeout: float | None = None) -> list[Received]:
        """The next messages of one queue; [] when none came within `timeout` (5 s)."""
        running = self._running
        _count_as_read(running)
        limit = self.options.poll_timeout_ms / 1000 if timeout is None else timeout
        batch = running.ready.take(self.options.pull_batch_size)
        if not batch and limit > 0:
            try:
                async with asyncio.timeout(limit):
                    batch = await running.ready.next(self.options.pull_batch_size)
            except (TimeoutError, ReadyQueuesClosed):
                batch = []
        running.polled = batch
        return list(batch)

    async def seek(self, queue: Queue, offset: int) -> None:
        """Continue at another offset; messages pulled ahead are dropped."""
        running = self._running
        low = await queue_offsets.min_offset(running.instance, queue)
        high = await queue_offsets.max_offset(running.instance, queue)
        if not low <= offset <= high:
            raise ConsumerMisused(f"{queue} has offsets {low} to {high}, not {offset}")
        running.polled = [message for message in running.polled if message.queue != queue]
        running.process_queues.restart(queue, offset)

    async def seek_to_begin(self, queue: Queue) -> None:
        """Continue at the oldest message that is still stored."""
        await self.seek(queue, await queue_offsets.min_offset(self.instance, queue))

    async def seek_to_end(self, queue: Queue) -> None:
        """Continue behind the newest message."""
        await self.seek(queue, await queue_offsets.max_offset(self.instance, queue))

    async def offset_for_time(self, queue: Queue, when: datetime | int) -> int:
        """The offset of the first message stored at a time (a datetime, or ms) or later."""
        at_ms = int(when.timestamp() * 1000) if isinstance(when, datetime) else when
        return await queue_offsets.search_offset(self.instance, queue, at_ms)

    def pause(self, queues: Iterable[Queue]) -> None:
        """Neither pull nor return messages of these queues."""
        self._running.process_queues.pause(queues)

    def resume(self, queues: Iterable[Queue]) -> None:
        """End the pause of these queues."""
        self._running.process_queues.resume(queues)

    # progress

    def position(self, queue: Queue) -> int:
        """The offset of the next message that counts as unread."""
        process_queue = self._running.process_queues.held.get(queue)
        if process_queue is None:
            raise QueueNotAssigned(f"{queue} is not held by this consumer")
        return process_queue.progress.done

    async def committed(self, queue: Queue) -> int | None:
        """The group's stored progress; None when there is none."""
        return await self._running.offsets.read(queue)

    async def commit(self) -> None:
        """Store the progress now, the last poll included."""
        running = self._running
        _count_as_read(running)
        await running.process_queues.persist(wait=True)


def _count_as_read(running: _Running) -> None:
    """Acknowledge what the last poll returned."""
    polled, running.polled = running.polled, []
    for message in polled:
        process_queue = running.process_queues.held.get(message.queue)
        if process_queue is not None:
            process_queue.acked(message)


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
