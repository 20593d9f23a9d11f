"""Metrics as lines of the log: one object of JSON for each metric that has samples."""

import json
import logging
from collections.abc import Sequence

from gantrymq.base.histogram import Distribution
from gantrymq.metrics.growth import Growth, Seen
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
            shown, seen = rows, Seen()
            if self._growth is not None:
                shown = [self._growth.of(metric, row, seen) for row in rows]
                self._growth.keep(seen)
            if shown:
                log.info("metric %s", json.dumps(self._line(metric, shown)))

    def _line(self, metric: Metric, rows: Sequence[Row]) -> dict[str, object]:
        return {
            "name": metric.pushed_name,
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
