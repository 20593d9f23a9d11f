"""Metrics as lines of the log: one object of JSON for each metric that has samples."""

import json
import logging
from collections.abc import Sequence

from gantrymq.base.histogram import Distribution
from gantrymq.metrics.metric import Metric, Row
from gantrymq.metrics.scrape import MetricsSource

log = logging.getLogger(__name__)


class MetricsLog:
    """Writes all metrics; with `delta` counters tell how much they grew since the last time."""

    def __init__(self, source: MetricsSource, *, delta: bool) -> None:
        self._source = source
        self._growth = Growth() if delta else None

    async def write(self) -> None:
        async for metric, rows in self._source.samples():
            growth = self._growth
            shown = rows if growth is None else [growth.of(metric, row) for row in rows]
            if shown:
                log.info("metric %s", json.dumps(self._line(metric, shown)))

    def _line(self, metric: Metric, rows: Sequence[Row]) -> dict[str, object]:
        return {
            "name": metric.name,
            "kind": metric.kind,
            "common": self._source.common,
            "samples": [
                {
                    "labels": dict(zip(metric.labels, labels, strict=True)),
                    "value": value._asdict() if isinstance(value, Distribution) else value,
                }
                for labels, value in rows
            ],
        }


class Growth:
    """What counters and histograms grew by since they were last seen."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, tuple[str, ...]], int | float | Distribution] = {}

    def of(self, metric: Metric, row: Row) -> Row:
        """The row with what it grew by; a gauge as it is. Who fell has begun anew."""
        labels, value = row
        if metric.kind == "gauge":
            return row
        before = self._before.get((metric.name, labels))
        self._before[metric.name, labels] = value
        if isinstance(value, Distribution):
            return labels, _grown(value, before)
        if isinstance(before, int | float) and value >= before:
            return labels, value - before
        return row


def _grown(value: Distribution, before: object) -> Distribution:
    if not isinstance(before, Distribution) or sum(value.counts) < sum(before.counts):
        return value
    counts = tuple(now - then for now, then in zip(value.counts, before.counts, strict=True))
    return Distribution(value.bounds, counts, value.total - before.total)
