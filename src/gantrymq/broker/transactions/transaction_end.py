"""Commit and rollback of half messages.

A commit stores the message in its topic and then the decision in the op queue; a rollback stores
only the decision. The message is in the log before the decision, so after a crash between the two
the broker checks back instead of losing the message.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import Busy
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.transactions.half import without_mark
from gantrymq.broker.transactions.half_messages import HalfMessage, HalfMessageTable
from gantrymq.broker.transactions.ops import Decisions
from gantrymq.broker.waiting.redirect import DELAY_MARK, TIMER_MARK, SystemTopicRedirect
from gantrymq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_MASK, decode_record
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

CLOSE_SECONDS_MAX: Final = 2.0
READS_MAX: Final = 1_000
"""Commits at once whose message has to be read from the log."""

_OK = PutStatus.PUT_OK
_DELAY, _TIMER = DELAY_MARK.encode(), TIMER_MARK.encode()

OnEnd = Callable[[Append], None] | None
"""Who waits for the outcome; nobody when the word came one-way."""


class CommitAppend(Append, kw_only=True, eq=False):
    """The append of a committed message to its real topic."""

    entry: HalfMessage
    on_end: OnEnd


def commit_of(entry: HalfMessage, half_at: int, on_end: OnEnd) -> CommitAppend:
    """The append of a half message whose content is known."""
    assert entry.body is not None
    assert entry.properties is not None
    return CommitAppend(
        entry.topic,
        entry.queue_id,
        entry.body,
        entry.properties,
        entry.flag,
        entry.sys_flag & ~TRANSACTION_MASK | TRANSACTION_COMMIT,
        entry.born_ms,
        entry.born_host,
        entry.reconsume_times,
        half_at,
        wait=False,
        entry=entry,
        on_end=on_end,
    )


async def read_content(store: Store, half_messages: HalfMessageTable, entry: HalfMessage) -> bool:
    """Read a message that is not kept in memory from the log; False if it is gone."""
    if entry.body is None:
        record = await store.reads.message_at(entry.physical)
        if record is None:
            return False
        message = decode_record(record)
        half_messages.keep(entry, message.body, message.raw_properties)
    return True


class TransactionEnd:
    """Carries out decisions. The callback `on_end` gets the append that succeeded or failed."""

    def __init__(
        self,
        store: Store,
        half_messages: HalfMessageTable,
        decisions: Decisions,
        redirect: SystemTopicRedirect,
        stats: BrokerStats,
    ) -> None:
        self._store, self._half_messages, self._decisions = store, half_messages, decisions
        self._redirect, self._stats = redirect, stats
        self._reads = Background("commits that read from disk")
        self._writing = 0

    async def close(self) -> None:
        """Finish the accepted decisions, for at most 2 s, while the store still takes appends."""
        self._decisions.stop()
        deadline = asyncio.get_running_loop().time() + CLOSE_SECONDS_MAX
        while len(self._reads) or self._writing or self._decisions.is_busy:
            if asyncio.get_running_loop().time() > deadline:
                log.warning(
                    "decisions about transactions are left behind; they are asked for again"
                )
                break
            await asyncio.sleep(0.001)
        await self._reads.close()

    def commit(self, entry: HalfMessage, half_at: int, on_end: OnEnd) -> None:
        """Store the message in its topic. `half_at` is the log offset that the producer named."""
        entry.deciding = True
        if entry.body is not None:
            self._put(entry, half_at, on_end)
            return
        if len(self._reads) >= READS_MAX:
            entry.deciding = False
            raise Busy(f"[OVERLOAD]system busy: {READS_MAX} commits wait for the disk")
        self._reads.spawn(self._read_and_put(entry, half_at, on_end))

    async def _read_and_put(self, entry: HalfMessage, half_at: int, on_end: OnEnd) -> None:
        missing = Append(entry.topic, entry.queue_id, b"")
        try:
            found = await read_content(self._store, self._half_messages, entry)
        except OSError as error:
            found, missing.error = False, f"the half message cannot be read: {error}"
        if found:
            self._put(entry, half_at, on_end)
            return
        entry.deciding = False
        missing.error = missing.error or "the half message is no longer in the log"
        log.warning("transaction at %d not committed: %s", entry.physical, missing.error)
        if on_end is not None:
            on_end(missing)

    def _put(self, entry: HalfMessage, half_at: int, on_end: OnEnd) -> None:
        message = commit_of(entry, half_at, on_end)
        stored = message.properties
        if (_DELAY in stored or _TIMER in stored) and not self._wait_for_its_time(message):
            return
        if self._decisions.waiting:
            self._decisions.write()
        message.reply = self._committed  # type: ignore[assignment]
        self._writing += 1
        self._store.put(message)

    def _wait_for_its_time(self, message: CommitAppend) -> bool:
        """Redirect a message with a delay, which starts now; False if it is not allowed."""
        text = message.properties.decode("utf-8", "replace")
        try:
            redirected = self._redirect.redirect(message, text)
        except GantryError as error:  # the settings changed since the half message came
            message.entry.deciding = False
            message.status, message.error = PutStatus.MESSAGE_ILLEGAL, str(error)
            if message.on_end is not None:
                message.on_end(message)
            return False
        if redirected is not text:
            message.properties = without_mark(redirected).encode()
        return True

    def _committed(self, message: CommitAppend) -> None:
        self._writing -= 1
        entry = message.entry
        entry.deciding = False
        status = message.status
        if status is _OK or status.is_stored:
            self._stats.put_as("transaction", message.topic, message.size)
            self._stats.commit(entry.topic, (message.store_ms - entry.born_ms) / 1000)
            self._half_messages.close(entry)
            self._decisions.note(entry.offset)
        else:
            log.warning("transaction at %d not committed: %s", entry.physical, message.error)
        if message.on_end is not None:
            message.on_end(message)

    def rollback(self, entry: HalfMessage, on_end: OnEnd) -> None:
        """Store the decision; the message stays in the half topic."""
        entry.deciding = True
        offset = entry.offset

        def written(append: Append) -> None:
            entry.deciding = False
            if append.status.is_stored:
                self._stats.roll_back(entry.topic)
                self._half_messages.close(entry)
                if entry.offset != offset:  # a newer copy was being stored
                    self._decisions.note(entry.offset)
            if on_end is not None:
                on_end(append)

        self._decisions.note(offset, written)
