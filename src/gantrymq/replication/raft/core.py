"""One member of a raft group, as a machine of values: messages and ticks in, `Ready` out. Pure."""

from collections.abc import Callable
from typing import Any

import msgspec

from gantrymq.replication.raft.election_rules import ElectionRules
from gantrymq.replication.raft.errors import LogConflict, NotServing
from gantrymq.replication.raft.follower_rules import FollowerRules
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


class RaftCore(ElectionRules, FollowerRules):
    """Decides everything and does nothing by itself; the driver calls it."""

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
        if not self._resigned:
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

    def send_again(self) -> None:
        """Send what could not be sent because a record boundary was not known."""
        if self.leadership is not None:
            self._send_appends(self.leadership, self._others)

    def note_registry(self) -> None:
        """Note that the leader's registry was copied since the log began anew, and is durable."""
        self.holds_registry = True
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

    def begin_group(self) -> None:
        """Take the vote in the first election of a new group.

        For a member without a log, when it knows that a majority is as empty as it is, and nobody
        who has a log: then nothing can have been committed that it might have lost.
        """
        if self.term == 0 and self.log.end == 0:
            self.stored = msgspec.structs.replace(self.stored, may_vote=True)

    def may_lead_again(self) -> None:
        """The disk of a leader that resigned takes writes again, and no sync had failed."""
        self._resigned = False

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
