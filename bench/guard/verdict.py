"""What two rows of measurements say about each other."""

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from bench.guard.works import Cost

SLOWER_MAX: Final = 1.15


class Verdict(NamedTuple):
    """One load, before and now."""

    work: str
    before: Sequence[Cost]
    now: Sequence[Cost]

    @property
    def ratio(self) -> float:
        """How much more a message costs now.

        Other work on the machine only ever adds to a cost. So a change is slower when its best
        round is, and its median, too.
        """
        best = min(cost.us for cost in self.now) / min(cost.us for cost in self.before)
        middle = median(cost.us for cost in self.now) / median(cost.us for cost in self.before)
        return min(best, middle)

    @property
    def holds(self) -> bool:
        return self.ratio <= SLOWER_MAX

    def line(self) -> str:
        def told(costs: Sequence[Cost]) -> str:
            low, high = min(cost.us for cost in costs), max(cost.us for cost in costs)
            rate = median(cost.tps for cost in costs)
            return f"{median(c.us for c in costs):6.2f} us ({low:.2f}-{high:.2f}) {rate:9,.0f}/s"

        mark = "ok    " if self.holds else "SLOWER"
        return (
            f"{mark} {self.work:27} {told(self.before)}  ->  {told(self.now)}  {self.ratio:5.2f}x"
        )
