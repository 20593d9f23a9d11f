"""Commit and rollback of half messages.

A commit stores the message in its topic and then the decision in the op queue; a rollback stores
only the decision. The message is in the log before the decision, so after a crash between the two
the broker checks back instead of losing the message.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import Busy
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.transactions.half import without_mark
from gantrymq.broker.transactions.ledger import HalfMessageTable, Undecided
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

Told = Callable[[Append], None] | None
"""Who waits for the outcome; nobody when the word came one-way."""


class Committed(Append):
    """The append of a committed message to its real topic."""

    __slots__ = ("entry", "told")

    def __init__(self, entry: Undecided, half_at: int, told: Told) -> None:
        assert entry.body is not None
        assert entry.properties is not None
        Append.__init__(
            self,
            entry.topic,
            entry.queue_id,
            entry.body,
            properties=entry.properties,
            flag=entry.flag,
            sys_flag=entry.sys_flag & ~TRANSACTION_MASK | TRANSACTION_COMMIT,
            born_ms=entry.born_ms,
            born_host=entry.born_host,
            reconsume_times=entry.reconsume_times,
            prepared_offset=half_at,
            wait=False,
        )
        self.entry, self.told = entry, told


async def read_content(store: Store, ledger: HalfMessageTable, entry: Undecided) -> bool:
    """Read a message that is not kept in memory from the log; False if it is gone."""
    if entry.body is None:
        record = await store.reads.message_at(entry.physical)
        if record is None:
            return False
        message = decode_record(record)
        ledger.keep(entry, message.body, message.raw_properties)
    return True


class Endings:
    """Carries out decisions. The callback `told` gets the append that succeeded or failed."""

    def __init__(
        self,
        store: Store,
        ledger: HalfMessageTable,
        decisions: Decisions,
        redirect: SystemTopicRedirect,
        stats: BrokerStats,
    ) -> None:
        self._store, self._ledger, self._decisions = store, ledger, decisions
        self._redirect, self._stats = redirect, stats
        self._reads: dict[asyncio.Task[None], None] = {}
        self._writing = 0

    async def close(self) -> None:
        """Finish the accepted decisions, for at most 2 s, while the store still takes appends."""
        self._decisions.stop()
        deadline = asyncio.get_running_loop().time() + CLOSE_SECONDS_MAX
        while self._reads or self._writing or self._decisions.is_busy:
            if asyncio.get_running_loop().time() > deadline:
                log.warning(
                    "decisions about transactions are left behind; they are asked for again"
                )
                break
            await asyncio.sleep(0.001)
        for task in self._reads:
            task.cancel()

    def commit(self, entry: Undecided, half_at: int, told: Told) -> None:
        """Store the message in its topic. `half_at` is the log offset that the producer named."""
        entry.deciding = True
        if entry.body is not None:
            self._put(entry, half_at, told)
            return
        if len(self._reads) >= READS_MAX:
            entry.deciding = False
            raise Busy(f"[OVERLOAD]system busy: {READS_MAX} commits wait for the disk")
        task = asyncio.get_running_loop().create_task(self._read_and_put(entry, half_at, told))
        self._reads[task] = None
        task.add_done_callback(self._reads.pop)

    async def _read_and_put(self, entry: Undecided, half_at: int, told: Told) -> None:
        missing = Append(entry.topic, entry.queue_id, b"")
        try:
            found = await read_content(self._store, self._ledger, entry)
        except OSError as error:
            found, missing.error = False, f"the half message cannot be read: {error}"
        if found:
            self._put(entry, half_at, told)
            return
        entry.deciding = False
        missing.error = missing.error or "the half message is no longer in the log"
        log.warning("transaction at %d not committed: %s", entry.physical, missing.error)
        if told is not None:
            told(missing)

    def _put(self, entry: Undecided, half_at: int, told: Told) -> None:
        message = Committed(entry, half_at, told)
        stored = message.properties
        if (_DELAY in stored or _TIMER in stored) and not self._wait_for_its_time(message):
            return
        if self._decisions.waiting:
            self._decisions.write()
        message.reply = self._committed  # type: ignore[assignment]
        self._writing += 1
        self._store.put(message)

    def _wait_for_its_time(self, message: Committed) -> bool:
        """Redirect a message with a delay, which starts now; False if it is not allowed."""
        text = message.properties.decode("utf-8", "replace")
        try:
            redirected = self._redirect.redirect(message, text)
        except GantryError as error:  # the settings changed since the half message came
            message.entry.deciding = False
            message.status, message.error = PutStatus.MESSAGE_ILLEGAL, str(error)
            if message.told is not None:
                message.told(message)
            return False
        if redirected is not text:
            message.properties = without_mark(redirected).encode()
        return True

    def _committed(self, message: Committed) -> None:
        self._writing -= 1
        entry = message.entry
        entry.deciding = False
        status = message.status
        if status is _OK or status.is_stored:
            self._stats.put(message.topic, 1, message.size)
            self._ledger.close(entry)
            self._decisions.note(entry.offset)
        else:
            log.warning("transaction at %d not committed: %s", entry.physical, message.error)
        if message.told is not None:
            message.told(message)

    def rollback(self, entry: Undecided, told: Told) -> None:
        """Store the decision; the message stays in the half topic."""
        entry.deciding = True
        offset = entry.offset

        def written(append: Append) -> None:
            entry.deciding = False
            if append.status.is_stored:
                self._ledger.close(entry)
                if entry.offset != offset:  # a newer copy was being stored
                    self._decisions.note(entry.offset)
            if told is not None:
                told(append)

        self._decisions.note(offset, written)
