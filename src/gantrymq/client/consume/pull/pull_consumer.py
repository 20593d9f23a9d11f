"""The pull consumer: reads any queue at any offset; the caller keeps the progress."""

import logging
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ProtocolError
from gantrymq.base.network import Network
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.offset_store import LocalOffsets, OffsetStore, RemoteOffsets
from gantrymq.client.consume.membership.rebalance import RebalanceService, my_queues
from gantrymq.client.consume.membership.send_back import SendBacks
from gantrymq.client.consume.membership.setup import BROADCASTING, check_group, strategy_named
from gantrymq.client.consume.membership.subscriptions import SQL, check_sql
from gantrymq.client.consume.queues.pull_request import PullAnswer, PullStatus, pull_raw
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle
from gantrymq.client.core.options import ClientOptions, PullOptions, chosen, with_namesrv
from gantrymq.client.messages.delivery import BROKER_LEVEL
from gantrymq.client.messages.received import Received
from gantrymq.filter import condition
from gantrymq.kernel import cut_records
from gantrymq.model import Queue, Subscription
from gantrymq.protocol.assignment import Strategy
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.subscription import ALL, subscription

log = logging.getLogger(__name__)

PULL_COUNT = 32
SHARES_RETRY_SECONDS = 5.0
CHECKED_MAX = 1_000
"""Conditions remembered as checked."""

QueueListener = Callable[[str, list[Queue], list[Queue]], None]
"""(topic, all its queues, mine)"""


class PullResult(NamedTuple):
    """The messages of one pull, and the offset of the next."""

    status: PullStatus
    messages: list[Received]
    next_offset: int
    min_offset: int
    max_offset: int


class PullConsumer(Lifecycle):
    """Reads queues at offsets of your choice.

    async with PullConsumer("localhost:9876", group="audit") as consumer:
        for queue in await consumer.queues("orders"):
            found = await consumer.pull(queue, await consumer.min_offset(queue))
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
            f"pull consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._strategy = strategy or strategy_named(self.options.allocate_strategy)
        self._own_offsets = offsets
        self._listeners: dict[str, list[QueueListener]] = {}
        self._shares: dict[str, tuple[list[Queue], list[Queue]]] = {}
        self._broker_ids: dict[Queue, int] = {}
        self._checked: set[tuple[str, str]] = set()
        self._offsets: OffsetStore
        self._rebalance_service: RebalanceService
        self._background = Background(f"pull consumer of {self.group}")
        self._is_sharing = False
        self._stop_listening: Callable[[], None]

    # life

    async def _open(self, instance: Instance) -> None:
        broadcast = self.options.message_model == BROADCASTING
        if self._own_offsets is not None:
            self._offsets = self._own_offsets
        elif broadcast:
            self._offsets = LocalOffsets.of(instance, self.group, self.options.offset_dir)
        else:
            self._offsets = RemoteOffsets(instance, self.group, skip_young_queues=True)
        await self._offsets.load()
        instance.register_consumer(self.group, self._consumer_data)
        self._rebalance_service = RebalanceService(
            self._share_out, self.options.rebalance_interval_ms / 1000
        )
        self._stop_listening = self._rebalance_service.listen(instance, self.group)
        if self._topics:
            self._share_queues()

    async def _shut(self) -> None:
        """Leave the group. Commits nothing: that is up to the caller."""
        self._stop_listening()
        await self._background.close()
        await self._instance.unregister_consumer(self.group)

    def _share_queues(self) -> None:
        """Start the rebalance, once."""
        if not self._is_sharing:
            self._is_sharing = True
            self._background.spawn(self._rebalance_service.run())

    # pulling

    async def queues(self, topic: str) -> list[Queue]:
        """All readable queues of a topic."""
        instance = self.instance
        route = await instance.routes.get(topic)
        return sorted(instance.routes.subscribe_queues(route, topic))

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
        wanted = _expression(queue.topic, tags, sql)
        if sql is not None:
            await self._check_sql(queue, wanted)
        pulled = await pull_raw(
            self.instance,
            self.group,
            queue,
            offset,
            max_count=max_count,
            suspend=suspend,
            timeout=timeout,
            subscription=wanted,
            broker_id=self._broker_ids.get(queue, 0),
        )
        self._broker_ids[queue] = pulled.broker_id
        found = pulled.status is PullStatus.FOUND
        messages = received(pulled.body, queue) if found else []
        if wanted.tags_set:
            messages = [message for message in messages if message.tags in wanted.tags_set]
        return PullResult(
            pulled.status, messages, pulled.next_offset, pulled.min_offset, pulled.max_offset
        )

    async def _check_sql(self, queue: Queue, wanted: Subscription) -> None:
        """Ask the broker, before the first pull with an SQL condition, whether it accepts it."""
        key = queue.broker_name, wanted.sub_string
        if key in self._checked:
            return
        instance = self.instance
        await instance.routes.get(queue.topic)
        address = instance.routes.address_of(queue.broker_name, 0, any_id=True)
        await check_sql(instance, self.group, address, wanted)
        if len(self._checked) >= CHECKED_MAX:
            self._checked.clear()
        self._checked.add(key)

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
        self._check_open()
        return await self._offsets.read(queue)

    async def commit(self, queue: Queue, offset: int) -> None:
        """Store the group's progress: the offset of the next message to read."""
        self._check_open()
        await self._offsets.store({queue: offset}, wait=True)

    async def send_back(self, message: Received, delay_level: int = BROKER_LEVEL) -> None:
        """Send a message back for a retry by the group; level -1 sends it to the dead letters."""
        await SendBacks(self.instance, self.group, None)(message, delay_level)

    # assignment

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Call `listener` when the topic's queues or this member's assignment change."""
        self._listeners.setdefault(topic, []).append(listener)
        self._shares.pop(topic, None)
        if self._state == "open":
            self._rebalance_service.wake()
            self._share_queues()

    @property
    def _topics(self) -> list[str]:
        return list(dict.fromkeys([*self.options.register_topics, *self._listeners]))

    def share(self, topic: str) -> list[Queue]:
        """This member's queues of a registered topic, from the last rebalance."""
        return list(self._shares.get(topic, ([], []))[1])

    async def _share_out(self) -> float | None:
        settled = True
        for topic in self._topics:
            everything = await self._shares_of(topic, broadcast=True)
            await self._instance.heartbeats.send_new()
            broadcast = self.options.message_model == BROADCASTING
            mine = await self._shares_of(topic, broadcast=broadcast)
            if everything is None or mine is None:
                settled = False
            elif self._shares.get(topic) != (everything, mine):
                self._shares[topic] = (everything, mine)
                for listener in list(self._listeners.get(topic, [])):
                    listener(topic, list(everything), list(mine))
        return None if settled else SHARES_RETRY_SECONDS

    async def _shares_of(self, topic: str, *, broadcast: bool) -> list[Queue] | None:
        return await my_queues(
            self._instance, self.group, topic, self._strategy, broadcast=broadcast
        )

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            consume_type="CONSUME_ACTIVELY",
            group_name=self.group,
            message_model=self.options.message_model,
            subscription_data_set=[subscription(topic, ALL) for topic in self._topics],
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
