"""A raft group on a disk and a network in memory: the driver that the tests share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from gantrymq.replication.raft import LogView, RaftConfig, RaftCore, StoredState
from gantrymq.replication.raft.messages import AppendRequest, RaftMessage
from gantrymq.replication.raft.ready import LogAppend, LogRestart, LogTruncation, Ready

GROUP = "broker-a"


@dataclass
class Sync:
    """A sync of the log that is under way, and what waits for it."""

    log: LogView
    data: bytes
    cuts: int
    messages: tuple[RaftMessage, ...]


class Member:
    """A core with its disk. Bytes of the log are kept from offset 0, also those deleted."""

    def __init__(
        self,
        config: RaftConfig,
        draw: Callable[[int], int] = lambda below: 0,
        core: type[RaftCore] = RaftCore,
    ) -> None:
        self.config, self._draw, self._core = config, draw, core
        self.stored = StoredState()
        self.durable_log, self.durable_data = LogView(), b""
        self.committed = 0
        self.start()

    def start(self) -> None:
        """Begin from what is durable; all else is lost."""
        self.alive = True
        self.data = bytearray(self.durable_data)
        self.syncs: list[Sync] = []
        self._unsynced = False
        log = self.durable_log
        log = LogView(log.first, log.end, log.end, log.epochs)
        self.core = self._core(self.config, self.stored, log, self._draw, self._boundary)

    def crash(self) -> None:
        """Stop, and lose what was not synced."""
        self.alive = False

    def propose(self, record: bytes) -> None:
        """Write a record as the leader."""
        if self.core.accepts_writes:
            self._write_own(record)

    def settle(self) -> Iterator[RaftMessage]:
        """Do what the core wants, but for the syncs of the log."""
        while ready := self.core.take_ready():
            yield from self._carry_out(ready)
        if self._unsynced:
            self._begin_sync(())

    def sync(self) -> Iterator[RaftMessage]:
        """End the oldest sync of the log."""
        if self.syncs:
            done = self.syncs.pop(0)
            self.durable_log, self.durable_data = done.log, done.data
            self.core.note_synced(done.log.end, done.cuts)
            yield from done.messages
            yield from self.settle()

    def sync_all(self) -> Iterator[RaftMessage]:
        """Settle, with all syncs."""
        yield from self.settle()
        while self.syncs:
            yield from self.sync()

    def _carry_out(self, ready: Ready) -> Iterator[RaftMessage]:
        if ready.state is not None:
            self.stored = ready.state
        for message in ready.messages:
            yield self._with_bytes(message)
        for write in ready.writes:
            if isinstance(write, LogAppend):
                assert write.offset == len(self.data)
                self.data += write.payload
                self._unsynced = True
            else:
                yield from self._cut(write)
        if ready.leader_record:
            self._write_own(b"L%d" % self.core.term)
        if ready.commit is not None:
            self.committed = ready.commit
        if self._unsynced or ready.after_sync:
            self._begin_sync(ready.after_sync)

    def _cut(self, write: LogTruncation | LogRestart) -> Iterator[RaftMessage]:
        """Cut the log durably, after the syncs that are under way."""
        for done in self.syncs:
            yield from done.messages
        self.syncs = []
        end = write.end if isinstance(write, LogTruncation) else write.first
        del self.data[end:]
        self.data += b"?" * (end - len(self.data))
        self.durable_data = bytes(self.data)
        if isinstance(write, LogTruncation):
            self.durable_log = self.core.log.truncate(end)
            self.durable_log = msgspec.structs.replace(self.durable_log, synced=end)
        else:
            self.durable_log = LogView(end, end, end, write.epochs)
            self.core.note_registry()

    def _begin_sync(self, messages: tuple[RaftMessage, ...]) -> None:
        log, self._unsynced = self.core.log, False
        self.syncs.append(Sync(log, bytes(self.data), self.core.cuts, messages))

    def _write_own(self, record: bytes) -> None:
        self.data += record
        self._unsynced = True
        self.core.grow(len(record))

    def _with_bytes(self, message: RaftMessage) -> RaftMessage:
        if isinstance(message, AppendRequest) and message.size:
            payload = bytes(self.data[message.start : message.end])
            return msgspec.structs.replace(message, payload=payload)
        return message

    def _boundary(self, start: int, limit: int) -> int:
        return limit
