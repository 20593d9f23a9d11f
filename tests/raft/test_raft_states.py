"""The exhaustive search: what it finds in the core (nothing), and in cores that are wrong."""

import msgspec
import pytest
from explore import Bounds, Broken, Explorer, ticking

from gantrymq.replication.raft import RaftCore, Ready
from gantrymq.replication.raft.leadership import Leadership

SECONDS = 5.0
OLD_LEADER_RETURNS = (
    # 1 leads in term 1 and keeps its record to itself.
    "timeout 1",
    "VoteRequest 1->2 term=1",
    "VoteAnswer 2->1 term=1 granted=True",
    # 3 leads in term 2, of which 1 hears, and keeps its record to itself.
    "crash 3",
    "timeout 3",
    "timeout 3",
    "VoteRequest 3->1 term=2",
    "VoteRequest 3->2 term=2",
    "VoteAnswer 2->3 term=2 granted=True",
    # 1 leads again, in term 3.
    "timeout 1",
    "VoteRequest 1->2 term=3",
    "VoteAnswer 2->1 term=3 granted=True",
)
"""Figure 8 of the raft paper, up to its third picture, with three members."""


class VotesTwice(RaftCore):
    """Forgets whom it voted for."""

    def _vote_is_free(self, candidate: str) -> bool:
        return True


class AcknowledgesEarly(RaftCore):
    """Does not wait for the sync of its log."""

    def take_ready(self) -> Ready:
        ready = super().take_ready()
        messages = ready.messages + ready.after_sync
        return msgspec.structs.replace(ready, messages=messages, after_sync=())


def test_no_promise_is_broken_in_any_state_that_is_reached() -> None:
    """
    A short search from the beginning finds no state that breaks a promise.
    """
    explorer = Explorer(Bounds())

    explorer.run(SECONDS, ticking())

    assert explorer.states > 20_000
    assert explorer.depth >= 5


def test_all_states_of_one_term_are_visited() -> None:
    """
    Tight bounds leave nothing out: the search ends by itself.
    """
    explorer = Explorer(Bounds(terms=1, records=2, crashes=1, under_way=4))

    explorer.run(60.0, ticking())

    assert explorer.complete


def test_no_promise_is_broken_after_an_old_leader_returns() -> None:
    """
    From the picture of the paper where old records are dangerous, none is lost.
    """
    explorer = Explorer(Bounds(terms=4, records=2, crashes=1))

    explorer.run(SECONDS, ticking(), *OLD_LEADER_RETURNS)

    assert explorer.depth >= 5


def test_a_member_that_votes_twice_is_found() -> None:
    """
    The search finds two leaders in one term.
    """
    with pytest.raises(Broken, match="both led in term"):
        Explorer(Bounds(crashes=0), VotesTwice).run(60.0, ticking())


def test_a_commit_of_old_records_by_counting_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The search finds the leader that lacks a record which was committed by counting.
    """
    monkeypatch.setattr(Leadership, "may_commit", lambda self, offset, log: True)

    with pytest.raises(Broken, match=r"leads without a committed record|not on a majority"):
        Explorer(Bounds(terms=4, records=2, crashes=1)).run(60.0, ticking(), *OLD_LEADER_RETURNS)


def test_an_acknowledgement_before_the_sync_is_found() -> None:
    """
    The search finds a committed record that is not durable on a majority.
    """
    with pytest.raises(Broken, match=r"not on a majority"):
        Explorer(Bounds(), AcknowledgesEarly).run(60.0, ticking())
