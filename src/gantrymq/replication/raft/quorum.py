"""Counting of members: what a majority holds, and who is elected. Pure.

Always a majority of all members, not of those that are connected.
"""

from collections.abc import Collection, Mapping
from enum import Enum


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


def count_votes(members: Collection[str], votes: Mapping[str, bool]) -> VoteResult:
    """The result of an election from the votes that came in until now."""
    needed = majority(len(members))
    granted = sum(votes.get(member, False) for member in members)
    refused = sum(not votes.get(member, True) for member in members)
    if granted >= needed:
        return VoteResult.WON
    return VoteResult.LOST if len(members) - refused < needed else VoteResult.PENDING
