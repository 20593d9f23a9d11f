"""What a raft core asks its driver to do. Pure."""

from enum import Enum

import msgspec

from gantrymq.replication.raft.log_view import EpochStart
from gantrymq.replication.raft.messages import RaftMessage


class RaftRole(Enum):
    """The roles of raft."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class StoredState(msgspec.Struct, frozen=True):
    """What a member must not forget. A few bytes in a file of their own, always synced."""

    term: int = 0
    vote: str | None = None
    """Whom it voted for in `term`."""
    may_vote: bool = True
    """False from the loss of log bytes that it had acknowledged until it holds them again."""


class LogAppend(msgspec.Struct, frozen=True):
    """Write these bytes at the end of the log, and the rows into the epoch table."""

    offset: int
    size: int
    epochs: tuple[EpochStart, ...]
    payload: bytes


class LogTruncation(msgspec.Struct, frozen=True):
    """Cut the log back to `end`, durably, before anything is written behind it."""

    end: int


class LogRestart(msgspec.Struct, frozen=True):
    """Delete the log, begin it at `first` with these rows, and copy the leader's registry."""

    first: int
    epochs: tuple[EpochStart, ...]


LogWrite = LogAppend | LogTruncation | LogRestart


class RoleChange(msgspec.Struct, frozen=True):
    """What the member is now."""

    role: RaftRole
    term: int
    leader: str | None
    serving: bool
    """A leader whose leader record is committed: it knows what is committed, and may serve."""


class Ready(msgspec.Struct, frozen=True):
    """Everything to do since the last one, in the order of the fields."""

    state: StoredState | None = None
    """To store and sync before anything else of this `Ready`."""
    messages: tuple[RaftMessage, ...] = ()
    """To send at once."""
    writes: tuple[LogWrite, ...] = ()
    """To do with the log, in order."""
    after_sync: tuple[RaftMessage, ...] = ()
    """To send when all writes up to here are durable."""
    commit: int | None = None
    """Records that end at or before this are committed: show and dispatch them."""
    change: RoleChange | None = None
    leader_record: bool = False
    """Write the leader record of this term, then call `grow`."""

    def __bool__(self) -> bool:
        return self != _NOTHING


_NOTHING = Ready()
