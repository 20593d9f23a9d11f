"""Check-backs: asks producers for decisions that did not come.

When a half message is due, the broker stores a copy of it at the end of the half queue, notes the
old one as done in the op queue, and asks a connected producer of its group about the copy. So the
head of the half queue moves on, and after a restart the undecided messages lie between two offsets.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.plurals import counted
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stored_copies import stored
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.registry import Offsets
from gantrymq.broker.transactions.ending import read_content
from gantrymq.broker.transactions.half import HALF_QUEUE, with_property
from gantrymq.broker.transactions.ledger import HalfMessageTable, Undecided
from gantrymq.broker.transactions.ops import OP_QUEUE, Decisions, named_by
from gantrymq.kernel import encode_records, find_property
from gantrymq.model import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from gantrymq.protocol import properties
from gantrymq.protocol.calls import CHECK_TRANSACTION_STATE
from gantrymq.protocol.command import Command
from gantrymq.protocol.ids import offset_msg_id
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
        sessions: Sessions,
        ledger: HalfMessageTable,
        decisions: Decisions,
        clock: WallClock,
        rng: random.Random,
        store_host: bytes,
    ) -> None:
        self._config, self._store, self._offsets = config, store, offsets
        self._policy, self._sessions, self._ledger = policy, sessions, ledger
        self._decisions, self._clock, self._rng = decisions, clock, rng
        self._store_host = store_host
        self._seen: tuple[int, int, int] | None = None
        """Half offset, op offset and the log's end when everything before them was decided."""

    # after a start

    async def recover(self) -> None:
        """Load the undecided half messages from disk, before clients can send or decide."""
        ledger = self._ledger
        half_at = self._progress(HALF_TOPIC, HALF_QUEUE)
        ledger.decisions_from = op_at = self._progress(OP_HALF_TOPIC, OP_QUEUE)
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
            ledger.reopen(message, now_ms)
        if len(ledger):
            log.info("undecided: %s", counted(len(ledger), "transaction"))

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
        loop, ledger = asyncio.get_running_loop(), self._ledger
        while True:
            ledger.sooner.clear()
            wait = ledger.next_due - loop.time()
            if wait > 0:
                try:
                    async with asyncio.timeout(wait if wait < float("inf") else None):
                        await ledger.sooner.wait()
                    continue
                except TimeoutError:
                    pass
            try:
                await self._look()
            except OSError:
                log.exception("looking for undecided transactions failed")
                ledger.expect(loop.time() + RETRY_SECONDS)

    async def _look(self) -> None:
        """Check back for due half messages; note the offset of the first undecided one."""
        store, ledger = self._store, self._ledger
        now = asyncio.get_running_loop().time()
        half = store.queues.max_offset(HALF_TOPIC, HALF_QUEUE)
        ledger.decisions_from = op = store.queues.max_offset(OP_HALF_TOPIC, OP_QUEUE)
        log_end = store.log_max
        ledger.next_due = float("inf")
        due: list[Undecided] = []
        for entries in ledger.in_slices(LOOKED_AT_PER_SLICE):
            for entry in entries:
                half, op = min(half, entry.offset), min(op, entry.decisions_from)
                if entry.due <= now:
                    due.append(entry)
                else:
                    ledger.expect(entry.due)
            await asyncio.sleep(0)
        self._remember(half, op, log_end)
        for entry in due:
            if not entry.done:
                await self._attend(entry)
                ledger.expect(entry.due)

    def _remember(self, half: int, op: int, log_end: int) -> None:
        """Commit progress once the log is durable up to it: it must never be ahead of the log."""
        if self._seen is not None and self._store.flushed.value >= self._seen[2]:
            self._offsets.commit(GROUP, HALF_TOPIC, HALF_QUEUE, self._seen[0])
            self._offsets.commit(GROUP, OP_HALF_TOPIC, OP_QUEUE, self._seen[1])
            self._seen = None
        known = [self._offsets.get(GROUP, topic, 0) or 0 for topic in (HALF_TOPIC, OP_HALF_TOPIC)]
        if self._seen is None and known != [half, op]:
            self._seen = half, op, log_end
        if self._seen is not None:
            self._ledger.expect(asyncio.get_running_loop().time() + PROGRESS_SECONDS)

    # one message

    async def _attend(self, entry: Undecided) -> None:
        """Check back for one message, give it up, or only copy it to the end of its queue."""
        now = asyncio.get_running_loop().time()
        entry.due = now + RETRY_SECONDS
        if entry.deciding:
            return
        if not await read_content(self._store, self._ledger, entry):
            log.error("undecided transaction at %d is no longer in the log", entry.physical)
            self._ledger.close(entry)
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
            self._ask(entry, copy)
        elif entry.check_at < entry.due:
            entry.due = entry.check_at

    async def _renew(self, entry: Undecided, asks: bool) -> Append | None:
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
        self._ledger.move(entry, copy)
        self._decisions.note(old)
        return copy

    async def _give_up(self, entry: Undecided) -> None:
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
            self._ledger.close(entry)
            self._decisions.note(entry.offset)

    async def _copy(self, entry: Undecided, topic: str, stored_properties: bytes) -> Append:
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

    def _ask(self, entry: Undecided, copy: Append) -> None:
        """Send CHECK_TRANSACTION_STATE (39) to any connected producer of the group."""
        live = [one for one in self._sessions.producers.get(entry.group, {}) if one.open]
        if not live:
            log.warning("no producer of %s is there to be asked", entry.group)
            return
        unique = find_property(copy.properties, properties.UNIQ_KEY.encode())
        msg_id = unique.decode("utf-8", "replace") if unique is not None else None
        record, _ = encode_records(
            [
                (
                    entry.topic.encode(),
                    entry.queue_id,
                    entry.offset,
                    copy.flag,
                    copy.sys_flag,
                    copy.born_ms,
                    copy.born_host,
                    copy.reconsume_times,
                    0,
                    copy.body,
                    with_property(copy.properties, properties.WAIT, "false"),
                )
            ],
            entry.physical,
            copy.store_ms,
            self._store_host,
        )
        header = CHECK_TRANSACTION_STATE.request(
            tran_state_table_offset=entry.offset,
            commit_log_offset=entry.physical,
            msg_id=msg_id,
            transaction_id=msg_id,
            offset_msg_id=offset_msg_id(self._store_host, entry.physical),
        )
        self._rng.choice(live).oneway(
            Command(code=CHECK_TRANSACTION_STATE.code, ext=header.to_ext(), body=record)
        )
