"""Messages in and out, by time."""

from typing import Final

from pyspark.sql import functions as fn

from gantrymq.pipelines.marts import ledger, traffic
from gantrymq.pipelines.marts import standing as st
from gantrymq.pipelines.marts.mart import check_agree, sums
from gantrymq.pipelines.report.charts import Series
from gantrymq.pipelines.report.pictures import Picture, draw_lines, epoch_ms
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.section import Section, select_rows
from gantrymq.pipelines.report.work import ReportWork


def make_tables(work: ReportWork) -> None:
    """Messages that were stored and acknowledged, in total and by time."""
    done = work.standing.where(fn.col("state") == st.ACKNOWLEDGED)
    flows = work.keep(traffic.flows(work.stored, done))
    totals = work.add(traffic.TOTALS, traffic.totals(flows))
    by_time = work.add(traffic.TRAFFIC, traffic.traffic(flows, work.report.step_ms))
    ins = select_rows(totals, lambda row: row["direction"] == traffic.IN)
    ins_by_time = select_rows(by_time, lambda row: row["direction"] == traffic.IN)
    outs = select_rows(totals, lambda row: row["direction"] == traffic.OUT)
    topics = work.report.table(ledger.TOPICS)
    check_agree(
        totals.mart,
        "messages in, and the ledger's stored ones",
        sums(ins, ["topic"], "messages"),
        sums(topics, ["topic"], "stored"),
    )
    check_agree(
        totals.mart,
        "messages out, and the ledger's acknowledged ones",
        sums(outs, ["topic", "group"], "messages"),
        sums(work.report.table(ledger.GROUPS), ["topic", "group"], "acknowledged"),
    )
    check_agree(
        by_time.mart,
        "messages in by time, and in total",
        sums(ins_by_time, ["topic"], "messages"),
        sums(ins, ["topic"], "messages"),
    )


def draw_traffic(report: Report) -> Picture | None:
    """A line a topic and direction."""
    rows = report.table(traffic.TRAFFIC).rows
    lines: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        direction, name = row["direction"], row["topic"]
        if direction == traffic.OUT:
            name = f"{name} → {row['group']}"
        points = lines.setdefault((direction, name), {})
        points[epoch_ms(row["startTime"])] = row["perSecond"]
    series = [
        Series(f"{direction}: {name}", _filled(points, report.step_ms), direction == traffic.OUT)
        for (direction, name), points in lines.items()
    ]
    return draw_lines(
        report, "traffic", "Messages in and out", "messages/s", traffic.TRAFFIC, series
    )


def _filled(points: dict[float, float], step_ms: int) -> list[tuple[float, float]]:
    """The points with 0 for steps without messages, instead of a line between neighbours."""
    first, last = min(points), max(points)
    steps = int((last - first) // step_ms) + 1
    return [(at, points.get(at, 0.0)) for at in (first + step_ms * n for n in range(steps))]


SECTION: Final = Section(
    name="traffic",
    title="In and out",
    empty="Nothing came in.",
    make=make_tables,
    drawings=(draw_traffic,),
    tables=(traffic.TOTALS, traffic.TRAFFIC),
    beside=(traffic.TOTALS,),
    folded=(traffic.TRAFFIC,),
)
