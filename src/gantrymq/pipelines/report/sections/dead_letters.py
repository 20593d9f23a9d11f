"""Dead letters, and what they died of."""

from typing import Final

from pyspark.sql import functions as fn

from gantrymq.pipelines.marts import causes
from gantrymq.pipelines.marts.mart import check_agree
from gantrymq.pipelines.report.charts import Bar, BarPart
from gantrymq.pipelines.report.number_text import number
from gantrymq.pipelines.report.pictures import Picture, draw_bars
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork
from gantrymq.pipelines.staging import messages


def make_tables(work: ReportWork) -> None:
    """Dead letters of the period by cause."""
    period = work.request.period
    died = work.dead.where(messages.within(fn.col("diedMs"), period.since_ms, period.until_ms))
    found = work.add(causes.CAUSES, causes.causes(died))
    silent = sum(row["letters"] for row in found.rows if row["cause"] == causes.NOT_NOTED)
    if silent:
        work.report.notes.append(
            f"no cause is noted for {silent} dead letters: only GantryMQ's consumers on its "
            "own brokers note one"
        )
    if len(found.rows) < causes.LISTED_MAX:
        check_agree(
            found.mart,
            "letters by cause, and all letters",
            {"letters": found.total("letters")},
            {"letters": died.count()},
        )


def draw_causes(report: Report) -> Picture | None:
    """A bar a cause."""
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
    return draw_bars("causes", "What messages died of", "messages", causes.CAUSES, found)


SECTION: Final = Section(
    name="dead",
    title="Dead letters",
    empty="No message died.",
    make=make_tables,
    drawings=(draw_causes,),
    tables=(causes.CAUSES,),
    beside=(causes.CAUSES,),
)
