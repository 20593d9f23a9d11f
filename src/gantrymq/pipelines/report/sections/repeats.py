"""What is there twice."""

from typing import Final

from gantrymq.pipelines.marts import duplicates
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.work import ReportWork


def make_tables(work: ReportWork) -> None:
    """Messages that are stored or acknowledged more than once."""
    found = work.keep(duplicates.repeats(work.stored, work.standing))
    work.add(duplicates.TOTALS, duplicates.totals(found))
    work.add(duplicates.LISTED, duplicates.listed(found))


SECTION: Final = Section(
    name="duplicates",
    title="What is there twice",
    empty="Nothing is there twice.",
    make=make_tables,
    tables=(duplicates.TOTALS, duplicates.LISTED),
    beside=(duplicates.TOTALS,),
    folded=(duplicates.LISTED,),
)
