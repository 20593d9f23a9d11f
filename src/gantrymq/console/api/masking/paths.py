"""Fields of a value by path: `customer.card`, `items[*].price`, `**.password`."""

import re
from typing import Any, Final

from gantrymq.console.errors import BadInput

MASK: Final = "***"
SEGMENTS_MAX: Final = 20
ANY, ANY_DEPTH = "*", "**"
_PART: Final = re.compile(r"\[(\*|\d+)\]|\*\*|\*|[^.\[\]*]+")

Path = tuple[str, ...]


def parse_path(text: str) -> Path:
    """The segments of a path; a leading `$.` is as good as none."""
    rest = text.strip().removeprefix("$").removeprefix(".")
    found: list[str] = []
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise BadInput(f"{text!r} is no path: write customer.card, items[*].price or **.card")
        found.append(match.group(1) or match.group())
        rest = rest[match.end() :].removeprefix(".")
    if not 0 < len(found) <= SEGMENTS_MAX or found[-1] == ANY_DEPTH:
        raise BadInput(f"{text!r} is no path: it has 1 to {SEGMENTS_MAX} parts, and a field last")
    if found.count(ANY_DEPTH) > 1:
        raise BadInput(f"{text!r}: write ** once")
    return tuple(found)


def mask_path(value: Any, path: Path) -> tuple[Any, int]:
    """The value with everything at the path masked, and how many places there were."""
    first, rest = path[0], path[1:]
    if first == ANY_DEPTH:
        value, count = mask_path(value, rest)
        value, deeper = _each(value, path)
        return value, count + deeper
    if isinstance(value, dict):
        return _of_dict(value, first, rest)
    if isinstance(value, list | tuple):
        return _of_list(value, first, rest)
    return value, 0


def _of_dict(value: dict[Any, Any], first: str, rest: Path) -> tuple[Any, int]:
    made, count = dict(value), 0
    for key, each in value.items():
        if first in (ANY, str(key)):
            made[key], found = mask_path(each, rest) if rest else (MASK, 1)
            count += found
    return made, count


def _of_list(value: list[Any] | tuple[Any, ...], first: str, rest: Path) -> tuple[Any, int]:
    """A name of a field is looked for in each item: people forget `[*]`, and secrets must not."""
    if first != ANY and not first.isdecimal():
        return _each(value, (first, *rest))
    made, count = list(value), 0
    for at, each in enumerate(value):
        if first in (ANY, str(at)):
            made[at], found = mask_path(each, rest) if rest else (MASK, 1)
            count += found
    return made, count


def _each(value: Any, path: Path) -> tuple[Any, int]:
    """The path at work in every part of a value."""
    count = 0
    if isinstance(value, dict):
        made: Any = {}
        for key, each in value.items():
            made[key], found = mask_path(each, path)
            count += found
        return made, count
    if isinstance(value, list | tuple):
        items = []
        for each in value:
            item, found = mask_path(each, path)
            items.append(item)
            count += found
        return items, count
    return value, 0
