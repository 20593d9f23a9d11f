"""What members of a raft group say to each other. Pure.

Every message names the group, the sender's term, the sender and the receiver. An `AppendRequest`
leaves the core without its bytes: the driver reads them from the log when it sends.
"""

import msgspec

from gantrymq.replication.raft.log_view import EpochStart, LogView


class RaftMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What all have in common."""

    group: str
    term: int
    """The term that the sender is in."""
    sender: str
    receiver: str


class PreVoteRequest(RaftMessage, frozen=True, kw_only=True):
    """Would you vote for me, if I asked? Changes nobody's term."""

    end: int
    last_term: int


class PreVoteAnswer(RaftMessage, frozen=True, kw_only=True):
    """The answer; `asked_in` is the term of the request."""

    asked_in: int
    granted: bool
    may_vote: bool = True


class VoteRequest(RaftMessage, frozen=True, kw_only=True):
    """A candidate asks for a vote in its term."""

    end: int
    last_term: int
    transfer: bool = False
    """The leader itself wants this election: who still hears the leader votes as well."""


class VoteAnswer(RaftMessage, frozen=True, kw_only=True):
    """A vote, given or refused."""

    granted: bool
    may_vote: bool = True
    """False of one whose vote counts only if all agree."""


class AppendRequest(RaftMessage, frozen=True, kw_only=True):
    """Bytes of the leader's log, from `start` on; none when only the place is probed."""

    start: int
    start_term: int
    """The term of the record that ends at `start`."""
    size: int
    epochs: tuple[EpochStart, ...]
    """The rows of the epoch table for these bytes."""
    commit: int
    payload: bytes = b""

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + self.size


class AppendAnswer(RaftMessage, frozen=True, kw_only=True):
    """A follower holds the leader's log up to `offset`, durably; or it has no such place."""

    accepted: bool
    offset: int
    """How far the logs agree, or the `start` that was refused."""
    may_vote: bool = True
    log: LogView | None = None
    """With a refusal: the follower's log, from which the leader sees where both part."""


class LogRestartRequest(RaftMessage, frozen=True, kw_only=True):
    """The leader's log begins behind the end of the follower's: begin anew at `first`."""

    first: int
    epochs: tuple[EpochStart, ...]
    """The row of the epoch table that the byte before `first` belongs to, if any."""


class HeartbeatRequest(RaftMessage, frozen=True, kw_only=True):
    """The leader is alive, and has committed so far."""

    commit: int


class HeartbeatAnswer(RaftMessage, frozen=True, kw_only=True):
    """The follower is alive. From a later term: your leadership is over."""

    agreed: int = 0
    """Up to where it knows that its log is the leader's: nowhere yet after a start."""
    may_vote: bool = True


class TimeoutNow(RaftMessage, frozen=True, kw_only=True):
    """Leadership is handed to you: ask for votes at once."""


LEADER_MESSAGES = (AppendRequest, HeartbeatRequest, LogRestartRequest, TimeoutNow)
"""Only the leader of a term sends these."""
