"""Keys and queues that have more than their share."""

from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.base.time_text import find_zone
from gantrymq.pipelines.marts import ledger, skew
from gantrymq.pipelines.marts.mart import check_agree, sums
from gantrymq.pipelines.report import charts
from gantrymq.pipelines.report.charts import Bar, BarPart
from gantrymq.pipelines.report.number_text import number
from gantrymq.pipelines.report.pictures import Picture, draw_bars, epoch_ms
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.request import STORE
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork

HEAT_ROWS_MAX: Final = 32


def make_tables(work: ReportWork) -> None:
    """Hot keys, messages by queue, and their load over time."""
    places = [(each.topic, each.broker_name, each.queue_id) for each in work.facts.queues]
    known = work.spark.createDataFrame(
        places if work.request.kind != STORE else [], skew.QUEUES_SCHEMA
    )
    work.add(skew.KEYS, skew.hot_keys(work.stored))
    queues = work.add(skew.QUEUES, skew.queues(work.stored, known))
    work.add(skew.LOAD, skew.queue_load(work.stored, work.report.heat_ms))
    check_agree(
        queues.mart,
        "messages by queue, and in total",
        sums(queues, ["topic"], "messages"),
        sums(work.report.table(ledger.TOPICS), ["topic"], "stored"),
    )


def draw_keys(report: Report) -> Picture | None:
    """A bar a key."""
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
    return draw_bars("hot_keys", "Hot keys", "messages", skew.KEYS, found)


def draw_heat(report: Report) -> Picture | None:
    """A row a queue, the fullest ones, and a colour a step of time."""
    lines: dict[str, dict[float, float]] = {}
    table = report.table(skew.LOAD)
    for row in table.rows:
        label = f"{row['topic']} {row['brokerName']}:{row['queueId']}"
        lines.setdefault(label, {})[epoch_ms(row["startTime"])] = row["messages"]
    if not lines:
        return None
    title = "Messages by queue and time"
    fullest = sorted(lines, key=lambda label: -sum(lines[label].values()))[:HEAT_ROWS_MAX]
    rows = [(label, cells) for label, cells in lines.items() if label in set(fullest)]
    zone, step = find_zone(report.request.zone), report.heat_ms
    alt = f"{title}: {counted(len(lines), 'queue')}; the table below has the numbers"

    def draw(width: int, style: bool) -> str:
        return charts.heat(width, title, alt, "messages", rows, step, zone, style=style)

    return Picture("queue_load", title, alt, "messages", skew.LOAD, draw)


SECTION: Final = Section(
    name="skew",
    title="Keys and queues",
    empty="No messages.",
    make=make_tables,
    drawings=(draw_keys, draw_heat),
    tables=(skew.KEYS, skew.QUEUES, skew.LOAD),
    beside=(skew.KEYS, skew.QUEUES),
    folded=(skew.LOAD,),
)
