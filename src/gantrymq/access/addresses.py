"""Patterns of addresses in white lists, as RocketMQ writes them. Pure.

    10.0.0.1                    one address
    10.0.0.1,10.0.0.2           several
    10.0.0.{1,2}                several that differ in the last part
    10.0.1-100.*                ranges and anything, part by part
    1:2::{5,6}   fe80::1-20:*   the same with IPv6, where ranges are hexadecimal
    *                           everybody; nothing at all is nobody

A range applies to its own part: RocketMQ takes `10.0.1-9.7` for `10.0.1-9.*`, we do not.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError

EVERYBODY: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_V4_PARTS, _V6_PARTS = 4, 8

Parts = tuple[int, ...]
"""An address as numbers: four of IPv4, eight of IPv6."""
Range = tuple[int, int]


def address_parts(address: str) -> Parts | None:
    """The numbers of an address; None if it is none. IPv4 within IPv6 counts as IPv4."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            packed = parsed.packed
            return tuple(int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2))
        parsed = parsed.ipv4_mapped
    return tuple(parsed.packed)


@dataclass(frozen=True)
class AddressPattern:
    """Addresses that a white list names."""

    everybody: bool = False
    choices: tuple[tuple[Range, ...], ...] = ()

    def matches(self, address: str) -> bool:
        if self.everybody:
            return True
        parts = address_parts(address) if self.choices else None
        return parts is not None and any(_within(parts, ranges) for ranges in self.choices)


NOBODY: Final = AddressPattern()


def _within(parts: Parts, ranges: tuple[Range, ...]) -> bool:
    if len(parts) != len(ranges):
        return False
    return all(low <= part <= high for part, (low, high) in zip(parts, ranges, strict=True))


def parse_pattern(text: str | None) -> AddressPattern:
    """The pattern of a text; raises ConfigError."""
    text = (text or "").strip()
    if not text:
        return NOBODY
    if text in EVERYBODY:
        return AddressPattern(everybody=True)
    choices = tuple(_ranges(each) for each in _alternatives(text))
    return AddressPattern(choices=choices)


def _alternatives(text: str) -> list[str]:
    """The single addresses of a list; braces stand for a list of last parts."""
    head, brace, rest = text.partition("{")
    if not brace:
        return [each.strip() for each in text.split(",") if each.strip()]
    inside, closed, after = rest.partition("}")
    last = max(head.rfind("."), head.rfind(":"))
    if not closed or after or last != len(head) - 1 or "," in head:
        raise _no_pattern(text)
    return [head + each.strip() for each in inside.split(",") if each.strip()]


def _ranges(address: str) -> tuple[Range, ...]:
    if ":" in address:
        parts, count, base, most = _expand(address), _V6_PARTS, 16, 0xFFFF
    else:
        parts, count, base, most = address.split("."), _V4_PARTS, 10, 255
    if len(parts) != count:
        raise _no_pattern(address)
    return tuple(_range(part.strip(), base, most, address) for part in parts)


def _expand(address: str) -> list[str]:
    """The eight parts of an IPv6 address; `::` stands for as many zeros as are missing."""
    head, gap, tail = address.partition("::")
    before, after = (side.split(":") if side else [] for side in (head, tail))
    if not gap:
        return before
    return [*before, *["0"] * (_V6_PARTS - len(before) - len(after)), *after]


def _range(part: str, base: int, most: int, address: str) -> Range:
    if part == "*":
        return 0, most
    low, minus, high = part.partition("-")
    try:
        found = int(low, base), int(high if minus else low, base)
    except ValueError:
        raise _no_pattern(address) from None
    if not 0 <= found[0] <= found[1] <= most or "_" in part or "+" in part:
        raise _no_pattern(address)
    return found


def _no_pattern(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is no address and no pattern: write 10.0.0.1, 10.0.0.{{1,2}}, 10.0.1-100.*, "
        "several with commas between, or * for everybody"
    )
