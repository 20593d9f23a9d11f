"""Check-backs: asks producers for decisions that did not come.

When a half message is due, the broker stores a copy of it at the end of the half queue, notes the
old one as done in the op queue, and asks a connected producer of its group about the copy. So the
head of the half queue moves on, and after a restart the undecided messages lie between two offsets.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.plurals import counted
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stored_copies import stored
from gantrymq.broker.tables.registry import Offsets
from gantrymq.broker.transactions.check_back import CheckBack
from gantrymq.broker.transactions.half import HALF_QUEUE, with_property
from gantrymq.broker.transactions.half_messages import HalfMessage, HalfMessageTable
from gantrymq.broker.transactions.ops import OP_QUEUE, Decisions, named_by
from gantrymq.broker.transactions.transaction_end import read_content
from gantrymq.kernel import find_property
from gantrymq.model import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from gantrymq.protocol import properties
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

GROUP: Final = "CID_RMQ_SYS_TRANS"
"""Whose progress says where the undecided ones begin, as in RocketMQ."""
PROGRESS_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
LOOKED_AT_PER_SLICE: Final = 1_000
READ_MESSAGES, READ_BYTES = 1_024, 4 * 1024 * 1024
HOUR_MS: Final = 3_600_000


class Checker:
    """Checks back for due half messages, and stores the progress of both queues."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        offsets: Offsets,
        policy: Policy,
        check_back: CheckBack,
        half_messages: HalfMessageTable,
        decisions: Decisions,
        clock: WallClock,
    ) -> None:
        self._config, self._store, self._offsets, self._policy = config, store, offsets, policy
        self._check_back, self._half_messages = check_back, half_messages
        self._decisions, self._clock = decisions, clock
        self._seen: tuple[int, int, int] | None = None
        """Half offset, op offset and the log's end when everything before them was decided."""

    # after a start

    async def recover(self) -> None:
        """Load the undecided half messages from disk, before clients can send or decide."""
        half_messages = self._half_messages
        half_at = self._progress(HALF_TOPIC, HALF_QUEUE)
        half_messages.decisions_from = op_at = self._progress(OP_HALF_TOPIC, OP_QUEUE)
        decided: set[int] = set()
        async for message in self._messages(OP_HALF_TOPIC, OP_QUEUE, op_at):
            decided.update(offset for offset in named_by(message) if offset >= half_at)
        now_ms = self._clock.now_ms()
        async for message in self._messages(HALF_TOPIC, HALF_QUEUE, half_at):
            if message.queue_offset in decided:
                continue
            first = find_property(message.raw_properties, properties.PREPARED_QUEUE_OFFSET.encode())
            if first is not None and first.isdigit() and int(first) in decided:
                self._decisions.note(
                    message.queue_offset
                )  # RocketMQ's op records name the first copy
                continue
            half_messages.reopen(message, now_ms)
        if len(half_messages):
            log.info("undecided: %s", counted(len(half_messages), "transaction"))

    def _progress(self, topic: str, queue_id: int) -> int:
        low, high = (
            self._store.queues.min_offset(topic, queue_id),
            self._store.queues.max_offset(topic, queue_id),
        )
        return min(max(self._offsets.get(GROUP, topic, queue_id) or 0, low), high)

    async def _messages(self, topic: str, queue_id: int, at: int) -> AsyncIterator[StoredMessage]:
        """Every message of a queue from an offset on."""
        while at < self._store.queues.max_offset(topic, queue_id):
            outcome = self._store.reads.pull(topic, queue_id, at, READ_MESSAGES, READ_BYTES)
            pulled = outcome if isinstance(outcome, ReadResult) else await outcome
            if pulled.status is ReadStatus.FOUND:
                for message in decode_records(pulled.body):
                    yield message
                await asyncio.sleep(0)
            elif pulled.next_offset <= at:
                break
            at = pulled.next_offset

    # while the broker runs

    async def run(self) -> None:
        """Sleep until a half message is due, then check back."""
        loop, half_messages = asyncio.get_running_loop(), self._half_messages
        while True:
            half_messages.sooner.clear()
            wait = half_messages.next_due - loop.time()
            if wait > 0:
                try:
                    async with asyncio.timeout(wait if wait < float("inf") else None):
                        await half_messages.sooner.wait()
                    continue
                except TimeoutError:
                    pass
            try:
                await self._look()
            except OSError:
                log.exception("looking for undecided transactions failed")
                half_messages.expect(loop.time() + RETRY_SECONDS)

    async def _look(self) -> None:
        """Check back for due half messages; note the offset of the first undecided one."""
        store, half_messages = self._store, self._half_messages
        now = asyncio.get_running_loop().time()
        half = store.queues.max_offset(HALF_TOPIC, HALF_QUEUE)
        half_messages.decisions_from = op = store.queues.max_offset(OP_HALF_TOPIC, OP_QUEUE)
        log_end = store.log_max
        half_messages.next_due = float("inf")
        due: list[HalfMessage] = []
        for entries in half_messages.in_slices(LOOKED_AT_PER_SLICE):
            for entry in entries:
                half, op = min(half, entry.offset), min(op, entry.decisions_from)
                if entry.due <= now:
                    due.append(entry)
                else:
                    half_messages.expect(entry.due)
            await asyncio.sleep(0)
        self._remember(half, op, log_end)
        for entry in due:
            if not entry.done:
                await self._attend(entry)
                half_messages.expect(entry.due)

    def _remember(self, half: int, op: int, log_end: int) -> None:
        """Commit progress once the log is durable up to it: it must never be ahead of the log."""
        if self._seen is not None and self._store.kept.value >= self._seen[2]:
            self._offsets.commit(GROUP, HALF_TOPIC, HALF_QUEUE, self._seen[0])
            self._offsets.commit(GROUP, OP_HALF_TOPIC, OP_QUEUE, self._seen[1])
            self._seen = None
        known = [self._offsets.get(GROUP, topic, 0) or 0 for topic in (HALF_TOPIC, OP_HALF_TOPIC)]
        if self._seen is None and known != [half, op]:
            self._seen = half, op, log_end
        if self._seen is not None:
            self._half_messages.expect(asyncio.get_running_loop().time() + PROGRESS_SECONDS)

    # one message

    async def _attend(self, entry: HalfMessage) -> None:
        """Check back for one message, give it up, or only copy it to the end of its queue."""
        now = asyncio.get_running_loop().time()
        entry.due = now + RETRY_SECONDS
        if entry.deciding:
            return
        if not await read_content(self._store, self._half_messages, entry):
            log.error("undecided transaction at %d is no longer in the log", entry.physical)
            self._half_messages.close(entry)
            return
        asks = entry.check_at <= now
        age_ms = self._clock.now_ms() - entry.born_ms
        expired = age_ms > self._config.file_reserved_time * HOUR_MS
        if expired or (asks and entry.checks >= self._config.transaction_check_max):
            await self._give_up(entry)
            return
        copy = await self._renew(entry, asks)
        if copy is None:
            return
        entry.due = now + self._config.transaction_check_interval / 1000
        if asks:
            entry.checks += 1
            entry.check_at = entry.due
            self._check_back.ask(entry, copy)
        elif entry.check_at < entry.due:
            entry.due = entry.check_at

    async def _renew(self, entry: HalfMessage, asks: bool) -> Append | None:
        """Store a copy at the end of the half queue; None if that failed or the message is decided.

        Behind the copy the old one is noted as done, so that a restart finds only one of them.
        """
        assert entry.properties is not None
        if asks:
            name, value = properties.CHECK_TIMES, entry.checks + 1
        else:
            first = entry.first_offset if entry.first_offset >= 0 else entry.offset
            name, value = properties.PREPARED_QUEUE_OFFSET, first
        old = entry.offset
        copy = await self._copy(
            entry, HALF_TOPIC, with_property(entry.properties, name, f"{value}")
        )
        if not copy.status.is_stored:
            return None
        if entry.done:
            self._decisions.note(copy.queue_offset)
            return None
        self._half_messages.move(entry, copy)
        self._decisions.note(old)
        return copy

    async def _give_up(self, entry: HalfMessage) -> None:
        """Roll the message back, and keep a copy in a system topic for operators."""
        assert entry.properties is not None
        self._policy.ensure_topic(CHECK_MAX_TOPIC, 1)
        entry.deciding = True
        copy = await self._copy(entry, CHECK_MAX_TOPIC, entry.properties)
        entry.deciding = False
        if copy.status.is_stored:
            log.error(
                "transaction of %s for %s given up after %s, kept in %s at %d",
                entry.group,
                entry.topic,
                counted(entry.checks, "check"),
                CHECK_MAX_TOPIC,
                copy.queue_offset,
            )
            self._half_messages.close(entry)
            self._decisions.note(entry.offset)

    async def _copy(self, entry: HalfMessage, topic: str, stored_properties: bytes) -> Append:
        assert entry.body is not None
        copy = await stored(
            self._store,
            Append(
                topic,
                0,
                entry.body,
                properties=stored_properties,
                flag=entry.flag,
                sys_flag=entry.sys_flag,
                born_ms=entry.born_ms,
                born_host=entry.born_host,
                reconsume_times=entry.reconsume_times,
                wait=False,
            ),
        )
        if not copy.status.is_stored:
            log.warning("copy of the transaction at %d not stored: %s", entry.physical, copy.error)
        return copy
