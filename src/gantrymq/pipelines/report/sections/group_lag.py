"""Who is behind: the lag of groups, now and in earlier reports."""

from typing import Final

from gantrymq.model import RETRY_PREFIX
from gantrymq.pipelines.marts import lag
from gantrymq.pipelines.report.charts import Bar, BarPart, Series
from gantrymq.pipelines.report.number_text import number
from gantrymq.pipelines.report.pictures import Picture, draw_bars, draw_lines, epoch_ms
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork
from gantrymq.pipelines.staging import group_progress


def make_tables(work: ReportWork) -> None:
    """The lag of each group at each time that is known."""
    rows = work.history
    topics, period = work.facts.topics, work.request.period
    groups = {each["group"] for each in rows if each["topic"] in topics}
    if work.request.groups:
        groups &= set(work.request.groups)
    chosen = [
        each
        for each in rows
        if each["group"] in groups
        and (each["topic"] in topics or each["topic"].startswith(RETRY_PREFIX))
        and (period.since_ms is None or each["atMs"] >= period.since_ms)
    ]
    work.add(lag.LAG, lag.lag(group_progress.progress(work.spark, chosen)))


def draw_lag(report: Report) -> Picture | None:
    """Lines over time, or bars if only one time is known."""
    rows = report.table(lag.LAG).rows
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name = f"{row['topic']} → {row['group']}"
        lines.setdefault(name, []).append((epoch_ms(row["time"]), row["lag"]))
    lines = {name: points for name, points in lines.items() if any(lag for _, lag in points)}
    if len({row["time"] for row in rows}) > 1:
        series = [Series(name, sorted(points)) for name, points in lines.items()]
        return draw_lines(report, "lag", "Unread messages", "messages", lag.LAG, series)
    found = [
        Bar(name, (BarPart("unread", points[-1][1], "wait"),), number(points[-1][1]))
        for name, points in sorted(lines.items(), key=lambda item: -item[1][-1][1])
    ]
    return draw_bars("lag", "Unread messages", "messages", lag.LAG, found)


SECTION: Final = Section(
    name="lag",
    title="Who is behind",
    empty="The progress of no group is known.",
    make=make_tables,
    drawings=(draw_lag,),
    tables=(lag.LAG,),
    beside=(lag.LAG,),
)
