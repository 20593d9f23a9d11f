"""Counting of members: what a majority holds, and who is elected. Pure.

Always a majority of all members, not of those that are connected.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import NamedTuple


class VoteResult(Enum):
    """How an election stands."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


def majority(members: int) -> int:
    """How many of so many members are more than half."""
    return members // 2 + 1


def majority_offset(held: Collection[int]) -> int:
    """The largest offset that a majority holds, from the offset that each member holds."""
    return sorted(held, reverse=True)[majority(len(held)) - 1]


class Vote(NamedTuple):
    """What a member says to a candidate."""

    granted: bool
    """It has not voted for another, and its log is not newer than the candidate's."""
    counts: bool = True
    """False of a member that may have lost what it acknowledged."""


def count_votes(members: Collection[str], votes: Mapping[str, Vote]) -> VoteResult:
    """The result of an election from the votes that came in until now.

    Votes that do not count elect somebody if all members agree: then no log that is left is newer,
    and waiting would not bring back what is lost. Otherwise a group whose machines all lost their
    power would never have a leader again.
    """
    needed = majority(len(members))
    said = [votes[member] for member in members if member in votes]
    granted = sum(vote.granted and vote.counts for vote in said)
    agreed = sum(vote.granted for vote in said)
    if granted >= needed or agreed == len(members):
        return VoteResult.WON
    open_ = len(members) - len(said)
    if agreed == len(said) or granted + open_ >= needed:
        return VoteResult.PENDING
    return VoteResult.LOST
