"""How a leader is elected: pre-votes, votes, and the order to take over. Pure."""

import msgspec

from gantrymq.replication.raft.leader_rules import LeaderRules
from gantrymq.replication.raft.messages import (
    PreVoteAnswer,
    PreVoteRequest,
    TimeoutNow,
    VoteAnswer,
    VoteRequest,
)
from gantrymq.replication.raft.quorum import Vote, VoteResult, count_votes
from gantrymq.replication.raft.ready import (
    RaftRole,
)


class ElectionRules(LeaderRules):
    """How a leader is elected: pre-votes, votes, and the order to take over."""

    def _ask_before(self) -> None:
        self.role, self.leader, self._votes = RaftRole.PRE_CANDIDATE, None, self._own_vote()
        if count_votes(self.config.members, self._votes) is VoteResult.WON:
            self._ask(transfer=False)
            return
        log = self.log
        self._tell_others(PreVoteRequest, end=log.end, last_term=log.last_term)

    def _answer_before(self, request: PreVoteRequest) -> None:
        granted = (
            not self._hears_leader()
            and request.term >= self.term
            and not self.log.is_newer_than(request.end, request.last_term)
        )
        answer = self._to(
            request.sender,
            PreVoteAnswer,
            asked_in=request.term,
            granted=granted,
            may_vote=self.stored.may_vote,
        )
        self._messages.append(answer)

    def _count_before(self, answer: PreVoteAnswer) -> None:
        if self.role is not RaftRole.PRE_CANDIDATE or answer.asked_in != self.term:
            return
        self._votes[answer.sender] = Vote(answer.granted, answer.may_vote)
        result = count_votes(self.config.members, self._votes)
        if result is VoteResult.WON:
            self._ask(transfer=False)
        elif result is VoteResult.LOST:
            self.role = RaftRole.FOLLOWER

    def _ask(self, *, transfer: bool) -> None:
        """Become a candidate. Its own vote counts at once: others are asked when it is stored."""
        self._enter_term(self.term + 1, vote=self.config.me)
        self.role, self.leader, self._votes = RaftRole.CANDIDATE, None, self._own_vote()
        log = self.log
        for name in self._others:
            request = self._to(
                name, VoteRequest, end=log.end, last_term=log.last_term, transfer=transfer
            )
            self._after_sync.append(request)
        self._decide()

    def _answer_vote(self, request: VoteRequest) -> None:
        granted = self._vote_is_free(request.sender) and not self.log.is_newer_than(
            request.end, request.last_term
        )
        if granted:
            self.stored = msgspec.structs.replace(self.stored, vote=request.sender)
            self._restart_timer()
        may_vote = self.stored.may_vote
        answer = self._to(request.sender, VoteAnswer, granted=granted, may_vote=may_vote)
        self._after_sync.append(answer)

    def _own_vote(self) -> dict[str, Vote]:
        return {self.config.me: Vote(True, self.stored.may_vote)}

    def _vote_is_free(self, candidate: str) -> bool:
        """Whether this term's vote is not given to another."""
        return self.stored.vote in (None, candidate) and self.leader in (None, candidate)

    def _count_vote(self, answer: VoteAnswer) -> None:
        if self.role is RaftRole.CANDIDATE:
            self._votes[answer.sender] = Vote(answer.granted, answer.may_vote)
            self._decide()

    def _decide(self) -> None:
        result = count_votes(self.config.members, self._votes)
        if result is VoteResult.WON:
            self._lead()
        elif result is VoteResult.LOST:
            self.role = RaftRole.FOLLOWER

    def _take_over(self, message: TimeoutNow) -> None:
        if self.stored.may_vote and not self._resigned:
            self._ask(transfer=True)
