"""Pictures of a report: what they show, and how bars and lines become one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gantrymq.base.time_text import find_zone
from gantrymq.pipelines.marts.mart import Mart
from gantrymq.pipelines.report import charts
from gantrymq.pipelines.report.charts import SERIES_MAX, Bar, Series
from gantrymq.pipelines.report.number_text import number
from gantrymq.pipelines.report.report import Report

WIDE: Final = 600
NARROW: Final = 350
"""Widths in pixels: a column of a wide page, and a telephone."""
BARS_MAX: Final = 12


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


def draw_bars(
    name: str,
    title: str,
    unit: str,
    mart: Mart,
    found: list[Bar],
    *,
    log: bool = False,
    nested: bool = False,
) -> Picture | None:
    """A picture of bars, the first ones; None without any."""
    if not found:
        return None
    shown = found[:BARS_MAX]
    rest = f"; {len(found) - len(shown)} more in the table" if len(found) > len(shown) else ""
    alt = "; ".join(f"{bar.label}: {bar.note}" for bar in shown) + rest

    def draw(width: int, style: bool) -> str:
        return charts.bars(width, title, alt, shown, log=log, nested=nested, style=style)

    return Picture(name, title, alt, unit, mart, draw)


def draw_lines(
    report: Report, name: str, title: str, unit: str, mart: Mart, found: list[Series]
) -> Picture | None:
    """A picture of lines over time, the largest ones; None without any."""
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
    zone = find_zone(report.request.zone)

    def draw(width: int, style: bool) -> str:
        return charts.lines(width, title, alt, unit, shown, zone, style=style)

    return Picture(name, title, alt, unit, mart, draw)


def epoch_ms(at: datetime) -> float:
    """A time as milliseconds since 1970."""
    return at.timestamp() * 1000
