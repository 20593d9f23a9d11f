"""Revives messages that were not acknowledged in time: to the retry topic or the dead letters.

First the copies are stored, then the record that settles them. A crash between the two leaves the
checkpoint open, and its messages are delivered once more: none is lost, some may come twice.
"""

import asyncio
import logging
from contextlib import suppress

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ProtocolError
from gantrymq.broker.policy import Policy
from gantrymq.broker.pop.checkpoints import PopCheckpoint
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import copy_of, put_all
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import RETRY_PREFIX, GroupConfig, dead_topic
from gantrymq.protocol import properties
from gantrymq.protocol.pop import pop_retry_topic
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

BATCH_MAX = 64
"""Checkpoints that are revived side by side."""
READ_BYTES_MAX = 8 * 1024 * 1024
RETRY_SECONDS = 1.0
PAUSE_SECONDS_MAX = 3_600.0
RETRY_QUEUES = 1


class Reviver:
    """Sleeps until the next checkpoint is due, then revives its open messages."""

    def __init__(
        self,
        config: BrokerConfig,
        revive_log: ReviveLog,
        store: Store,
        registry: Registry,
        policy: Policy,
        stats: BrokerStats,
        clock: WallClock,
    ) -> None:
        self._config, self._log, self._store, self._registry = config, revive_log, store, registry
        self._policy, self._stats, self._clock = policy, stats, clock
        self._wake = asyncio.Event()
        self._until_ms: float = -1
        self._advanced_at = float("-inf")
        """When the log was shortened last, in the loop's time."""

    def look(self, due_ms: int) -> None:
        """A new checkpoint is open; wake up if it is due before the next one that is awaited."""
        if due_ms < self._until_ms:
            self._wake.set()

    def settings_changed(self) -> None:
        """Wake up: `reviveInterval` may be shorter now."""
        self._wake.set()

    @property
    def _turn_at(self) -> float:
        """When the log's progress may be moved again, in loop time."""
        return self._advanced_at + self._config.revive_interval / 1000

    async def run(self) -> None:
        """Revive due checkpoints and, every `reviveInterval` ms, move the log's progress."""
        loop, config = asyncio.get_running_loop(), self._config
        self._log.on_change = lambda: self.look(self._clock.now_ms() + config.revive_interval)
        while True:
            await self._pause(self._turn_at - loop.time())
            try:
                await self._revive_due()
                if loop.time() > self._turn_at:
                    self._advanced_at = loop.time()
                    self._log.advance()
            except OSError:
                log.exception("reviving popped messages; trying again")
                await asyncio.sleep(RETRY_SECONDS)

    async def _pause(self, tick_seconds: float) -> None:
        """Sleep until a checkpoint is due, or until the progress of a changed log may be moved."""
        self._wake.clear()
        now_ms = self._clock.now_ms()
        due_ms = self._log.open.next_due_ms
        self._until_ms = float("inf") if due_ms is None else due_ms
        if self._log.changed:
            self._until_ms = min(self._until_ms, now_ms + max(0, tick_seconds * 1000) + 1)
        if self._until_ms == float("inf"):
            await self._wake.wait()
            return
        with suppress(TimeoutError):
            seconds = max(0.0, (self._until_ms - now_ms) / 1000)
            async with asyncio.timeout(min(seconds, PAUSE_SECONDS_MAX)):
                await self._wake.wait()

    async def _revive_due(self) -> None:
        while due := self._log.open.take_due(self._clock.now_ms(), BATCH_MAX):
            batch = [one for one in due if not one.acking]
            # One that is being acknowledged is scheduled again when the ack is stored or failed.
            for one in batch:
                one.reviving = True
            try:
                await asyncio.gather(*(self._revive(one) for one in batch))
            finally:
                for one in batch:
                    one.reviving = False
            await asyncio.sleep(0)

    async def _revive(self, checkpoint: PopCheckpoint) -> None:
        """Settle the messages whose copies are stored; the others stay open and are tried again."""
        try:
            copies = await self._copies(checkpoint)
        except Exception as error:  # one bad message must not stop the others
            self._later(checkpoint, f"{type(error).__name__}: {error}")
            return
        refused = await put_all(self._store, list(copies.values()))
        self._stats.put_copies(copies.values())
        self._stats.revive(checkpoint.group, checkpoint.topic, copies.values())
        left = {id(copy) for copy in refused}
        again = {offset for offset, copy in copies.items() if id(copy) in left}
        bits = checkpoint.bits(o for o in checkpoint.open_offsets() if o not in again)
        if bits:
            done: asyncio.Future[Append] = asyncio.get_running_loop().create_future()
            self._log.settle(checkpoint, bits, done.set_result, wait=False)
            record = await done
            if not record.status.is_stored:
                refused.append(record)
        if refused:
            self._later(checkpoint, refused[0].error)

    def _later(self, checkpoint: PopCheckpoint, why: str) -> None:
        log.warning("popped messages of %s not retried yet: %s", checkpoint.topic, why)
        if self._log.open.is_open(checkpoint):
            self._log.open.watch(checkpoint, self._clock.now_ms() + int(RETRY_SECONDS * 1000))

    # copies

    async def _copies(self, checkpoint: PopCheckpoint) -> dict[int, Append]:
        """Copies of the open messages, by offset, without messages that the store no longer has."""
        group = self._registry.groups.get(checkpoint.group)
        if group is None or self._registry.topics.get(checkpoint.topic) is None:
            log.info("%s or %s was deleted: nothing to retry", checkpoint.group, checkpoint.topic)
            return {}
        copies: dict[int, Append] = {}
        for first, count in runs(checkpoint.open_offsets()):
            found = await self._read(checkpoint, first, count)
            copies |= {one.queue_offset: self._copy(one, checkpoint, group) for one in found}
        return copies

    async def _read(self, checkpoint: PopCheckpoint, first: int, count: int) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        at, end = first, first + count
        while at < end:
            outcome = self._store.reads.pull(
                checkpoint.topic, checkpoint.queue_id, at, end - at, READ_BYTES_MAX
            )
            pulled = outcome if isinstance(outcome, ReadResult) else await outcome
            if pulled.status is ReadStatus.FOUND:
                found += decode_records(pulled.body)
            elif pulled.next_offset <= at:
                break
            at = pulled.next_offset
        return [message for message in found if first <= message.queue_offset < end]

    def _copy(
        self, message: StoredMessage, checkpoint: PopCheckpoint, group: GroupConfig
    ) -> Append:
        found = dict(message.properties)
        found.setdefault(properties.FIRST_POP_TIME, str(checkpoint.pop_ms))
        if message.reconsume_times >= group.retry_max_times:
            topic = self._dead(message, checkpoint, found)
        else:
            topic = self._retry_topic(checkpoint)
        copy = copy_of(message, topic, 0, _encoded(found) or message.raw_properties)
        copy.reconsume_times = message.reconsume_times + 1
        return copy

    def _dead(
        self, message: StoredMessage, checkpoint: PopCheckpoint, found: dict[str, str]
    ) -> str:
        origin = checkpoint.topic
        for v2 in (False, True):
            head = pop_retry_topic(checkpoint.group, "", v2)
            if origin.startswith(head):
                origin = origin[len(head) :]
                break
        self._stats.dead_letter(checkpoint.group, origin)
        found.setdefault(properties.DEAD_ORIGIN_TOPIC, origin)
        found.setdefault(
            properties.DEAD_ORIGIN_MESSAGE_ID,
            found.get(properties.UNIQ_KEY) or message.offset_message_id,
        )
        return self._policy.ensure_topic(dead_topic(checkpoint.group), 1).topic_name

    def _retry_topic(self, checkpoint: PopCheckpoint) -> str:
        topic, group = checkpoint.topic, checkpoint.group
        if not topic.startswith(RETRY_PREFIX):
            topic = pop_retry_topic(group, topic, self._config.enable_retry_topic_v2)
        self._policy.ensure_topic(topic, RETRY_QUEUES)
        if self._registry.offsets.get(group, topic, 0) is None:
            self._registry.offsets.commit(group, topic, 0, 0)
        return topic


def _encoded(found: dict[str, str]) -> bytes | None:
    """The properties in stored form; None if they are too long or a value cannot be encoded."""
    try:
        encoded = properties.encode(found).encode()
    except ProtocolError:
        return None
    return encoded if len(encoded) <= properties.BYTES_MAX else None


def runs(offsets: list[int]) -> list[tuple[int, int]]:
    """Consecutive offsets joined: (first, count)."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and sum(found[-1]) == offset:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((offset, 1))
    return found
