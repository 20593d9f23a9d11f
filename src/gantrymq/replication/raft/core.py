"""One member of a raft group, as a machine of values: messages and ticks in, `Ready` out. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from gantrymq.replication.raft.config import RaftConfig
from gantrymq.replication.raft.errors import LogConflict, NotServing
from gantrymq.replication.raft.leadership import Leadership, RecordBoundary
from gantrymq.replication.raft.log_view import LogView
from gantrymq.replication.raft.messages import (
    LEADER_MESSAGES,
    AppendAnswer,
    AppendRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    LogRestartRequest,
    PreVoteAnswer,
    PreVoteRequest,
    RaftMessage,
    TimeoutNow,
    VoteAnswer,
    VoteRequest,
)
from gantrymq.replication.raft.quorum import VoteResult, count_votes
from gantrymq.replication.raft.ready import (
    LogAppend,
    LogRestart,
    LogTruncation,
    LogWrite,
    RaftRole,
    Ready,
    RoleChange,
    StoredState,
)

_Message = TypeVar("_Message", bound=RaftMessage)


class RaftCore:
    """Decides everything; does nothing by itself."""

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
        self._votes: dict[str, bool] = {}
        self._elapsed = self._heartbeat_elapsed = 0
        self._patience = self._draw_patience()
        self._resigned = False
        self._messages: list[RaftMessage] = []
        self._after_sync: list[RaftMessage] = []
        self._writes: list[LogWrite] = []
        self._leader_record = False
        self._told_state, self._told_commit, self._told_change = stored, log.first, self._change()

    # What it is.

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

    # What the driver tells it.

    def tick(self) -> None:
        """Note that a unit of time has passed."""
        self._elapsed += 1
        if self.leadership is not None:
            self._tick_leader(self.leadership)
        elif self._elapsed >= self._patience:
            self.campaign()

    def campaign(self) -> None:
        """Want an election, unless this member leads or may not."""
        if self.leadership is not None:
            return
        self._restart_timer()
        if self._may_lead():
            if self.config.pre_vote:
                self._ask_before()
            else:
                self._ask(transfer=False)

    def grow(self, size: int) -> None:
        """Note that the leader wrote so many bytes, whole records, to the end of its log."""
        leadership = self.leadership
        if leadership is None or (self.log.end > leadership.start and not self.accepts_writes):
            raise NotServing(f"{self.config.me} wrote into the log as a {self.role.value}")
        self.log = self.log.grow(self.term, size)
        self._send_appends(leadership, self._others)

    def note_synced(self, offset: int, cuts: int) -> None:
        """Note that the log up to an offset is durable; `cuts` as it was when the sync began."""
        if cuts != self.cuts:
            return
        self.log = self.log.note_synced(offset)
        if self.leadership is not None:
            self._advance_commit(self.leadership)
        self._regain_vote()

    def note_first(self, first: int) -> None:
        """Note that retention deleted the log before an offset; nothing uncommitted."""
        if first > self.commit:
            raise LogConflict(f"{first} is not committed, it must not be deleted")
        self.log = self.log.drop_before(first)

    def transfer(self, to: str) -> None:
        """Hand leadership to a follower once it holds the whole log; writes wait meanwhile."""
        leadership = self.leadership
        if leadership is None or to not in leadership.able():
            raise NotServing(f"{self.config.me} cannot hand leadership to {to}")
        leadership.transferee, self._elapsed = to, 0
        self._send_appends(leadership, (to,))
        self._hand_over(leadership)

    def resign(self) -> None:
        """Lead no more: the disk fails. The follower that holds most takes over."""
        self._resigned = True
        leadership = self.leadership
        if leadership is None:
            return
        successor = leadership.successor()
        self._follow(self.term, None)
        if successor is not None:
            self._messages.append(leadership.hand_to(successor))

    def forget_leader(self) -> None:
        """Stop to wait for the leader: others that ask get a vote at once."""
        if self.leadership is None:
            self.leader = None

    def step(self, message: RaftMessage) -> None:
        """Take in a message of another member."""
        if message.group != self.config.group or message.receiver != self.config.me:
            return
        if message.sender not in self._others:
            return
        if isinstance(message, PreVoteRequest):
            self._answer_before(message)
        elif isinstance(message, VoteRequest) and self._hears_leader() and not message.transfer:
            pass
        elif isinstance(message, PreVoteAnswer) and message.term <= self.term:
            self._count_before(message)
        elif message.term < self.term:
            self._answer_old_term(message)
        else:
            if message.term > self.term:
                self._follow(message.term, None)
            if isinstance(message, LEADER_MESSAGES):
                self._heed(message.sender)
            _STEPS[type(message)](self, message)

    # Elections.

    def _ask_before(self) -> None:
        self.role, self.leader, self._votes = RaftRole.PRE_CANDIDATE, None, {self.config.me: True}
        if count_votes(self.config.members, self._votes) is VoteResult.WON:
            self._ask(transfer=False)
            return
        log = self.log
        self._tell_others(PreVoteRequest, end=log.end, last_term=log.last_term)

    def _answer_before(self, request: PreVoteRequest) -> None:
        granted = (
            self.stored.may_vote
            and not self._hears_leader()
            and request.term >= self.term
            and not self.log.is_newer_than(request.end, request.last_term)
        )
        answer = self._to(request.sender, PreVoteAnswer, asked_in=request.term, granted=granted)
        self._messages.append(answer)

    def _count_before(self, answer: PreVoteAnswer) -> None:
        if self.role is not RaftRole.PRE_CANDIDATE or answer.asked_in != self.term:
            return
        self._votes[answer.sender] = answer.granted
        result = count_votes(self.config.members, self._votes)
        if result is VoteResult.WON:
            self._ask(transfer=False)
        elif result is VoteResult.LOST:
            self.role = RaftRole.FOLLOWER

    def _ask(self, *, transfer: bool) -> None:
        """Become a candidate. Its own vote counts at once: others are asked when it is stored."""
        self._enter_term(self.term + 1, vote=self.config.me)
        self.role, self.leader, self._votes = RaftRole.CANDIDATE, None, {self.config.me: True}
        log = self.log
        for name in self._others:
            request = self._to(
                name, VoteRequest, end=log.end, last_term=log.last_term, transfer=transfer
            )
            self._after_sync.append(request)
        self._decide()

    def _answer_vote(self, request: VoteRequest) -> None:
        granted = (
            self.stored.may_vote
            and self._vote_is_free(request.sender)
            and not self.log.is_newer_than(request.end, request.last_term)
        )
        if granted:
            self.stored = msgspec.structs.replace(self.stored, vote=request.sender)
            self._restart_timer()
        self._after_sync.append(self._to(request.sender, VoteAnswer, granted=granted))

    def _vote_is_free(self, candidate: str) -> bool:
        """Whether this term's vote is not given to another."""
        return self.stored.vote in (None, candidate) and self.leader in (None, candidate)

    def _count_vote(self, answer: VoteAnswer) -> None:
        if self.role is RaftRole.CANDIDATE:
            self._votes[answer.sender] = answer.granted
            self._decide()

    def _decide(self) -> None:
        result = count_votes(self.config.members, self._votes)
        if result is VoteResult.WON:
            self._lead()
        elif result is VoteResult.LOST:
            self.role = RaftRole.FOLLOWER

    def _take_over(self, message: TimeoutNow) -> None:
        if self._may_lead():
            self._ask(transfer=True)

    def _may_lead(self) -> bool:
        return self.stored.may_vote and not self._resigned

    # Leading.

    def _lead(self) -> None:
        config = self.config
        self.role, self.leader = RaftRole.LEADER, config.me
        self.leadership = Leadership(config.group, self.term, config.me, self._others, self.log)
        self._elapsed = self._heartbeat_elapsed = 0
        self._leader_record = True

    def _tick_leader(self, leadership: Leadership) -> None:
        self._heartbeat_elapsed += 1
        if self._elapsed >= self.config.election_ticks:
            self._elapsed, leadership.transferee = 0, None
            if self.config.check_quorum and not leadership.quorum_heard():
                self._follow(self.term, None)
                return
        if self._heartbeat_elapsed >= self.config.heartbeat_ticks:
            self._heartbeat_elapsed = 0
            self._messages.extend(leadership.heartbeats(self.commit))

    def _note_append_answer(self, answer: AppendAnswer) -> None:
        leadership = self.leadership
        if leadership is None:
            return
        leadership.note_answer(answer, self.log)
        self._advance_commit(leadership)
        self._send_appends(leadership, (answer.sender,))
        if answer.sender == leadership.transferee:
            self._hand_over(leadership)

    def _note_heartbeat_answer(self, answer: HeartbeatAnswer) -> None:
        leadership = self.leadership
        if leadership is None:
            return
        probe = leadership.note_heartbeat(answer, self.log, self.commit)
        if probe is not None:
            self._messages.append(probe)
        self._send_appends(leadership, (answer.sender,))

    def _send_appends(self, leadership: Leadership, names: Iterable[str]) -> None:
        if self.log.end == leadership.start:
            return  # The leader record comes first.
        limits = self.config.append_bytes_max, self.config.inflight_bytes_max
        for name in names:
            sent = leadership.appends(name, self.log, self.commit, limits, self._boundary)
            self._messages.extend(sent)

    def _advance_commit(self, leadership: Leadership) -> None:
        offset = leadership.held_by_majority(self.log)
        if offset > self.commit and leadership.may_commit(offset, self.log):
            self.commit = offset

    def _hand_over(self, leadership: Leadership) -> None:
        order = leadership.timeout_now(self.log)
        if order is not None:
            self._messages.append(order)

    # Following.

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
        """Vote again when all that the leader committed, in its own term too, is durable here.

        Whom it voted for in this term may be lost as well. That does no harm: a candidate of this
        term has no record of it, and is refused for its older log.
        """
        commit = self._leader_commit
        if self.stored.may_vote or commit is None or commit > min(self._agreed, self.log.synced):
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

    # Small things.

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


_STEPS: dict[type[RaftMessage], Callable[[Any, Any], None]] = {
    AppendAnswer: RaftCore._note_append_answer,
    AppendRequest: RaftCore._append,
    HeartbeatAnswer: RaftCore._note_heartbeat_answer,
    HeartbeatRequest: RaftCore._answer_heartbeat,
    LogRestartRequest: RaftCore._restart_log,
    TimeoutNow: RaftCore._take_over,
    VoteAnswer: RaftCore._count_vote,
    VoteRequest: RaftCore._answer_vote,
    PreVoteAnswer: RaftCore._count_before,
}
