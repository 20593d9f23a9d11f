"""Moves a backlog into a topic with more queues, so that more consumers can share it.

The unread messages of one group are copied into the other topic, and only then the group's progress
is moved. After an interruption a message may be unread in the old topic and copied as well; the
next run finds that copy and makes no second one. The same call continues where it stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups import reset_offsets
from gantrymq.client.admin.letters.resend import LEFT_BEHIND, STORED
from gantrymq.client.admin.topics.spread_marks import Copies, copies_there, mark_of, read_block
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.offset_store import RemoteOffsets
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused, ClientError
from gantrymq.client.core.heartbeat import INNER_PRODUCER
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.client.sending.send_policy import BUSY_CODES, sharded
from gantrymq.model import (
    DEAD_PREFIX,
    RETRY_PREFIX,
    Queue,
    TopicConfig,
    check_group_name,
    check_topic_name,
    is_system_topic,
)
from gantrymq.protocol import calls, properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.compression import COMPRESSED, TYPE_MASK
from gantrymq.protocol.headers.messages import SendRequestV2

T = TypeVar("T")

RATE_DEFAULT: Final = 1000.0
SAY_SECONDS: Final = 2.0
TRIES_MAX: Final = 5
TRY_PAUSE_SECONDS: Final = 1.0
PASSING_CODES: Final = BUSY_CODES | {ResponseCode.SERVICE_NOT_AVAILABLE}
"""Answers by which nothing is stored and which pass by themselves."""

Keyless = Literal["spread", "queue", "keys"]
"""Where messages without a sharding key go: anywhere, where their queue goes, or by their first
key."""


class GroupRuns(ClientError):
    """Members of the group read the topic: they would get the same messages as the spread."""


@dataclass
class SpreadRow:
    """The unread messages of one queue, and how many were moved or skipped."""

    queue: Queue
    start: int
    end: int
    moved: int = 0
    skipped: int = 0
    """They had been copied before."""

    @property
    def waiting(self) -> int:
        return self.end - self.start


class Spread:
    """Moves the unread messages of `group` in `topic` to `to`, with `queues` queues a broker."""

    def __init__(
        self,
        admin: Admin,
        topic: str,
        *,
        group: str,
        to: str,
        queues: int,
        rate: float = RATE_DEFAULT,
        keyless: Keyless | None = None,
        force: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        for name in (topic, to):
            check_topic_name(name)
            if is_system_topic(name) or name.startswith((RETRY_PREFIX, DEAD_PREFIX)):
                raise ClientError(f"{name} belongs to the system: only topics of yours are spread")
        check_group_name(group)
        if topic == to:
            raise ClientError("a topic is spread into another one, not into itself")
        if queues < 1 or rate <= 0:
            raise ClientError("queues and rate are above 0")
        self._admin, self._say = admin, say
        self._topic, self._to, self._group = topic, to, group
        self._queues, self._rate, self._keyless, self._force = queues, rate, keyless, force
        self.rows: list[SpreadRow] = []
        """What `run` moves, and how far each queue is."""

    async def plan(self) -> list[SpreadRow]:
        """What `run` would move now; changes nothing."""
        await self._refuse_running()
        instance = self._admin.instance
        route = await instance.routes.refresh(self._topic)
        offsets = RemoteOffsets(instance, self._group, skip_young_queues=True)
        rows, known = [], False
        for queue in instance.routes.subscribe_queues(route, self._topic):
            read = await offsets.read(queue)
            known = known or read is not None
            first = await queue_offsets.min_offset(instance, queue)
            end = await queue_offsets.max_offset(instance, queue)
            rows.append(SpreadRow(queue, min(max(read or 0, first), end), end))
        if not known:
            raise ClientError(f"group {self._group!r} has never read {self._topic!r}")
        return rows

    async def run(self) -> list[SpreadRow]:
        """Move the messages; returns one row a queue."""
        self.rows = rows = await self.plan()
        configs = await _configs(self._admin, self._topic)
        keyless = self._keyless or await self._default_keyless(configs)
        targets = await self._make_target(configs)
        instance = self._admin.instance
        waiting = {row.queue: row.start for row in rows if row.waiting}
        copies = await copies_there(instance, targets, waiting) if waiting else {}
        mover = _Mover(instance, self._group, targets, keyless, self._rate, copies, self._force)
        await self._move(mover, rows)
        for row in rows:
            left = await queue_offsets.max_offset(instance, row.queue) - row.end
            if left > 0:
                came = counted(left, "message")
                self._say(f"{row.queue}: {came} came meanwhile: run it again for more")
        return rows

    async def _move(self, mover: "_Mover", rows: Sequence[SpreadRow]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._watch(rows))
                async with asyncio.TaskGroup() as copying:
                    for number, row in enumerate(rows):
                        copying.create_task(mover.move(number, row))
                watch.cancel()
        except BaseExceptionGroup as errors:
            error = _first(errors)
            if isinstance(error, TRANSPORT_ERRORS):
                raise ClientError(f"stopped, run it again to go on: {error}") from error
            raise error from None

    async def _watch(self, rows: Sequence[SpreadRow]) -> None:
        """Report progress, and raise GroupRuns when members of the group appear."""
        total, last = sum(row.waiting for row in rows), 0
        while True:
            await asyncio.sleep(SAY_SECONDS)
            done = sum(row.moved + row.skipped for row in rows)
            self._say(f"{done} of {total} moved, {(done - last) / SAY_SECONDS:.0f} a second")
            last = done
            try:
                await self._refuse_running()
            except GroupRuns:
                raise
            except GantryError as error:
                self._say(f"whether members run is not known: {error}")

    async def _refuse_running(self) -> None:
        running = await self._admin.consumers(self._group)
        if running.message_model == "BROADCASTING":
            raise GroupRuns(
                f"members of {self._group!r} broadcast: each keeps its own progress, so nothing "
                "waits for the group"
            )
        if self._force or self._topic not in running.subscription_table:
            return
        names = ", ".join(sorted(each.client_id for each in running.connection_set))
        raise GroupRuns(
            f"{self._group!r} reads {self._topic!r} right now ({names}): its members would get "
            "messages twice and out of order. Stop them first, or force it"
        )

    async def _default_keyless(self, configs: dict[str, TopicConfig]) -> Keyless:
        """Keep the order of each queue for an order topic or an ordered group, else spread."""
        if any(config.order for config in configs.values()):
            return "queue"
        group = (await self._admin.groups()).get(self._group)
        return "queue" if group is not None and group.consume_message_orderly else "spread"

    async def _make_target(self, configs: dict[str, TopicConfig]) -> list[Queue]:
        """The queues of the target topic, which is created on brokers that do not have it."""
        there = await _configs(self._admin, self._to)
        for broker, config in configs.items():
            known = there.get(broker)
            if known is None:
                self._say(f"{broker}: topic {self._to} with {counted(self._queues, 'queue')}")
                await self._admin.create_topic(
                    self._to, queues=self._queues, order=config.order, broker=broker
                )
            elif (known.read_queue_nums, known.write_queue_nums) != (self._queues, self._queues):
                raise ClientError(
                    f"{self._to!r} has {counted(known.write_queue_nums, 'queue')} on {broker}, not "
                    f"{self._queues}: keys would change their queue half-way"
                )
        instance = self._admin.instance
        route = await instance.routes.refresh(self._to)
        targets = instance.routes.publish_queues(route, self._to)
        if not targets:
            raise ClientError(f"{self._to!r} has no queue that may be written to")
        return targets


async def _configs(admin: Admin, topic: str) -> dict[str, TopicConfig]:
    """Broker to its settings of the topic; brokers without the topic are left out."""
    found = {}
    for broker, address in sorted((await admin.masters()).items()):
        config = (await admin.topic_configs(address)).get(topic)
        if config is not None:
            found[broker] = config
    return found


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Run work that may be repeated, again after transport errors."""
    for _ in range(TRIES_MAX - 1):
        try:
            return await work()
        except TRANSPORT_ERRORS:
            await asyncio.sleep(TRY_PAUSE_SECONDS)
    return await work()


