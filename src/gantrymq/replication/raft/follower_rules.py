"""What a follower does with the messages of its leader. Pure."""

import msgspec

from gantrymq.replication.raft.errors import LogConflict
from gantrymq.replication.raft.log_view import LogView
from gantrymq.replication.raft.member import RaftMember
from gantrymq.replication.raft.messages import (
    LEADER_MESSAGES,
    AppendAnswer,
    AppendRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    LogRestartRequest,
    RaftMessage,
    VoteAnswer,
    VoteRequest,
)
from gantrymq.replication.raft.ready import (
    LogAppend,
    LogRestart,
    LogTruncation,
    RaftRole,
)


class FollowerRules(RaftMember):
    """What a follower does with the messages of its leader."""

    def _heed(self, leader: str) -> None:
        if self.leadership is not None or self.leader not in (None, leader):
            raise LogConflict(f"{leader} and {self.leader} both lead in term {self.term}")
        self.role, self.leader, self._elapsed = RaftRole.FOLLOWER, leader, 0

    def _append(self, request: AppendRequest) -> None:
        if request.start < self.log.first:
            self._acknowledge(self.commit)
        elif self.log.holds(request.start, request.start_term):
            self._write(request)
            self._note_commit(request.end, request.commit)
            self._acknowledge(request.end)
        else:
            self._messages.append(
                self._to(
                    request.sender,
                    AppendAnswer,
                    accepted=False,
                    offset=request.start,
                    may_vote=self.stored.may_vote,
                    log=self.log,
                )
            )

    def _write(self, request: AppendRequest) -> None:
        """Cut the log where it parts from the leader's, and write what is missing."""
        known = self.log.agreement(request.start, request.end, request.epochs)
        if known == request.end:
            return
        if known < self.log.end:
            if known < self.commit:
                raise LogConflict(f"{request.sender} would cut {self.commit} back to {known}")
            self.log = self.log.truncate(known)
            self.cuts += 1
            self._writes.append(LogTruncation(known))
        epochs = tuple(epoch for epoch in request.epochs if epoch.offset >= known)
        payload = request.payload[known - request.start :]
        self._writes.append(LogAppend(known, request.end - known, epochs, payload))
        self.log = self.log.append(request.epochs, request.end)

    def _acknowledge(self, offset: int) -> None:
        """Confirm the log up to an offset, once for all that came since the last `Ready`."""
        last = self._after_sync[-1] if self._after_sync else None
        if isinstance(last, AppendAnswer) and last.accepted and last.receiver == self.leader:
            offset = max(offset, self._after_sync.pop().offset)  # type: ignore[attr-defined]
        assert self.leader is not None
        may_vote = self.stored.may_vote
        answer = self._to(
            self.leader, AppendAnswer, accepted=True, offset=offset, may_vote=may_vote
        )
        self._after_sync.append(answer)

    def _note_commit(self, agreed: int, leader_commit: int) -> None:
        self._agreed = max(self._agreed, agreed)
        self._leader_commit = max(self._leader_commit or 0, leader_commit)
        self.commit = max(self.commit, min(self._leader_commit, self._agreed))
        self._regain_vote()

    def _regain_vote(self) -> None:
        """Vote again when all that the leader committed, in its own term too, is durable here, and
        the registry is.

        Whom it voted for in this term may be lost as well. That does no harm: a candidate of this
        term has no record of it, and is refused for its older log.
        """
        commit = self._leader_commit
        if self.stored.may_vote or not self.holds_registry:
            return
        if commit is None or commit > min(self._agreed, self.log.synced):
            return
        if self.log.term_before(commit) == self.term:
            self.stored = msgspec.structs.replace(self.stored, may_vote=True)

    def _answer_heartbeat(self, request: HeartbeatRequest) -> None:
        self._note_commit(self._agreed, request.commit)
        may_vote = self.stored.may_vote
        answer = self._to(request.sender, HeartbeatAnswer, agreed=self._agreed, may_vote=may_vote)
        self._messages.append(answer)

    def _restart_log(self, request: LogRestartRequest) -> None:
        """Begin the log anew; a late request for what is here already changes nothing."""
        first = request.first
        term = request.epochs[-1].term if request.epochs else 0
        if self.log.holds(first, term):
            self._acknowledge(first)
        elif first <= self.commit:
            self._acknowledge(self.commit)
        else:
            self.log = LogView(first, first, first, request.epochs)
            self.stored = msgspec.structs.replace(self.stored, may_vote=False)
            self.holds_registry = False
            self.cuts += 1
            self.commit = self._agreed = first
            self._writes = [LogRestart(first, request.epochs)]
            self._after_sync = []
            self._acknowledge(first)

    def _answer_old_term(self, message: RaftMessage) -> None:
        """Tell a leader or candidate of an older term that it is over."""
        if isinstance(message, LEADER_MESSAGES):
            self._messages.append(self._to(message.sender, HeartbeatAnswer))
        elif isinstance(message, VoteRequest):
            self._after_sync.append(self._to(message.sender, VoteAnswer, granted=False))
