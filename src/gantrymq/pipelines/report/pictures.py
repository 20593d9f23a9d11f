"""The pictures of a report, and which tables they show."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gantrymq.base.plurals import counted
from gantrymq.base.time_text import find_zone
from gantrymq.pipelines.marts import causes, lag, latency, ledger, skew, traffic
from gantrymq.pipelines.marts.mart import Mart
from gantrymq.pipelines.report import charts
from gantrymq.pipelines.report.build import Report
from gantrymq.pipelines.report.charts import SERIES_MAX, Bar, BarPart, Series
from gantrymq.pipelines.report.number_text import number, span

WIDE: Final = 600
NARROW: Final = 350
"""Widths in pixels: a column of a wide page, and a telephone."""
BARS_MAX: Final = 12
HEAT_ROWS_MAX: Final = 32

STATES: Final = (
    ("acknowledged", "acknowledged", "good"), ("dead", "dead", "dead"),
    ("retrying", "retrying", "warn"), ("inHand", "in hand", "c5"), ("waiting", "waiting", "wait"),
    ("unwanted", "unwanted", "idle"), ("earlier", "before its begin", "idle"),
    ("unknown", "unknown", "c7"),
    ("passedBy", "passed by", "bad"), ("unfinished", "unfinished", "bad"),
    ("dropped", "dropped", "bad"), ("untraced", "trace missing", "warn"),
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A picture that can be drawn for any width, alone or inside a page."""

    name: str
    title: str
    alt: str
    """What it shows, for who cannot see it."""
    unit: str
    mart: Mart
    draw: Callable[[int, bool], str]
    """Width, and whether it stands alone."""


def pictures(report: Report) -> list[Picture]:
    """All pictures that have data."""
    made = (_ledger, _traffic, _lag, _latency, _causes, _keys, _heat)
    return [found for make in made if (found := make(report)) is not None]


def _ledger(report: Report) -> Picture | None:
    rows = report.table(ledger.GROUPS).rows
    found = [
        Bar(
            f"{row['topic']} → {row['group']}",
            tuple(BarPart(title, row[name], colour) for name, title, colour in STATES if row[name]),
            f"{number(row['acknowledged'])} of {number(row['messages'])} ({row['basis']})",
        )
        for row in sorted(rows, key=lambda row: -row["messages"])
    ]
    return _bars("ledger", "Where messages stand", "messages", ledger.GROUPS, found)


def _traffic(report: Report) -> Picture | None:
    rows = report.table(traffic.TRAFFIC).rows
    lines: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        name = (
            row["topic"] if row["direction"] == traffic.IN else (f"{row['topic']} → {row['group']}")
        )
        lines.setdefault((row["direction"], name), {})[_ms(row["startTime"])] = row["perSecond"]
    series = [
        Series(f"{direction}: {name}", _filled(points, report.step_ms), direction == traffic.OUT)
        for (direction, name), points in lines.items()
    ]
    return _lines(report, "traffic", "Messages in and out", "messages/s", traffic.TRAFFIC, series)


