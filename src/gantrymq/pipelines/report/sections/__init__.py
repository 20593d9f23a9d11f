"""The sections of a report, a module each, in the order of the page.

A section may use tables and frames of those before it: the ledger is the first.
"""

from typing import Final

from gantrymq.pipelines.report.pictures import Picture
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.sections import (
    dead_letters,
    durations,
    group_lag,
    in_and_out,
    keys_and_queues,
    no_loss,
    repeats,
)

SECTIONS: Final = (
    no_loss.SECTION,
    in_and_out.SECTION,
    group_lag.SECTION,
    durations.SECTION,
    repeats.SECTION,
    dead_letters.SECTION,
    keys_and_queues.SECTION,
)
MARTS: Final = tuple(mart for section in SECTIONS for mart in section.tables)
"""All tables of a report, in its order."""


def draw_pictures(report: Report) -> list[Picture]:
    """All pictures that have data."""
    drawn = (draw(report) for section in SECTIONS for draw in section.drawings)
    return [picture for picture in drawn if picture is not None]
