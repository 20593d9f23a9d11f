"""What counters and histograms grew by, for those who are told differences (metricsInDelta)."""

from gantrymq.base.histogram import Distribution
from gantrymq.metrics.metric import Metric, Row, Value

Seen = dict[tuple[str, tuple[str, ...]], Value]
"""Totals by the name of the metric and its labels."""


class Growth:
    """Compares totals with those that somebody was told before."""

    def __init__(self) -> None:
        self._told: Seen = {}

    def of(self, metric: Metric, row: Row, seen: Seen) -> Row:
        """The row with what it grew by; a gauge as it is. Who fell has begun anew.

        The total is put into `seen`: `keep` is called with it when it was told.
        """
        labels, value = row
        if metric.kind == "gauge":
            return row
        before = self._told.get((metric.name, labels))
        seen[metric.name, labels] = value
        if isinstance(value, Distribution):
            return labels, _grown(value, before)
        if isinstance(before, int | float) and value >= before:
            return labels, value - before
        return row

    def keep(self, seen: Seen) -> None:
        """Note what was told."""
        self._told.update(seen)


def _grown(value: Distribution, before: object) -> Distribution:
    if not isinstance(before, Distribution) or sum(value.counts) < sum(before.counts):
        return value
    counts = tuple(now - then for now, then in zip(value.counts, before.counts, strict=True))
    return Distribution(value.bounds, counts, value.total - before.total)
