"""What a member of a raft group writes: its log, the epoch table, term and vote.

Everything is tried until the disk takes it: a member that waits here takes part in nothing. What
always holds: rows of the epoch table are on disk before the bytes they speak of, and a cut before
what is written behind it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVarTuple

from gantrymq.base.offload import Offload
from gantrymq.replication.group.files import MemberFiles, MemberState
from gantrymq.replication.group.log_reads import LogReads
from gantrymq.replication.raft.log_view import EpochStart, LogView
from gantrymq.replication.raft.ready import LogAppend, LogRestart, LogTruncation, LogWrite
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0
"""How soon a write that the disk refused is tried again."""

Ts = TypeVarTuple("Ts")


class MemberDisk:
    """Writes what the rules decide, in the order they decide it."""

    def __init__(
        self,
        me: str,
        store: Store,
        files: MemberFiles,
        reads: LogReads,
        offload: Offload,
        written: LogView,
    ) -> None:
        self._me, self._store, self._files, self._offload = me, store, files, offload
        self._reads = reads
        self._log = store.group_log
        self.written = written
        """The log as it is on disk; the core's is as it will be when a `Ready` is carried out."""
        self._saved_epochs = written.epochs
        self._saved_state: MemberState | None = None
        self.problem = ""
        """What the disk refuses; empty if nothing."""

    async def save_state(self, state: MemberState) -> None:
        """Save term and vote if they changed."""
        while state != self._saved_state:
            if await self._try(self._offload.run, self._files.save_state, state):
                self._saved_state = state

    async def write(self, write: LogWrite) -> None:
        """Write, cut, or begin the log anew."""
        self._reads.forget()
        if isinstance(write, LogAppend):
            await self._append(write)
        elif isinstance(write, LogTruncation):
            log.warning("%s cuts its log at %d: uncommitted", self._me, write.end)
            while not await self._try(self._cut, write.end):
                pass
            self.written = self.written.truncate(write.end)
            await self._save_epochs(self.written.epochs)
        else:
            await self._restart(write)

    async def write_leader_record(self, term: int, still_leads: Callable[[], bool]) -> None:
        """Write the first record of a leader; it gives up when that is no longer wanted."""
        await self._save_epochs(self.written.grow(term, 1).epochs)
        while still_leads() and self._log.end == self.written.end:
            await self._try(self._log.write_leader_record, term)

    async def _cut(self, end: int) -> None:
        self._log.cut(end)

    async def _append(self, append: LogAppend) -> None:
        self.written = self.written.append(append.epochs, append.offset + append.size)
        await self._save_epochs(self.written.epochs)
        at, data = append.offset, append.payload
        while not await self._try(self._log.write, at, data):
            done = self._log.end - at
            at, data = at + done, data[done:]

    async def _restart(self, restart: LogRestart) -> None:
        log.warning(
            "%s is older than what the group keeps: its log begins anew at %d",
            self._me,
            restart.first,
        )
        while not await self._try(self._begin_anew, restart.first):
            pass
        self.written = LogView(restart.first, restart.first, restart.first, restart.epochs)
        await self._save_epochs(restart.epochs)

    async def _begin_anew(self, first: int) -> None:
        self._store.upkeep.delete_folders(self._log.begin_anew(first))

    async def _save_epochs(self, epochs: tuple[EpochStart, ...]) -> None:
        while epochs != self._saved_epochs:
            if await self._try(self._offload.run, self._files.save_epochs, epochs):
                self._saved_epochs = epochs

    async def _try(self, write: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> bool:
        """Write; False if the disk refused it and the time has come to try again."""
        try:
            await write(*args)
        except OSError as error:
            if str(error) != self.problem:
                self.problem = str(error)
                log.error("%s waits for its disk: %s", self._me, error)
            await asyncio.sleep(AGAIN_SECONDS)
            return False
        self.problem = ""
        return True
