"""Numbers and times as people read them. Pure."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def number(value: float | int | None) -> str:
    """A count or a measure, with thousands set apart."""
    if value is None:
        return "–"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def short(value: float) -> str:
    """The same in a few characters, for axes and bars."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + f" {mark}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{int(value)}"


def size(value: float) -> str:
    """Bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.1f}".removesuffix(".0") + f" {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def span(ms: float) -> str:
    """A length of time."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if abs(ms) >= length:
            return f"{ms / length:.1f}".removesuffix(".0") + f" {unit}"
    return f"{ms:.0f} ms"


def moment(value: datetime, zone: ZoneInfo) -> str:
    """A time as the clocks of the zone show it, to the millisecond."""
    there = value.astimezone(zone)
    return there.strftime("%Y-%m-%d %H:%M:%S.") + f"{there.microsecond // 1000:03d}"


def tick(ms: float, step_ms: float, zone: ZoneInfo) -> str:
    """A time on an axis; its precision depends on the distance of ticks."""
    there = datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
    if step_ms >= 86_400_000:
        return there.strftime("%d %b")
    if step_ms >= 3_600_000:
        return there.strftime("%d %b %H:%M")
    return there.strftime("%H:%M" if step_ms >= 60_000 else "%H:%M:%S")


def cut(text: str, chars: int) -> str:
    """The text, cut in the middle to `chars`: both ends distinguish names."""
    if len(text) <= chars:
        return text
    tail = max(0, chars - 1) // 2
    return f"{text[: max(1, chars - 1 - tail)]}…{text[len(text) - tail :]}"