def _filled(points: dict[float, float], step_ms: int) -> list[tuple[float, float]]:
    """The points with 0 for steps without messages, instead of a line between neighbours."""
    first, last = min(points), max(points)
    steps = int((last - first) // step_ms) + 1
    return [(at, points.get(at, 0.0)) for at in (first + step_ms * n for n in range(steps))]


def _lag(report: Report) -> Picture | None:
    rows = report.table(lag.LAG).rows
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name = f"{row['topic']} → {row['group']}"
        lines.setdefault(name, []).append((_ms(row["time"]), row["lag"]))
    lines = {name: points for name, points in lines.items() if any(lag for _, lag in points)}
    if len({row["time"] for row in rows}) > 1:
        series = [Series(name, sorted(points)) for name, points in lines.items()]
        return _lines(report, "lag", "Unread messages", "messages", lag.LAG, series)
    found = [
        Bar(name, (BarPart("unread", points[-1][1], "wait"),), number(points[-1][1]))
        for name, points in sorted(lines.items(), key=lambda item: -item[1][-1][1])
    ]
    return _bars("lag", "Unread messages", "messages", lag.LAG, found)


def _latency(report: Report) -> Picture | None:
    shades = {"p50": "c0", "p90": "c2", "p99": "c1", "p999": "c3"}
    found = [
        Bar(
            " · ".join(filter(None, (row["topic"], row["group"], row["span"]))),
            tuple(BarPart(name, max(0, row[name]), colour) for name, colour in shades.items()),
            ", ".join(f"{name} {span(row[name])}" for name in shades),
        )
        for row in report.table(latency.LATENCY).rows
    ]
    return _bars(
        "latency", "Latency (logarithmic)", "ms", latency.LATENCY, found, log=True, nested=True
    )


def _causes(report: Report) -> Picture | None:
    rows = sorted(report.table(causes.CAUSES).rows, key=lambda row: -row["letters"])
    found = [
        Bar(
            f"{row['group']}: {row['error'] or row['reason'] or row['cause']}"
            + (f" – {row['text']}" if row["text"] else ""),
            (BarPart("letters", row["letters"], "bad"),),
            number(row["letters"]),
        )
        for row in rows
    ]
    return _bars("causes", "What messages died of", "messages", causes.CAUSES, found)


def _keys(report: Report) -> Picture | None:
    rows = sorted(report.table(skew.KEYS).rows, key=lambda row: (-row["messages"], row["key"]))
    found = [
        Bar(
            f"{row['topic']}: {row['key']}",
            (BarPart("messages", row["messages"], "c0"),),
            f"{number(row['messages'])} ({row['share']:.1%})",
        )
        for row in rows
        if row["messages"] > 1
    ]
    return _bars("hot_keys", "Hot keys", "messages", skew.KEYS, found)


def _heat(report: Report) -> Picture | None:
    lines: dict[str, dict[float, float]] = {}
    table = report.table(skew.LOAD)
    for row in table.rows:
        label = f"{row['topic']} {row['brokerName']}:{row['queueId']}"
        lines.setdefault(label, {})[_ms(row["startTime"])] = row["messages"]
    if not lines:
        return None
    title = "Messages by queue and time"
    fullest = sorted(lines, key=lambda label: -sum(lines[label].values()))[:HEAT_ROWS_MAX]
    rows = [(label, cells) for label, cells in lines.items() if label in set(fullest)]
    zone, step = find_zone(report.wanted.zone), report.heat_ms
    alt = f"{title}: {counted(len(lines), 'queue')}; the table below has the numbers"

    def draw(width: int, style: bool) -> str:
        return charts.heat(width, title, alt, "messages", rows, step, zone, style=style)

    return Picture("queue_load", title, alt, "messages", skew.LOAD, draw)


def _bars(
    name: str,
    title: str,
    unit: str,
    mart: Mart,
    found: list[Bar],
    *,
    log: bool = False,
    nested: bool = False,
) -> Picture | None:
    if not found:
        return None
    shown = found[:BARS_MAX]
    rest = f"; {len(found) - len(shown)} more in the table" if len(found) > len(shown) else ""
    alt = "; ".join(f"{bar.label}: {bar.note}" for bar in shown) + rest

    def draw(width: int, style: bool) -> str:
        return charts.bars(width, title, alt, shown, log=log, nested=nested, style=style)

    return Picture(name, title, alt, unit, mart, draw)


def _lines(
    report: Report, name: str, title: str, unit: str, mart: Mart, found: list[Series]
) -> Picture | None:
    if not found:
        return None
    biggest = sorted(found, key=lambda each: -sum(value for _, value in each.points))
    chosen = set(map(id, biggest[:SERIES_MAX]))
    shown = [each for each in found if id(each) in chosen]
    rest = f"; {len(found) - len(shown)} more in the table" if len(found) > len(shown) else ""
    peaks = (
        f"{each.name} up to {number(max(value for _, value in each.points))}" for each in shown
    )
    alt = f"{title} over time in {unit}: {'; '.join(peaks)}{rest}"
    zone = find_zone(report.wanted.zone)

    def draw(width: int, style: bool) -> str:
        return charts.lines(width, title, alt, unit, shown, zone, style=style)

    return Picture(name, title, alt, unit, mart, draw)


def _ms(at: datetime) -> Any:
    return at.timestamp() * 1000
