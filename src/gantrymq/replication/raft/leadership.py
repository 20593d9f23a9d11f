"""What a leader knows of its followers, and what it sends them. Pure.

A follower is probed until the leader knows where both logs part: one append at a time. Then it is
sent everything as it comes, several appends ahead of its answers, up to a limit of bytes. A
follower whose log ends before the leader's begins is told to begin anew.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gantrymq.replication.raft.log_view import LogView, common_offset
from gantrymq.replication.raft.messages import (
    AppendAnswer,
    AppendRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    LogRestartRequest,
    RaftMessage,
    TimeoutNow,
)
from gantrymq.replication.raft.quorum import majority, majority_offset

RecordBoundary = Callable[[int, int], int | None]
"""From a start and a limit the last record boundary up to the limit; at least one record on. None
if it is not known yet: the driver calls `send_again` when it is."""


class SendMode(Enum):
    """How a follower is sent the log."""

    PROBE = "probe"
    REPLICATE = "replicate"
    RESTART = "restart"


@dataclass(slots=True)
class FollowerProgress:
    """What the leader knows of one follower."""

    match: int
    """Up to here it holds the leader's log durably."""
    next: int
    """From here on it is sent the log."""
    mode: SendMode = SendMode.PROBE
    waiting: bool = False
    """A probe is under way."""
    heard: bool = False
    """It answered since the last check of the quorum."""
    may_vote: bool = True


class Leadership:
    """One term of one leader."""

    def __init__(
        self, group: str, term: int, me: str, others: tuple[str, ...], log: LogView
    ) -> None:
        self._group, self._term, self._me = group, term, me
        self.start = log.end
        """Where the leader record is written."""
        self.followers = {name: FollowerProgress(0, log.end) for name in others}
        self.transferee: str | None = None
        """Whom leadership is being handed to."""

    def heartbeats(self, commit: int) -> Iterator[RaftMessage]:
        """One for each follower."""
        for name in self.followers:
            yield HeartbeatRequest(**self._to(name), commit=commit)

    def quorum_heard(self) -> bool:
        """Whether a majority answered since the last time this was asked."""
        heard = 1 + sum(follower.heard for follower in self.followers.values())
        for follower in self.followers.values():
            follower.heard = False
        return heard >= majority(len(self.followers) + 1)

    def appends(
        self, name: str, log: LogView, commit: int, limits: tuple[int, int], cut: RecordBoundary
    ) -> Iterator[RaftMessage]:
        """Everything that may be sent to a follower now: as many bytes as the limits allow."""
        follower = self.followers[name]
        append_bytes_max, inflight_bytes_max = limits
        if follower.mode is not SendMode.RESTART and follower.next < log.first:
            follower.mode, follower.waiting = SendMode.RESTART, False
        while not follower.waiting:
            if follower.mode is SendMode.RESTART:
                follower.waiting = True
                yield self._restart(name, log)
                return
            probes = follower.mode is SendMode.PROBE
            full = follower.next - follower.match >= inflight_bytes_max
            if not probes and (follower.next == log.end or full):
                return
            end = log.end
            if end - follower.next > append_bytes_max:
                found = cut(follower.next, follower.next + append_bytes_max)
                if found is None:
                    return
                end = found
            yield self._append(name, log, commit, end)
            if probes:
                follower.waiting = True
            else:
                follower.next = end

    def note_heartbeat(
        self, answer: HeartbeatAnswer, log: LogView, commit: int
    ) -> RaftMessage | None:
        """Learn that a follower lives; ask one that is behind whether what was sent arrived."""
        follower = self.followers[answer.sender]
        follower.heard, follower.may_vote = True, answer.may_vote
        if follower.mode is not SendMode.REPLICATE:
            follower.waiting = False
        elif follower.match < log.end or answer.agreed < commit:
            return self._append(answer.sender, log, commit, follower.next)
        return None

    def note_answer(self, answer: AppendAnswer, log: LogView) -> None:
        """Learn from a follower's answer to an append or a restart."""
        follower = self.followers[answer.sender]
        follower.heard, follower.may_vote = True, answer.may_vote
        if answer.accepted:
            self._note_accepted(follower, answer.offset, log)
        elif answer.log is not None and not self._is_stale(follower, answer):
            common = common_offset(log, answer.log)
            follower.waiting = False
            if common is None:
                follower.mode, follower.match = SendMode.RESTART, 0
            else:
                follower.mode, follower.next = SendMode.PROBE, common
                follower.match = min(follower.match, common)

    def held_by_majority(self, log: LogView) -> int:
        """The offset that a majority of all members holds durably."""
        held = [follower.match for follower in self.followers.values()]
        return majority_offset([log.synced, *held])

    def may_commit(self, offset: int, log: LogView) -> bool:
        """Only records of the leader's own term commit by counting; older ones with them."""
        return log.term_before(offset) == self._term

    def timeout_now(self, log: LogView) -> RaftMessage | None:
        """The order to take over, once the chosen follower holds the whole log."""
        name = self.transferee
        if name is None or self.followers[name].match < log.end:
            return None
        return TimeoutNow(**self._to(name))

    def able(self) -> list[str]:
        """The followers that may lead: those that may vote."""
        return [name for name, follower in self.followers.items() if follower.may_vote]

    def successor(self) -> str | None:
        """The follower that holds most of the log, of those that may vote."""
        return max(self.able(), key=lambda name: self.followers[name].match, default=None)

    def hand_to(self, name: str) -> RaftMessage:
        """The order to take over, whatever the follower holds."""
        return TimeoutNow(**self._to(name))

    def _note_accepted(self, follower: FollowerProgress, offset: int, log: LogView) -> None:
        if offset > log.end:
            return
        follower.match = max(follower.match, offset)
        if follower.mode is SendMode.RESTART and follower.match < log.first:
            return
        if follower.mode is not SendMode.REPLICATE:
            follower.mode, follower.next, follower.waiting = SendMode.REPLICATE, offset, False
        follower.next = max(follower.next, follower.match)

    def _is_stale(self, follower: FollowerProgress, answer: AppendAnswer) -> bool:
        """Whether a refusal is overtaken. One who lost bytes takes back what it confirmed."""
        if follower.mode is SendMode.PROBE:
            return answer.offset != follower.next
        return answer.offset <= follower.match and answer.may_vote

    def _append(self, name: str, log: LogView, commit: int, end: int) -> RaftMessage:
        start = self.followers[name].next
        return AppendRequest(
            **self._to(name),
            start=start,
            start_term=log.term_before(start),
            size=end - start,
            epochs=log.epochs_of(start, end),
            commit=commit,
        )

    def _restart(self, name: str, log: LogView) -> RaftMessage:
        epochs = log.epochs_of(log.first - 1, log.first)
        return LogRestartRequest(**self._to(name), first=log.first, epochs=epochs)

    def _to(self, receiver: str) -> dict[str, Any]:
        return {
            "group": self._group,
            "term": self._term,
            "sender": self._me,
            "receiver": receiver,
        }
