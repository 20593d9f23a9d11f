"""Templates, and how figures and times look in them."""

from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gantrymq.base.time_text import describe

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@cache
def environment() -> Environment:
    """The templates of this package. A value that is missing is an error, not an empty place."""
    made = Environment(
        loader=PackageLoader("gantrymq.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number, "size": size, "moment": moment, "seconds": seconds, "segment": segment,
    }  # fmt: skip
    return made


def number(value: float | None) -> str:
    """1,234,567 or 12.5; a dash for what nobody knows."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def size(count: float | None) -> str:
    """Bytes for people."""
    if count is None:
        return "–"
    power = 0
    while count >= 1024 and power < len(UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.0f} {UNITS[power]}" if power == 0 else f"{count:.1f} {UNITS[power]}"


def moment(ms: int | None) -> Markup | str:
    """A time, which the browser shows in its own time zone."""
    if ms is None or ms <= 0:
        return "–"
    return Markup('<time data-ms="{}">{}</time>').format(ms, describe(ms, "UTC"))


def seconds(value: float | None) -> str:
    """A duration: 12 s, 3 min, 5 h, 2 d."""
    if value is None:
        return "–"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.0f} {unit}"
    return f"{value:.0f} s"


def segment(name: str) -> str:
    """A name as one part of an address."""
    return quote(name, safe="")


def render(template: str, values: dict[str, Any]) -> str:
    """Fill a template."""
    return environment().get_template(template).render(values)
