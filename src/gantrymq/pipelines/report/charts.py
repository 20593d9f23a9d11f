"""Pictures as SVG text: lines over time, bars, and heat maps. Pure; every text is escaped.

A picture is drawn for a width, not scaled to one: text stays readable on a narrow screen. Colours
are names; the style below gives them values, for light and for dark mode.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final
from zoneinfo import ZoneInfo

from gantrymq.pipelines.report.number_text import cut, number, short, tick

STYLE: Final = """
.gq{--ink:#1d2530;--soft:#5f6b7a;--rule:#e3e7ed;--c0:#2b6cdf;--c1:#d9730d;--c2:#0c8f7f;--c3:#a83fa0;
--c4:#6b8e23;--c5:#7a5af0;--c6:#b0506a;--c7:#7b8794;--good:#1f9d61;--wait:#5b8def;--warn:#e0a100;
--bad:#d23f3f;--dead:#8a4b4b;--idle:#aab4c0;--heat:#2b6cdf;font:12px system-ui,-apple-system,
"Segoe UI",Roboto,sans-serif}
@media (prefers-color-scheme:dark){.gq{--ink:#e7ebf1;--soft:#9aa7b6;--rule:#2c3642;--c0:#6ea3ff;
--c1:#f5a04d;--c2:#3cc9b4;--c3:#da82d4;--c4:#a9cc5b;--c5:#a894ff;--c6:#ea8aa4;--c7:#9aa7b6;
--good:#43c788;--wait:#7aa5f7;--warn:#f0bf3c;--bad:#ff6b6b;--dead:#c48383;--idle:#55616f;
--heat:#6ea3ff}}
.gq text{fill:var(--soft)}.gq .ink{fill:var(--ink)}.gq .rule{stroke:var(--rule);stroke-width:1}
.gq .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
"""
COLOURS: Final = tuple(f"c{number}" for number in range(8))
CHAR_WIDTH: Final = 7.0
"""About what a letter of 12 pixels takes."""
SERIES_MAX: Final = len(COLOURS)
TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name and its points, times in milliseconds."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar."""

    name: str
    value: float
    colour: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of one or more parts, with a note at its end."""

    label: str
    parts: tuple[BarPart, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels; logarithmic if asked for."""

    top: float
    width: float
    log: bool = False

    def at(self, value: float) -> float:
        if self.top <= 0 or value <= 0:
            return 0.0
        if self.log:
            return self.width * math.log1p(value) / math.log1p(self.top)
        return self.width * value / self.top


def whole(width: int, height: float, title: str, alt: str, inner: str, *, style: bool) -> str:
    """A whole picture from its parts; with `style` it can be a file of its own."""
    own = f"<style>{STYLE}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gq" role="img" width="{width}" '
        f'height="{height:.0f}" viewBox="0 0 {width} {height:.0f}">'
        f"<title>{escape(title)}</title><desc>{escape(alt)}</desc>{own}{inner}</svg>"
    )


def ticks(top: float, count: int = TICKS) -> list[float]:
    """Round values from 0 up to at least the top."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw)
    return [step * number for number in range(math.ceil(top / step - 1e-9) + 1)]


# lines


def lines(
    width: int,
    title: str,
    alt: str,
    unit: str,
    series: Sequence[Series],
    zone: ZoneInfo,
    *,
    style: bool = False,
) -> str:
    """Values over time."""
    legend, top_at = _legend(
        width, [(each.name, _colour(at), each.dashed) for at, each in enumerate(series)]
    )
    height, left, right = top_at + 230.0, 52.0, 14.0
    bottom, plot = height - 28, 174.0
    times = [at for each in series for at, _ in each.points]
    first, last = min(times), max(times)
    marks = ticks(max(value for each in series for _, value in each.points))
    across = width - left - right

    def x(at: float) -> float:
        return left + (across * (at - first) / (last - first) if last > first else across / 2)

    def y(value: float) -> float:
        return bottom - plot * value / marks[-1]

    parts = [legend, _text(4, y(marks[-1]) - 12, unit)]
    parts += [
        f'<line class="rule" x1="{left}" x2="{width - right}" y1="{y(mark):.1f}" '
        f'y2="{y(mark):.1f}"/>{_text(left - 6, y(mark) + 4, short(mark), "end")}'
        for mark in marks
    ]
    parts += _time_marks(first, last, zone, across, x, bottom + 18)
    for at, each in enumerate(series):
        parts.append(_line(each, _colour(at), x, y))
    return whole(width, height, title, alt, "".join(parts), style=style)


def _line(
    series: Series, colour: str, x: Callable[[float], float], y: Callable[[float], float]
) -> str:
    path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in series.points)
    dash = ' stroke-dasharray="5 4"' if series.dashed else ""
    told = "".join(
        f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="{2.5 if len(series.points) < 60 else 1}" '
        f'fill="var(--{colour})"><title>{escape(series.name)}: {number(value)}</title></circle>'
        for at, value in series.points
    )
    return f'<polyline class="line" stroke="var(--{colour})" points="{path}"{dash}/>{told}'


def _time_marks(
    first: float, last: float, zone: ZoneInfo, across: float, x: Callable[[float], float], y: float
) -> list[str]:
    count = max(1, min(6, int(across // 110)))
    step = (last - first) / count if last > first else 0.0
    places = [first + step * number for number in range(count + 1)] if step else [first]
    found = []
    for at, ms in enumerate(places):
        anchor = (
            "middle"
            if 0 < at < len(places) - 1 or len(places) == 1
            else ("start" if at == 0 else "end")
        )
        found.append(_text(x(ms), y, tick(ms, step or 1, zone), anchor))
    return found


# bars


def bars(
    width: int,
    title: str,
    alt: str,
    found: Sequence[Bar],
    *,
    log: bool = False,
    nested: bool = False,
    style: bool = False,
) -> str:
    """Bars from left to right, a label above each; parts are side by side or nested."""
    names = dict.fromkeys((part.name, part.colour) for bar in found for part in bar.parts)
    entries = [(name, colour, False) for name, colour in names]
    legend, at = _legend(width, entries if len(entries) > 1 else [])
    reach = max((_reach(bar, nested) for bar in found), default=0)
    scale = Scale(reach, width - 8.0, log)
    parts = [legend]
    for bar in found:
        # The parts of a nested bar cover each other: their values have a line of their own.
        beside = 0 if nested else len(bar.note)
        room = int((width - beside * CHAR_WIDTH - 20) / CHAR_WIDTH)
        note = _text(4, at + 46, bar.note) if nested else _text(width - 4, at + 14, bar.note, "end")
        parts.append(
            f"<g><title>{escape(f'{bar.label}: {bar.note}')}</title>"
            + _text(4, at + 14, cut(bar.label, room), css="ink")
            + note
            + "".join(_bar_parts(bar, scale, at + 20, nested))
            + "</g>"
        )
        at += 62 if nested else 44
    return whole(width, at + 4, title, alt, "".join(parts), style=style)


def _reach(bar: Bar, nested: bool) -> float:
    values = [part.value for part in bar.parts]
    return max(values, default=0) if nested else sum(values)


def _bar_parts(bar: Bar, scale: Scale, y: float, nested: bool) -> list[str]:
    found = [
        f'<rect x="4" y="{y}" width="{scale.width:.1f}" height="12" rx="3" '
        'fill="var(--rule)" opacity=".55"/>'
    ]
    at = 4.0
    parts = sorted(bar.parts, key=lambda part: -part.value) if nested else bar.parts
    for part in parts:
        if part.value <= 0:
            continue
        long = max(1.5, scale.at(part.value))
        found.append(
            f'<rect x="{at:.1f}" y="{y}" width="{long:.1f}" height="12" rx="3" '
            f'fill="var(--{part.colour})"><title>{escape(part.name)}: {number(part.value)}</title>'
            "</rect>"
        )
        at += 0 if nested else long
    return found


# heat maps


def heat(
    width: int,
    title: str,
    alt: str,
    unit: str,
    rows: Sequence[tuple[str, dict[float, float]]],
    step_ms: int,
    zone: ZoneInfo,
    *,
    style: bool = False,
) -> str:
    """Values by row and time: a higher value has a stronger colour."""
    times = [at for _, cells in rows for at in cells]
    first, last = min(times), max(times)
    columns = int((last - first) // step_ms) + 1
    longest = max((len(label) for label, _ in rows), default=0)
    left = min(longest * CHAR_WIDTH + 12, width * 0.36)
    cell, tall = (width - left - 8) / columns, 18.0
    most = max((value for _, cells in rows for value in cells.values()), default=0)
    parts = [_text(4, 14, f"{unit}, up to {short(most)}")]
    y = 24.0
    for label, cells in rows:
        parts.append(
            _text(left - 6, y + 13, cut(label, int((left - 8) / CHAR_WIDTH)), "end", "ink")
        )
        parts.append(
            f'<rect x="{left:.1f}" y="{y}" width="{cell * columns:.1f}" '
            f'height="{tall - 2}" fill="var(--rule)" opacity=".45"/>'
        )
        for at, value in cells.items():
            x = left + cell * ((at - first) // step_ms)
            share = 0.15 + 0.85 * value / most if most else 0
            said = f"{label}, {tick(at, 1, zone)}: {number(value)}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(1.0, cell - 1):.1f}" height="{tall - 2}" '
                f'fill="var(--heat)" opacity="{share:.2f}"><title>{escape(said)}</title></rect>'
            )
        y += tall
    parts += _time_marks(
        first,
        last + step_ms,
        zone,
        width - left - 8,
        lambda ms: left + cell * columns * (ms - first) / (last + step_ms - first),
        y + 16,
    )
    return whole(width, y + 24, title, alt, "".join(parts), style=style)


# parts


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def _legend(width: int, entries: Sequence[tuple[str, str, bool]]) -> tuple[str, float]:
    """The legend, in as many lines as needed, and the height at which the picture goes on."""
    parts, x, y = [], 4.0, 14.0
    for name, colour, dashed in entries:
        shown = cut(name, int((width - 30) / CHAR_WIDTH))
        wide = 24 + len(shown) * CHAR_WIDTH + 12
        if x > 4 and x + wide > width:
            x, y = 4.0, y + 18
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        parts.append(
            f'<line x1="{x}" x2="{x + 16}" y1="{y - 4}" y2="{y - 4}" stroke-width="4" '
            f'stroke="var(--{colour})"{dash}/>' + _text(x + 22, y, shown)
        )
        x += wide
    return "".join(parts), (y + 12 if entries else 0.0)


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    named = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'
