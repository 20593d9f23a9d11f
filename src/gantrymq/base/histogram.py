"""Counts of values in classes, each up to a bound, as metrics have them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Distribution(NamedTuple):
    """How many values were seen in each class, at one moment."""

    bounds: tuple[float, ...]
    """The largest value of each class; the last class has none."""
    counts: tuple[int, ...]
    """One more than there are bounds. Each class counts for itself."""
    total: float
    """The sum of all values."""


class Histogram:
    """Counts values since the start; one addition and a search among a few bounds for each."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value that was seen so many times."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._total += value * times

    @property
    def shown(self) -> Distribution:
        """The counts as they are now."""
        return Distribution(self._bounds, tuple(self._counts), self._total)
