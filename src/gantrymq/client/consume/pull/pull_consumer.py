"""The pull consumer: reads any queue at any offset; the caller keeps the progress."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gantrymq.base.background import Background
from gantrymq.base.errors import ProtocolError
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.offset_store import LocalOffsets, OffsetStore, RemoteOffsets
from gantrymq.client.consume.membership.rebalance import RebalanceService
from gantrymq.client.consume.membership.send_back import SendBacks
from gantrymq.client.consume.membership.subscriptions import SQL, check_sql
from gantrymq.client.consume.pull.pull_client import PullClient
from gantrymq.client.consume.pull.registered_topics import QueueListener, RegisteredTopics
from gantrymq.client.consume.queues.pull_request import PullAnswer, PullStatus, pull_raw
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.lifecycle import RunningPart
from gantrymq.client.messages.delivery import BROKER_LEVEL
from gantrymq.client.messages.received import Received
from gantrymq.filter import condition
from gantrymq.kernel import cut_records
from gantrymq.model import Queue, Subscription
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.subscription import ALL, subscription

PULL_COUNT = 32
CHECKED_MAX = 1_000
"""Conditions remembered as checked."""


class PullResult(NamedTuple):
    """The messages of one pull, and the offset of the next."""

    status: PullStatus
    messages: list[Received]
    next_offset: int
    min_offset: int
    max_offset: int


@dataclass(slots=True, eq=False)
class _Running(RunningPart):
    """What a started pull consumer has."""

    offsets: OffsetStore
    rebalance: RebalanceService
    background: Background
    broker_ids: dict[Queue, int] = field(default_factory=dict)
    """Which member of a broker it said to pull a queue from next."""
    checked: set[tuple[str, str]] = field(default_factory=set)
    """Broker names and SQL conditions that they accepted."""


class PullConsumer(PullClient[_Running]):
    """Reads queues at offsets of your choice.

    async with PullConsumer("localhost:9876", group="audit") as consumer:
        for queue in await consumer.queues("orders"):
            found = await consumer.pull(queue, await consumer.min_offset(queue))
    """

    _kind = "pull consumer"

    # life

    def _prepare(self) -> None:
        self._topics = RegisteredTopics(
            self.group, self.options.register_topics, self._strategy, broadcast=self._broadcast
        )

    async def _open(self, instance: Instance) -> _Running:
        offsets = self._own_offsets or self._offset_store(instance)
        await offsets.load()
        instance.register_consumer(self.group, self._consumer_data)
        seconds = self.options.rebalance_interval_ms / 1000
        rebalance = RebalanceService(instance, self.group, seconds)
        running = _Running(instance, offsets, rebalance, Background(self._what))
        if self._topics.names:
            self._start_rebalance(running)
        return running

    def _start_rebalance(self, running: _Running) -> None:
        instance, topics = running.instance, self._topics
        running.rebalance.start(lambda: topics.rebalance(instance), running.background)

    def _offset_store(self, instance: Instance) -> OffsetStore:
        if self._broadcast:
            return LocalOffsets.of(instance, self.group, self.options.offset_dir)
        return RemoteOffsets(instance, self.group, skip_young_queues=True)

    async def _shut(self, running: _Running) -> None:
        """Leave the group. Commits nothing: that is up to the caller."""
        running.rebalance.stop()
        await running.background.close()
        await running.instance.unregister_consumer(self.group)

    # pulling

    async def pull(
        self,
        queue: Queue,
        offset: int,
        *,
        tags: str = ALL,
        sql: str | None = None,
        max_count: int = PULL_COUNT,
    ) -> PullResult:
        """Pull the messages from `offset` on; returns at once, also without any."""
        timeout = self.options.pull_timeout_ms / 1000
        return await self._pull(queue, offset, tags, sql, max_count, 0.0, timeout)

    async def pull_blocking(
        self,
        queue: Queue,
        offset: int,
        *,
        tags: str = ALL,
        sql: str | None = None,
        max_count: int = PULL_COUNT,
    ) -> PullResult:
        """The same, but without a message the broker holds the request (20 s by default)."""
        suspend = self.options.broker_suspend_ms / 1000
        timeout = self.options.suspend_timeout_ms / 1000
        return await self._pull(queue, offset, tags, sql, max_count, suspend, timeout)

    async def _pull(
        self,
        queue: Queue,
        offset: int,
        tags: str,
        sql: str | None,
        max_count: int,
        suspend: float,
        timeout: float,
    ) -> PullResult:
        wanted, running = _expression(queue.topic, tags, sql), self._running
        if sql is not None:
            await self._check_sql(running, queue, wanted)
        pulled = await pull_raw(
            running.instance,
            self.group,
            queue,
            offset,
            max_count=max_count,
            suspend=suspend,
            timeout=timeout,
            subscription=wanted,
            broker_id=running.broker_ids.get(queue, 0),
        )
        running.broker_ids[queue] = pulled.broker_id
        found = pulled.status is PullStatus.FOUND
        messages = received(pulled.body, queue) if found else []
        if wanted.tags_set:
            messages = [message for message in messages if message.tags in wanted.tags_set]
        return PullResult(
            pulled.status, messages, pulled.next_offset, pulled.min_offset, pulled.max_offset
        )

    async def _check_sql(self, running: _Running, queue: Queue, wanted: Subscription) -> None:
        """Ask the broker, before the first pull with an SQL condition, whether it accepts it."""
        key, checked = (queue.broker_name, wanted.sub_string), running.checked
        if key in checked:
            return
        instance = running.instance
        await instance.routes.get(queue.topic)
        address = instance.routes.address_of(queue.broker_name, 0, any_id=True)
        await check_sql(instance, self.group, address, wanted)
        if len(checked) >= CHECKED_MAX:
            checked.clear()
        checked.add(key)

    async def pull_raw(
        self,
        queue: Queue,
        offset: int,
        *,
        max_count: int = PULL_COUNT,
        max_bytes: int | None = None,
        suspend: float = 0.0,
    ) -> PullAnswer:
        """Pull without decoding, for bulk readers: the body has the records back to back."""
        return await pull_raw(
            self.instance,
            self.group,
            queue,
            offset,
            max_count=max_count,
            max_bytes=max_bytes,
            suspend=suspend,
        )

    # offsets

    async def min_offset(self, queue: Queue) -> int:
        """The offset of the oldest message that is still stored."""
        return await queue_offsets.min_offset(self.instance, queue)

    async def max_offset(self, queue: Queue) -> int:
        """The offset that the next message will get."""
        return await queue_offsets.max_offset(self.instance, queue)

    async def search_offset(self, queue: Queue, when: datetime | int) -> int:
        """The offset of the first message stored at a time (a datetime, or ms) or later."""
        at_ms = int(when.timestamp() * 1000) if isinstance(when, datetime) else when
        return await queue_offsets.search_offset(self.instance, queue, at_ms)

    async def committed(self, queue: Queue) -> int | None:
        """The group's stored progress; None when there is none."""
        return await self._running.offsets.read(queue)

    async def commit(self, queue: Queue, offset: int) -> None:
        """Store the group's progress: the offset of the next message to read."""
        await self._running.offsets.store({queue: offset}, wait=True)

    async def send_back(self, message: Received, delay_level: int = BROKER_LEVEL) -> None:
        """Send a message back for a retry by the group; level -1 sends it to the dead letters."""
        await SendBacks(self.instance, self.group, None)(message, delay_level)

    # assignment

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Call `listener` when the topic's queues or this member's assignment change."""
        self._topics.listen(topic, listener)
        if self._started is not None:
            self._start_rebalance(self._started)
            self._started.rebalance.wake()

    def share(self, topic: str) -> list[Queue]:
        """This member's queues of a registered topic, from the last rebalance."""
        return self._topics.share(topic)

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            consume_type="CONSUME_ACTIVELY",
            group_name=self.group,
            message_model=self.options.message_model,
            subscription_data_set=[subscription(topic, ALL) for topic in self._topics.names],
        )


def _expression(topic: str, tags: str, sql: str | None) -> Subscription:
    if sql is None:
        return subscription(topic, tags)
    condition(sql)
    return subscription(topic, sql, SQL)


def received(body: bytes, queue: Queue) -> list[Received]:
    """The messages of a pull's answer; raises for a bad record."""
    cuts, bad = cut_records(body)
    if bad is not None:
        raise ProtocolError(f"pull of {queue}: {bad}") from bad
    return [Received(body, body_at, head, queue) for _, body_at, head in cuts]
