"""Takes messages for a pop: from any queue of a topic, and from its retry topics.

Progress moves as soon as messages are taken, so two pops never get the same ones. Data in memory is
read at once. Only a cold read is awaited; meanwhile other pops skip that queue.
"""

import random
from collections.abc import Awaitable, Generator, Iterator
from dataclasses import dataclass, field

from gantrymq.base.clock import WallClock
from gantrymq.broker.pop.checkpoints import PopCheckpoint
from gantrymq.broker.pop.order import OrderTable
from gantrymq.broker.pop.progress import Move, SafeProgress
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.subscriptions.pull_filter import EVERYTHING, PullFilter
from gantrymq.broker.tables.registry import Registry
from gantrymq.kernel import cut_records
from gantrymq.model import RETRY_PREFIX
from gantrymq.protocol.headers.pop import INIT_MIN
from gantrymq.protocol.pop import ORDER_REVIVE_QUEUE, Portion, pop_retry_topic, retry_flag
from gantrymq.store.append import ReadResult, ReadStatus
from gantrymq.store.engine import Store

MISPLACED = frozenset(
    {
        ReadStatus.OFFSET_TOO_SMALL,
        ReadStatus.OFFSET_OVERFLOW_BADLY,
        ReadStatus.OFFSET_FOUND_NULL,
    }
)
SKIPPED = frozenset({ReadStatus.NO_MATCHED_MESSAGE, ReadStatus.MESSAGE_WAS_REMOVING})

Steps = Generator[Awaitable[ReadResult], ReadResult, None]
"""Yields cold reads, is sent what they found."""


@dataclass(frozen=True)
class Wish:
    """A pop request: what it asks for, and its limits."""

    topic: str
    group: str
    queue_id: int
    limit: int
    limit_bytes: int
    invisible_ms: int = 0
    init_mode: int = INIT_MIN
    expression: str = ""
    filter: PullFilter = EVERYTHING
    ordered: bool = False
    attempt: str | None = None


@dataclass
class Lent:
    """Messages that were popped from one queue."""

    topic: str
    portion: Portion
    body: bytes
    counts: dict[int, int] = field(default_factory=dict)
    move: Move | None = None
    checkpoint: PopCheckpoint | None = None


@dataclass
class Taken:
    """What one pop has taken, and which queues it has to watch if it found none."""

    pop_ms: int
    revive_queue: int
    lent: list[Lent] = field(default_factory=list)
    count: int = 0
    size: int = 0
    rest: int = 0
    watch: dict[tuple[str, int], int] = field(default_factory=dict)
    look_again: bool = False
    """Whether there is more to look at right now."""
    passed_by: list[tuple[str, str, int]] = field(default_factory=list)
    """Queues that another pop was reading."""
    opens_ms: int | None = None
    """When the first closed queue opens again (ordered pops)."""


