"""Collects all metrics of a server in slices, so that clients are served meanwhile."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

from gantrymq.base.telemetry_settings import TelemetrySettings, pairs_of
from gantrymq.metrics import table
from gantrymq.metrics.metric import Collector, Metric, Row, Samples
from gantrymq.metrics.text import MetricsText

log = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.001
"""A turn of the event loop belongs to a collection for so long, and the piece that it is at."""
ROWS_PER_PIECE: Final = 64
"""Of a collector with thousands of samples: how many it makes at once."""


class MetricsSource:
    """All metrics of one server, whoever asks for them."""

    def __init__(
        self,
        settings: TelemetrySettings,
        identity: Mapping[str, str],
        collectors: Callable[[], Sequence[Collector]],
    ) -> None:
        """`identity` has the labels that all metrics get; `collectors` are asked anew each time."""
        self._settings, self._collectors = settings, collectors
        extra = pairs_of("metricsLabel", settings.metrics_label)
        delta = {"aggregation": "delta"} if settings.metrics_in_delta else {}
        self.common = {**extra, **delta, **identity}
        self._off = _switched_off(settings)
        self._turn = asyncio.Lock()
        self._told: set[str] = set()

    async def samples(self) -> Samples:
        """Samples of all metrics that are switched on, a slice at a time."""
        loop = asyncio.get_running_loop()
        began = turn = loop.time()
        longest = 0.0
        for collect in self._collectors():
            async for metric, rows in _without_failures(collect):
                if metric.switch not in self._off:
                    yield metric, rows
                now = loop.time()
                if now - turn >= SLICE_SECONDS:
                    longest = max(longest, now - turn)
                    await asyncio.sleep(0)
                    turn = loop.time()
        took = loop.time() - began
        if table.SCRAPE_SECONDS.switch not in self._off:
            yield table.SCRAPE_SECONDS, [(("all",), took), (("longest_turn",), longest)]

    async def text(self) -> list[bytes]:
        """The page for Prometheus; two scrapes at once take turns."""
        async with self._turn:
            page = MetricsText(self.common, self._settings.metrics_otel_cardinality_limit)
            async for metric, rows in self.samples():
                page.add(metric, rows)
            self.tell_of_cuts(page.cut)
            return page.parts()

    def tell_of_cuts(self, cut: Mapping[str, int]) -> None:
        """Log once for each metric that it has too many series."""
        for name in cut.keys() - self._told:
            self._told.add(name)
            log.warning(
                "%s has %d series more than metricsOtelCardinalityLimit (%d): they are left out",
                name,
                cut[name],
                self._settings.metrics_otel_cardinality_limit,
            )


async def _without_failures(collect: Collector) -> Samples:
    """What a collector gives; one that fails is logged, and the others are told all the same."""
    try:
        async for piece in collect():
            yield piece
    except Exception:
        log.exception("some metrics could not be collected")


def _switched_off(settings: TelemetrySettings) -> frozenset[str]:
    names = zip(settings.__struct_encode_fields__, settings.__struct_fields__, strict=True)
    return frozenset(
        key for key, field in names if key.endswith("Metrics") and not getattr(settings, field)
    )


async def in_pieces(metric: Metric, rows: Sequence[Row]) -> AsyncIterator[tuple[Metric, list[Row]]]:
    """Many samples of one metric, some at a time."""
    for at in range(0, len(rows), ROWS_PER_PIECE):
        yield metric, list(rows[at : at + ROWS_PER_PIECE])
