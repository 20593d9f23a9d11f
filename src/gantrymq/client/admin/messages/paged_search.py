"""A search that goes on from where it stopped: page by page through the queues of a topic.

A search is a value: for each queue the offsets between which it looks and where it stands. One call
of `search_on` looks for a bounded time, returns the messages that it found in the order of their
store times, and the search as it stands then. Whoever stops calling has cancelled it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.messages.message_query import FOREVER_MS, read_records
from gantrymq.client.admin.messages.message_search import GROUP
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.subscriptions import SQL, check_sql
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.filter import condition
from gantrymq.model import Queue, Subscription
from gantrymq.protocol.subscription import ALL, subscription

PULL_COUNT_MIN: Final = 8
PULL_COUNT_MAX: Final = 256
HELD_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of all queues together: so much is asked for at once."""
PULL_BYTES_MIN: Final = 16 * 1024
PULL_BYTES_MAX: Final = 1024 * 1024
AT_ONCE: Final = 8
SECONDS_DEFAULT: Final = 1.5

Takes = Callable[[Received], bool]


class QueueSpan(msgspec.Struct, frozen=True, array_like=True):
    """One queue of a search: it looks at offsets from `low` up to, without, `high`."""

    broker: str
    queue_id: int
    low: int
    high: int
    at: int
    """The next offset; of a search from the newest on, the offset after the next."""


class SearchPlace(msgspec.Struct, frozen=True, array_like=True):
    """A search, and how far it came."""

    topic: str
    newest_first: bool
    begin_ms: int
    end_ms: int
    follows: bool
    """It has no end: it goes on with messages that are not stored yet."""
    spans: list[QueueSpan]
    has_gaps: bool = False
    """A call before this one could not read all that it passed."""

    def left(self, span: QueueSpan) -> int:
        """How many offsets of a queue are not looked at yet."""
        return span.at - span.low if self.newest_first else max(0, span.high - span.at)

    @property
    def looked_at(self) -> int:
        return sum(span.high - span.low - self.left(span) for span in self.spans)

    @property
    def in_all(self) -> int:
        return sum(span.high - span.low for span in self.spans)

    @property
    def is_over(self) -> bool:
        """Whether every queue was looked through."""
        return not self.follows and not any(self.left(span) for span in self.spans)


class SearchPage(msgspec.Struct, frozen=True):
    """What one call found."""

    messages: list[Received]
    place: SearchPlace
    gaps: list[str]
    """Queues that could not be read, and why; and what was deleted meanwhile."""


def expression(topic: str, tags: str | None, sql: str | None) -> Subscription:
    """The subscription for a tag expression or an SQL condition; raises for a wrong one."""
    if not sql:
        return subscription(topic, tags or ALL)
    condition(sql)
    return subscription(topic, sql, SQL)


async def begin_search(
    instance: Instance,
    topic: str,
    *,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    newest_first: bool = True,
    queue: Queue | None = None,
    offset: int | None = None,
) -> SearchPlace:
    """A search between two times; in one queue only, or there from an offset on, if given."""
    queues = [queue] if queue is not None else await _queues(instance, topic)
    spans = await _each(queues, lambda each: _span(instance, each, begin_ms, end_ms, offset))
    placed = [
        span if newest_first else msgspec.structs.replace(span, at=span.low) for span in spans
    ]
    return SearchPlace(topic, newest_first, begin_ms, end_ms, False, placed)


async def begin_tail(instance: Instance, topic: str) -> SearchPlace:
    """A search for messages that are stored from now on."""

    async def last(queue: Queue) -> QueueSpan:
        end = await queue_offsets.max_offset(instance, queue)
        return QueueSpan(queue.broker_name, queue.queue_id, end, end, end)

    spans = await _each(await _queues(instance, topic), last)
    return SearchPlace(topic, False, 0, FOREVER_MS, True, spans)


async def _queues(instance: Instance, topic: str) -> list[Queue]:
    route = await instance.routes.refresh(topic)
    return sorted(instance.routes.subscribe_queues(route, topic))


async def _each(
    queues: Sequence[Queue], ask: Callable[[Queue], Awaitable[QueueSpan]]
) -> list[QueueSpan]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def asked(queue: Queue) -> QueueSpan:
        async with gate:
            return await ask(queue)

    return list(await asyncio.gather(*(asked(queue) for queue in queues)))


async def _span(
    instance: Instance, queue: Queue, begin_ms: int, end_ms: int, offset: int | None
) -> QueueSpan:
    low = await queue_offsets.min_offset(instance, queue)
    high = await queue_offsets.max_offset(instance, queue)
    if begin_ms > 0:
        low = max(low, await queue_offsets.search_offset(instance, queue, begin_ms))
    if end_ms < FOREVER_MS:
        after = await queue_offsets.search_offset(instance, queue, end_ms + 1)
        high = min(high, after + 1)  # brokers differ by one at the end; times are compared below
    if offset is not None:
        low = max(low, offset)
    low = max(0, min(low, high))
    return QueueSpan(queue.broker_name, queue.queue_id, low, high, high)


async def search_on(
    instance: Instance,
    place: SearchPlace,
    wanted: Subscription,
    *,
    takes: Takes = lambda _: True,
    limit: int = 50,
    seconds: float = SECONDS_DEFAULT,
) -> SearchPage:
    """Look on for up to `limit` messages, or for so many seconds."""
    return await _Search(instance, place, wanted, takes, limit).run(seconds)


class _Looked:
    """One queue while a page is made: its span, and what was found and not handed out yet."""

    def __init__(self, span: QueueSpan) -> None:
        self.span = span
        self.at = span.at
        self.found: deque[Received] = deque()
        self.trouble: GantryError | None = None
        self.is_idle = False
        """Nothing more is there at the moment."""


