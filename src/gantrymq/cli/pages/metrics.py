"""The page `docs/metrics.md`: `python -m gantrymq.cli.pages.metrics` prints it."""

from itertools import groupby
from typing import Final

from gantrymq.metrics.metric import COMMON_LABELS, Metric
from gantrymq.metrics.table import CONSOLE, DIFFERENCES, LEFT_OUT, METRICS

PREFACE: Final = f"""\
# Metrics

Printed by `python -m gantrymq.cli.pages.metrics`: every metric of brokers and name servers.
[Telemetry](guides/telemetry.md) says how to switch them on.

All have the labels {", ".join(f"`{name}`" for name in COMMON_LABELS)}: the cluster, `broker` or
`nameserver`, and the name of the broker or the address of the name server. They have those of
`metricsLabel`, too, and `aggregation="delta"` with metricsInDelta. A metric has a line only when
its thing happened.

Names that begin with `rocketmq_` are RocketMQ 5.3.3's, with its labels and kinds, as Prometheus
reads them from its brokers. There the page appends a unit to many names; what OTLP_GRPC and LOG
tell is named without `_milliseconds` and `_bytes`, in RocketMQ and here. Names that begin with
`gantrymq_` are ours.
"""
OF_CONSOLE: Final = (
    'At `/metrics` of the console, always, with the label `node_type="console"`; with a login it '
    'asks for one. Those about process and event loop under "The server" are there as well.'
)
TITLES: Final = {
    "enableStatsMetrics": "The server",
    "enableRequestMetrics": "Messages",
    "enableConnectionMetrics": "Clients",
    "enableLagAndDlqMetrics": "Groups",
    "enableTransactionMetrics": "Transactions",
    "enableRemotingMetrics": "Requests",
    "enableMessageStoreMetrics": "The store, copies and timers",
    "enablePopMetrics": "POP",
    CONSOLE: "The console",
}


def page() -> str:
    """The whole page."""
    parts = [PREFACE]
    for switch, metrics in groupby(METRICS, lambda metric: metric.switch):
        rows = "".join(_row(metric) for metric in metrics)
        said = f"`{switch}=false` leaves them out." if switch else OF_CONSOLE
        parts.append(
            f"## {TITLES[switch]}\n\n{said}\n\n"
            f"| metric | kind | unit | labels | what |\n|---|---|---|---|---|\n{rows}"
        )
    left = "".join(f"| {_names(names)} | {why} |\n" for names, why in LEFT_OUT.items())
    parts.append(
        "## Not here\n\nWhat RocketMQ 5 has besides.\n\n| metric | why |\n|---|---|\n" + left
    )
    return "\n".join(parts)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    text = metric.help
    if metric in DIFFERENCES:
        text += f". Not as in RocketMQ: {DIFFERENCES[metric]}"
    return f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {text} |\n"


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


if __name__ == "__main__":
    print(page(), end="")
