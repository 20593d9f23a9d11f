"""What a metric is, and the samples of it. Pure."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gantrymq.base.histogram import Distribution

COMMON_LABELS: Final = ("cluster", "node_type", "node_id")
"""Every metric has them: RocketMQ's names for the cluster, the kind of server and its name."""

ROCKETMQ: Final = "rocketmq_"
"""How the names of RocketMQ's metrics begin."""

Value = int | float | Distribution
Row = tuple[tuple[str, ...], Value]
"""The values of the metric's own labels, in their order, and what was counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric, as it is declared."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    """Besides those that all have."""
    unit: str = ""
    switch: str = "enableStatsMetrics"
    """The setting that turns it off."""

    @property
    def is_rocketmqs(self) -> bool:
        return self.name.startswith(ROCKETMQ)

    @property
    def pushed_name(self) -> str:
        """The name in OTLP: Prometheus' page of RocketMQ appends what it takes for the unit."""
        if not self.is_rocketmqs or self.name.endswith("_behind_bytes"):
            return self.name
        return self.name.removesuffix("_milliseconds").removesuffix("_bytes")


Samples = AsyncIterator[tuple[Metric, Sequence[Row]]]
"""Samples of metrics in any order, some at a time."""
Collector = Callable[[], Samples]


def yes_no(value: bool) -> str:
    """A label's value for what holds or does not."""
    return "true" if value else "false"
