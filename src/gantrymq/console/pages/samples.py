"""Figures over time as a table: what a chart shows, for those who cannot see it."""

from typing import Final

from starlette.responses import Response

from gantrymq.console.api.samples import Samples, WantedSamples, show_samples
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("overview")
ROWS_MAX: Final = 60
NAMED: Final = ("in", "out", "lag", "read", "sent")


@TABLE.page("/c/{cluster}/samples")
async def samples(view: View) -> Response:
    found = await show_samples(view.ask, view.query(WantedSamples))
    names = {each: view.texts(f"charts.{each}") for each in NAMED}
    return view.show("samples.html", found=found, rows=table_rows(found), names=names)


def table_rows(found: Samples) -> list[tuple[int, list[float | None]]]:
    """Times with means, the newest first: as many steps together as make a table of one screen.

    Times without any value are left out.
    """
    count = max((len(each.values) for each in found.series), default=0)
    together = max(1, -(-count // ROWS_MAX))
    rows = []
    for at in range(0, count, together):
        means = [mean(each.values[at : at + together]) for each in found.series]
        if any(value is not None for value in means):
            rows.append((found.from_ms + at * found.step_ms, means))
    return rows[::-1]


def mean(values: list[float | None]) -> float | None:
    """The mean of what is known."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