class _Pace:
    """Limits callers to `rate` a second."""

    def __init__(self, rate: float) -> None:
        self._step, self._next = 1 / rate, 0.0

    async def turn(self) -> None:
        now = asyncio.get_running_loop().time()
        at = max(self._next, now)
        self._next = at + self._step
        if at > now:
            await asyncio.sleep(at - now)


class _Mover:
    """Copies queues, each in its order, and moves the group's progress after each block."""

    def __init__(
        self,
        instance: Instance,
        group: str,
        targets: Sequence[Queue],
        keyless: Keyless,
        rate: float,
        copies: Copies,
        force: bool,
    ) -> None:
        self._instance, self._targets, self._keyless = instance, targets, keyless
        self._pace, self._copies = _Pace(rate), copies
        self._progress = _GroupProgress(instance, group, force)

    async def move(self, number: int, row: SpreadRow) -> None:
        at = row.start
        while at < row.end:
            messages, after = await _patiently(
                partial(read_block, self._instance, row.queue, at, row.end)
            )
            if after == at:
                raise ClientError(f"{row.queue} ends at {at}, but went on to {row.end} before")
            await self._copy(number, row, messages)
            await _patiently(partial(self._progress.store, row.queue, at, after))
            at = after

    async def _copy(self, number: int, row: SpreadRow, messages: Sequence[Received]) -> None:
        """Send messages for one target queue one by one, and target queues side by side."""
        known = self._copies.get(row.queue, ())
        chains: dict[Queue, list[Received]] = {}
        for message in messages:
            if message.offset in known:
                row.skipped += 1
            else:
                chains.setdefault(self._target(number, message), []).append(message)
        async with asyncio.TaskGroup() as tasks:
            for target, chain in chains.items():
                tasks.create_task(self._chain(row, target, chain))

    async def _chain(self, row: SpreadRow, target: Queue, chain: Sequence[Received]) -> None:
        for message in chain:
            await self._pace.turn()
            await self._send(target, message)
            row.moved += 1

    def _target(self, number: int, message: Received) -> Queue:
        """The target queue: the same in every run; by sharding key as producers choose it."""
        key = message.properties.get(properties.SHARDING_KEY)
        if key is None and self._keyless == "keys" and message.keys:
            key = message.keys[0]
        if key is not None:
            return sharded(self._targets, key)
        turn = number if self._keyless == "queue" else number + message.offset
        return self._targets[turn % len(self._targets)]

    async def _send(self, target: Queue, message: Received) -> None:
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                await self._send_once(target, message)
                return
            except BrokerRefused as error:
                if error.code not in PASSING_CODES or not tries_left:
                    raise ClientError(f"{message!r} not copied: {error}") from error
            except TRANSPORT_ERRORS as error:
                if not tries_left:
                    raise ClientError(f"{message!r} not copied: {error}") from error
            await asyncio.sleep(TRY_PAUSE_SECONDS)
            if await self._has_arrived(target, message):
                return

    async def _has_arrived(self, target: Queue, message: Received) -> bool:
        """Whether the broker stored a copy whose send got no answer."""
        starts = {message.queue: message.offset}
        found = await _patiently(partial(copies_there, self._instance, [target], starts))
        return message.offset in found.get(message.queue, ())

    async def _send_once(self, target: Queue, message: Received) -> None:
        instance = self._instance
        kept = {name: text for name, text in message.properties.items() if name not in LEFT_BEHIND}
        kept[properties.SPREAD_FROM] = mark_of(message)
        header = SendRequestV2(
            producer_group=INNER_PRODUCER,
            topic=target.topic,
            queue_id=target.queue_id,
            sys_flag=message.sys_flag & (COMPRESSED | TYPE_MASK),
            born_timestamp=message.born_ms,
            flag=message.flag,
            reconsume_times=0,
            properties=properties.fitted(kept),
            unit_mode=False,
            batch=False,
        )
        await instance.call(
            instance.routes.address_of(target.broker_name),
            calls.SEND_MESSAGE_V2,
            header,
            message.stored_body,
            expect=STORED,
        )


class _GroupProgress:
    """Moves a group's progress forward.

    By a commit, unless progress was reset and no member has pulled since: the broker then ignores
    commits as outdated, so it takes a reset. With `force` always by a reset, which running members
    follow.
    """

    def __init__(self, instance: Instance, group: str, force: bool) -> None:
        self._instance, self._group = instance, group
        self._offsets = RemoteOffsets(instance, group, skip_young_queues=True)
        self._commits: dict[Queue, bool] = {}
        self._force = force

    async def store(self, queue: Queue, before: int, after: int) -> None:
        if queue not in self._commits:
            self._commits[queue] = not self._force and await self._is_taken(queue, after)
        elif self._commits[queue]:
            await self._offsets.store({queue: after}, wait=True)
        if not self._commits[queue]:
            row = reset_offsets.ResetRow(queue, before, after, before, after)
            await reset_offsets.reset(self._instance, self._group, [row])

    async def _is_taken(self, queue: Queue, after: int) -> bool:
        await self._offsets.store({queue: after}, wait=True)
        return await self._offsets.read(queue) == after