class _Search:
    """One call of `search_on`."""

    def __init__(
        self,
        instance: Instance,
        place: SearchPlace,
        wanted: Subscription,
        takes: Takes,
        limit: int,
    ) -> None:
        self._instance, self._place, self._wanted = instance, place, wanted
        self._takes, self._limit = takes, limit
        self._queues = [_Looked(span) for span in place.spans]
        count = max(1, len(self._queues))
        self._count = min(PULL_COUNT_MAX, max(PULL_COUNT_MIN, 2 * limit // count))
        self._bytes = min(PULL_BYTES_MAX, max(PULL_BYTES_MIN, HELD_BYTES_MAX // count))
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._gaps: list[str] = []
        """What was passed and could not be read."""

    async def run(self, seconds: float) -> SearchPage:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        await self._check_sql()
        messages: list[Received] = []
        while len(messages) < self._limit:
            hungry = [each for each in self._queues if not each.found and self._goes_on(each)]
            if hungry:
                if loop.time() >= deadline:
                    break
                await asyncio.gather(*(self._fill(each) for each in hungry))
                continue
            ready = [each for each in self._queues if each.found]
            if not ready:
                break
            first = min(ready, key=self._order)
            messages.append(first.found.popleft())
        broken = self._broken()
        spans = [self._stands(each) for each in self._queues]
        has_gaps = self._place.has_gaps or bool(self._gaps)
        place = msgspec.structs.replace(self._place, spans=spans, has_gaps=has_gaps)
        return SearchPage(messages, place, self._gaps + broken)

    async def _check_sql(self) -> None:
        """Ask each broker whether it takes an SQL condition; a pull would only skip everything."""
        if self._wanted.expression_type != SQL:
            return
        for name in sorted({span.broker for span in self._place.spans}):
            await self._instance.routes.get(self._place.topic)
            address = self._instance.routes.address_of(name, 0, any_id=True)
            await check_sql(self._instance, GROUP, address, self._wanted)

    def _order(self, each: _Looked) -> tuple[int, int]:
        head = each.found[0]
        key = head.store_ms, head.log_offset
        return (-key[0], -key[1]) if self._place.newest_first else key

    def _goes_on(self, each: _Looked) -> bool:
        if each.trouble is not None or each.is_idle:
            return False
        if self._place.newest_first:
            return each.at > each.span.low
        return self._place.follows or each.at < each.span.high

    def _stands(self, each: _Looked) -> QueueSpan:
        at = each.at
        if each.found:
            head = each.found[0].offset
            at = head + 1 if self._place.newest_first else head
        high = max(each.span.high, at) if self._place.follows else each.span.high
        return msgspec.structs.replace(each.span, at=at, high=high)

    def _broken(self) -> list[str]:
        """The queues that could not be read, and are where they were.

        Raises the trouble if that is every queue, for example for a refused SQL condition.
        """
        broken = [each for each in self._queues if each.trouble is not None]
        if broken and len(broken) == len(self._queues) and broken[0].trouble is not None:
            raise broken[0].trouble
        return [f"{self._queue(each)}: {each.trouble}" for each in broken]

    def _queue(self, each: _Looked) -> Queue:
        return Queue(self._place.topic, each.span.broker, each.span.queue_id)

    async def _fill(self, each: _Looked) -> None:
        async with self._gate:
            try:
                if self._place.newest_first:
                    await self._look_back(each)
                else:
                    await self._look_on(each)
            except GantryError as error:
                each.trouble = error

    async def _look_on(self, each: _Looked) -> None:
        end = None if self._place.follows else each.span.high
        messages, moved = await self._pull(each, each.at)
        each.found += [m for m in messages if end is None or m.offset < end]
        each.is_idle = moved <= each.at
        if each.is_idle and end is not None:
            self._note_unread(each, each.at, end)
            moved = end
        each.at = moved if end is None else min(moved, end)

    async def _look_back(self, each: _Looked) -> None:
        """Read the block of offsets before the last one, and hand it out backwards."""
        begin, end = max(each.span.low, each.at - self._count), each.at
        block: list[Received] = []
        offset = begin
        while offset < end:
            messages, moved = await self._pull(each, offset, end - offset)
            block += [m for m in messages if begin <= m.offset < end]
            if moved <= offset:
                self._note_unread(each, offset, end)
                break
            offset = moved
        each.found += reversed(block)
        each.at = begin

    def _note_unread(self, each: _Looked, first: int, end: int) -> None:
        """A broker says that nothing is there, where something was when the search began."""
        self._gaps.append(f"{self._queue(each)}: {first} to {end - 1} are not there any more")

    async def _pull(
        self, each: _Looked, offset: int, count: int = PULL_COUNT_MAX
    ) -> tuple[list[Received], int]:
        """The wanted messages of one pull, and where the next one goes on."""
        queue = self._queue(each)
        pulled = await pull_raw(
            self._instance, GROUP, queue, offset,
            max_count=min(count, self._count), max_bytes=self._bytes, subscription=self._wanted,
        )  # fmt: skip
        if pulled.status is PullStatus.NO_NEW:
            return [], offset
        if pulled.status is PullStatus.OFFSET_MOVED and pulled.next_offset > offset:
            self._gaps.append(f"{queue}: messages before {pulled.next_offset} are deleted")
        records = read_records(pulled.body, queue.broker_name)
        tags = self._wanted.tags_set
        found = [
            message
            for message in records
            if self._place.begin_ms <= message.store_ms <= self._place.end_ms
            and (not tags or message.tags in tags)
            and self._takes(message)
        ]
        return found, pulled.next_offset
