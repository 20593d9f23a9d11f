"""Counting of members."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.replication.raft.quorum import (
    Vote,
    VoteResult,
    count_votes,
    majority,
    majority_offset,
)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7))
def test_a_majority_holds_the_offset_and_none_holds_more(held: list[int]) -> None:
    """
    The offset is the best that any majority has in common.
    """
    groups = combinations(held, majority(len(held)))

    assert max(min(group) for group in groups) == majority_offset(held)


@pytest.mark.parametrize(
    "votes, result",
    [
        ("", VoteResult.PENDING),
        ("yy", VoteResult.PENDING),
        ("yyy", VoteResult.WON),
        ("ynyny", VoteResult.WON),
        ("nn", VoteResult.PENDING),
        ("nny", VoteResult.PENDING),
        ("nnn", VoteResult.LOST),
        ("yynnn", VoteResult.LOST),
        ("yy--", VoteResult.PENDING),
        ("yy--y", VoteResult.WON),
        ("yy---", VoteResult.WON),
        ("-----", VoteResult.WON),
        ("yy--n", VoteResult.LOST),
        ("---n", VoteResult.LOST),
    ],
)
def test_an_election_of_five(votes: str, result: VoteResult) -> None:
    """
    Three votes decide, either way; votes that do not count (-) only if all agree.
    """
    given_votes = {str(number): Vote(vote != "n", vote != "-") for number, vote in enumerate(votes)}

    assert result is count_votes([str(number) for number in range(5)], given_votes)


def test_votes_of_strangers_do_not_count() -> None:
    """
    Only members of the group elect.
    """
    assert VoteResult.PENDING is count_votes("abc", dict.fromkeys("axy", Vote(True)))