class Taking:
    """Reads queues for popping groups."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        progress: SafeProgress,
        order: OrderTable,
        revive_log: ReviveLog,
        clock: WallClock,
        rng: random.Random,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._progress, self._order, self._log = progress, order, revive_log
        self._clock, self._rng = clock, rng
        self._busy: dict[tuple[str, str, int], None] = {}
        self._turns: dict[tuple[str, str], int] = {}
        self._pops = 0

    def begin(self, ordered: bool) -> Taken:
        """The empty result of a new pop, with its time and its revive queue."""
        if ordered:
            return Taken(self._clock.now_ms(), ORDER_REVIVE_QUEUE)
        self._pops += 1
        return Taken(self._clock.now_ms(), self._pops % self._config.revive_queue_num)

    # where to look

    def retry_topics(self, group: str, topic: str) -> list[str]:
        """The retry topics of a topic and group, the current format first."""
        config = self._config
        v1, v2 = pop_retry_topic(group, topic), pop_retry_topic(group, topic, True)
        if not config.enable_retry_topic_v2:
            return [v1]
        return [v2, v1] if config.retrieve_message_from_pop_retry_topic_v1 else [v2]

    def queues_of(self, topic: str) -> int:
        found = self._registry.topics.get(topic)
        return found.read_queue_nums if found is not None else 0

    def places(self, want: Wish) -> Iterator[tuple[str, int]]:
        """Every queue to read; the first one rotates, so that none is always read last."""
        own = [want.queue_id] if want.queue_id >= 0 else self._rotated(want)
        normal = [(want.topic, queue_id) for queue_id in own]
        if want.ordered:
            yield from normal
            return
        retries = [
            (topic, queue_id)
            for topic in self.retry_topics(want.group, want.topic)
            for queue_id in range(max(1, self.queues_of(topic)))
        ]
        if self._rng.randrange(100) < self._config.pop_from_retry_probability:
            yield from retries
            yield from normal
        else:
            yield from normal
            yield from retries

    def _rotated(self, want: Wish) -> list[int]:
        count = self.queues_of(want.topic)
        if not count:
            return []
        key = want.topic, want.group
        first = self._turns.get(key, 0) % count
        self._turns[key] = first + 1
        return [*range(first, count), *range(first)]

    def position(self, group: str, topic: str, queue_id: int, init_mode: int) -> int:
        """The group's next offset; a new group starts where `init_mode` says, which is stored."""
        offsets = self._registry.offsets
        known = offsets.get(group, topic, queue_id)
        if known is not None and known >= 0:
            return known
        first = self._store.queues.min_offset(topic, queue_id)
        place = first
        if init_mode != INIT_MIN and first > 0 and not topic.startswith(RETRY_PREFIX):
            place = max(first, self._store.queues.max_offset(topic, queue_id) - 1)
        if self.queues_of(topic):
            offsets.commit(group, topic, queue_id, place)
        return place

    # taking

    def take(self, want: Wish, taken: Taken) -> Steps:
        """Fill `taken`; reads every queue once."""
        for topic, queue_id in self.places(want):
            yield from self._from_queue(want, taken, topic, queue_id)
        # The pop that reads a queue wakes others when it is done; it may be done already.
        taken.look_again |= any(place not in self._busy for place in taken.passed_by)
        if not want.ordered:
            self._make_checkpoints(want, taken)

    def _from_queue(self, want: Wish, taken: Taken, topic: str, queue_id: int) -> Steps:
        store, group = self._store, want.group
        place = group, topic, queue_id
        at = self.position(group, topic, queue_id, want.init_mode)
        end = store.queues.max_offset(topic, queue_id)
        if place in self._busy:
            taken.rest += max(0, end - at)
            taken.passed_by.append(place)
            return
        if want.ordered:
            until = self._order.closed_until_ms(group, topic, queue_id, at, want.attempt)
            if until > taken.pop_ms:
                taken.opens_ms = min(until, taken.opens_ms or until)
                return
        if taken.count >= want.limit or taken.size >= want.limit_bytes:
            taken.rest += max(0, end - at)
            return
        at, pulled = yield from self._read(want, taken, topic, queue_id, at)
        if self._registry.offsets.get(*place) not in (None, at):
            taken.look_again = True  # the progress was moved during a cold read
            return
        taken.watch[topic, queue_id] = pulled.max_offset + 1
        if pulled.status is ReadStatus.FOUND:
            self._lend(want, taken, topic, queue_id, at, pulled)
        elif pulled.status in SKIPPED and pulled.next_offset > at:
            self._registry.offsets.commit(group, topic, queue_id, pulled.next_offset)
            taken.look_again |= pulled.next_offset < pulled.max_offset
        taken.rest += max(0, pulled.max_offset - pulled.next_offset)

    def _read(
        self, want: Wish, taken: Taken, topic: str, queue_id: int, at: int
    ) -> Generator[Awaitable[ReadResult], ReadResult, tuple[int, ReadResult]]:
        """Read on from `at`; an offset outside the queue is corrected once.

        The store ends a read where a queue goes from its file over to memory. A second read gets
        the rest, so that a pop is as full as it can be.
        """
        place = want.group, topic, queue_id
        count, size = want.limit - taken.count, want.limit_bytes - taken.size
        pulled = yield from self._pull(want, place, at, count, size)
        if pulled.status in MISPLACED and pulled.next_offset != at:
            if self._registry.offsets.get(*place) == at:
                self._registry.offsets.commit(*place, pulled.next_offset)
            at = pulled.next_offset
            pulled = yield from self._pull(want, place, at, count, size)
        count, size = count - pulled.count, size - len(pulled.body)
        whole = pulled.next_offset >= pulled.max_offset
        if pulled.status is ReadStatus.FOUND and not whole and count > 0 and size > 0:
            more = yield from self._pull(want, place, pulled.next_offset, count, size)
            if more.status is ReadStatus.FOUND:
                pulled = ReadResult(
                    ReadStatus.FOUND,
                    more.next_offset,
                    more.min_offset,
                    more.max_offset,
                    pulled.count + more.count,
                    pulled.body + more.body,
                )
        return at, pulled

    def _pull(
        self, want: Wish, place: tuple[str, str, int], at: int, count: int, size: int
    ) -> Generator[Awaitable[ReadResult], ReadResult, ReadResult]:
        outcome = self._store.reads.pull(place[1], place[2], at, count, size, *want.filter)
        if isinstance(outcome, ReadResult):
            return outcome
        self._busy[place] = None
        try:
            return (yield outcome)
        finally:
            del self._busy[place]

    def _lend(
        self, want: Wish, taken: Taken, topic: str, queue_id: int, at: int, pulled: ReadResult
    ) -> None:
        cuts, _ = cut_records(pulled.body)
        offsets = [head.queue_offset for _, _, head in cuts]
        lent = Lent(topic, Portion(retry_flag(topic), queue_id, at, offsets), pulled.body)
        group = want.group
        if want.ordered:
            lent.counts = self._order.popped(
                group, topic, queue_id, at, offsets, taken.pop_ms, want.invisible_ms, want.attempt
            )
            # Progress passes filtered messages now; acknowledgements move it over the others.
            self._registry.offsets.commit(group, topic, queue_id, offsets[0])
        else:
            lent.move = self._progress.move(group, topic, queue_id, pulled.next_offset)
        taken.lent.append(lent)
        taken.count += len(offsets)
        taken.size += len(pulled.body)

    def _make_checkpoints(self, want: Wish, taken: Taken) -> None:
        """One checkpoint a queue, all with the same pop time; no open one has the same key."""
        while any(
            (lent.topic, want.group, lent.portion.queue_id, lent.portion.start, taken.pop_ms)
            in self._log.open
            for lent in taken.lent
        ):
            taken.pop_ms += 1
        for lent in taken.lent:
            _, queue_id, start, offsets = lent.portion
            lent.checkpoint = PopCheckpoint(
                lent.topic,
                want.group,
                queue_id,
                start,
                offsets,
                taken.pop_ms,
                want.invisible_ms,
                self._config.broker_name,
                taken.revive_queue,
            )

    def give_back(self, group: str, lent: Lent) -> None:
        """Move progress back, so that the next pop gets messages that were not handed out."""
        portion = lent.portion
        if lent.move is not None:
            self._progress.take_back(group, lent.topic, portion.queue_id, portion.start, lent.move)

    # looking only

    def has_messages(self, want: Wish) -> tuple[bool, Taken]:
        """Whether a pop would find messages; takes none."""
        seen = Taken(self._clock.now_ms(), 0)
        for topic, queue_id in self.places(want):
            at = self._registry.offsets.get(want.group, topic, queue_id)
            if at is None or at < 0:
                at = self._store.queues.min_offset(topic, queue_id)
            if want.ordered:
                until = self._order.closed_until_ms(want.group, topic, queue_id, at, want.attempt)
                if until > seen.pop_ms:
                    seen.opens_ms = min(until, seen.opens_ms or until)
                    continue
            end = self._store.queues.max_offset(topic, queue_id)
            if end > at:
                return True, seen
            seen.watch[topic, queue_id] = end + 1
        return False, seen

    async def peek(self, want: Wish) -> tuple[bytes, int]:
        """The records that a pop would get, and how many messages wait; progress does not move."""
        parts: list[bytes] = []
        count, size, rest = want.limit, want.limit_bytes, 0
        for topic, queue_id in self.places(want):
            at = self._registry.offsets.get(want.group, topic, queue_id)
            if at is None or at < 0:
                at = self._store.queues.min_offset(topic, queue_id)
            rest += max(0, self._store.queues.max_offset(topic, queue_id) - at)
            for _ in range(2):
                if count <= 0 or size <= 0:
                    break
                outcome = self._store.reads.pull(topic, queue_id, at, count, size)
                pulled = outcome if isinstance(outcome, ReadResult) else await outcome
                if pulled.status in MISPLACED:
                    at = pulled.next_offset
                    continue
                parts.append(pulled.body)
                count, size = count - pulled.count, size - len(pulled.body)
                break
        return b"".join(parts), rest
