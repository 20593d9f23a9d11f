"""What a member of a raft group knows and wants done, whatever its role. Pure."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gantrymq.replication.raft.config import RaftConfig
from gantrymq.replication.raft.leadership import Leadership, RecordBoundary
from gantrymq.replication.raft.log_view import LogView
from gantrymq.replication.raft.messages import (
    RaftMessage,
)
from gantrymq.replication.raft.quorum import Vote
from gantrymq.replication.raft.ready import (
    LogWrite,
    RaftRole,
    Ready,
    RoleChange,
    StoredState,
)

_Message = TypeVar("_Message", bound=RaftMessage)


class RaftMember:
    """The state of a member, and the steps that all roles share."""

    def __init__(
        self,
        config: RaftConfig,
        stored: StoredState,
        log: LogView,
        draw: Callable[[int], int],
        boundary: RecordBoundary,
    ) -> None:
        """`draw(n)` is a random number below n; `boundary` finds ends of records in the log."""
        self.config, self._draw, self._boundary = config, draw, boundary
        self._others = tuple(name for name in config.members if name != config.me)
        self.stored, self.log = stored, log
        self.role = RaftRole.FOLLOWER
        self.leader: str | None = None
        self.commit = log.first
        self.cuts = 0
        """How often the log was cut back or begun anew."""
        self.leadership: Leadership | None = None
        self._agreed = log.first
        """Up to here the log is known to be that of this term's leader."""
        self._leader_commit: int | None = None
        self._votes: dict[str, Vote] = {}
        self._elapsed = self._heartbeat_elapsed = 0
        self._patience = self._draw_patience()
        self._resigned = False
        self.holds_registry = True
        """False from a new beginning of the log until the driver has copied the leader's registry:
        what is older than the log stands only there. Until then it has no vote, and the driver
        sends nothing of `Ready.after_sync`."""
        self._messages: list[RaftMessage] = []
        self._after_sync: list[RaftMessage] = []
        self._writes: list[LogWrite] = []
        self._leader_record = False
        self._told_state, self._told_commit, self._told_change = stored, log.first, self._change()

    @property
    def term(self) -> int:
        """The latest term that this member knows of."""
        return self.stored.term

    @property
    def serving(self) -> bool:
        """Whether it is a leader that knows what is committed: its leader record is."""
        return self.leadership is not None and self.commit > self.leadership.start

    @property
    def accepts_writes(self) -> bool:
        """Whether a record may be written into the log now."""
        return self.serving and self.leadership is not None and not self.leadership.transferee

    def take_ready(self) -> Ready:
        """Everything to do since the last call."""
        change = self._change()
        ready = Ready(
            state=self.stored if self.stored != self._told_state else None,
            messages=tuple(self._messages),
            writes=tuple(self._writes),
            after_sync=tuple(self._after_sync),
            commit=self.commit if self.commit != self._told_commit else None,
            change=change if change != self._told_change else None,
            leader_record=self._leader_record,
        )
        self._told_state, self._told_commit, self._told_change = self.stored, self.commit, change
        self._messages, self._after_sync, self._writes = [], [], []
        self._leader_record = False
        return ready

    def _follow(self, term: int, leader: str | None) -> None:
        """Become a follower, in this term or a later one."""
        self.role, self.leader, self.leadership = RaftRole.FOLLOWER, leader, None
        self._leader_record = False
        self._restart_timer()
        if term > self.term:
            self._enter_term(term, vote=None)

    def _enter_term(self, term: int, vote: str | None) -> None:
        """Forget what was said and known in the term before."""
        self.stored = msgspec.structs.replace(self.stored, term=term, vote=vote)
        self._messages, self._after_sync = [], []
        self._agreed, self._leader_commit = self.commit, None

    def _hears_leader(self) -> bool:
        if not self.config.check_quorum or self.leader is None:
            return False
        return self.leadership is not None or self._elapsed < self.config.election_ticks

    def _restart_timer(self) -> None:
        self._elapsed, self._patience = 0, self._draw_patience()

    def _draw_patience(self) -> int:
        return self.config.election_ticks + self._draw(self.config.election_ticks)

    def _change(self) -> RoleChange:
        return RoleChange(self.role, self.term, self.leader, self.serving)

    def _tell_others(self, kind: type[_Message], **fields: Any) -> None:
        self._messages.extend(self._to(name, kind, **fields) for name in self._others)

    def _to(self, receiver: str, kind: type[_Message], **fields: Any) -> _Message:
        config = self.config
        return kind(
            group=config.group, term=self.term, sender=config.me, receiver=receiver, **fields
        )
