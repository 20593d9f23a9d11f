"""How long it takes, from born to acknowledged."""

from typing import Final

from gantrymq.pipelines.marts import latency
from gantrymq.pipelines.report.charts import Bar, BarPart
from gantrymq.pipelines.report.number_text import span
from gantrymq.pipelines.report.pictures import Picture, draw_bars
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork


def make_tables(work: ReportWork) -> None:
    """Percentiles of the time from born to stored and acknowledged."""
    work.add(latency.LATENCY, latency.latency(work.stored, work.standing))


def draw_percentiles(report: Report) -> Picture | None:
    """Nested bars: one a span, on a logarithmic scale."""
    shades = {"p50": "c0", "p90": "c2", "p99": "c1", "p999": "c3"}
    found = [
        Bar(
            " · ".join(filter(None, (row["topic"], row["group"], row["span"]))),
            tuple(BarPart(name, max(0, row[name]), colour) for name, colour in shades.items()),
            ", ".join(f"{name} {span(row[name])}" for name in shades),
        )
        for row in report.table(latency.LATENCY).rows
    ]
    return draw_bars(
        "latency", "Latency (logarithmic)", "ms", latency.LATENCY, found, log=True, nested=True
    )


SECTION: Final = Section(
    name="latency",
    title="How long it takes",
    empty="No messages to measure.",
    make=make_tables,
    drawings=(draw_percentiles,),
    tables=(latency.LATENCY,),
    beside=(latency.LATENCY,),
)
