"""Texts as numbers, exactly as Java reads them: what Java refuses is refused.

A condition that needs such a text cannot be decided, and the message does not match.
"""

import math
import re
from typing import Any, Final

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
INT, LONG, DOUBLE = "int", "long", "double"

_DOUBLE = re.compile(
    r"[\x00-\x20]*(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"[\x00-\x20]*"
)
_HEX = re.compile(
    r"[\x00-\x20]*(?P<number>[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)"
    r"[pP][+-]?[0-9]+)[fFdD]?[\x00-\x20]*"
)
_WORD = re.compile(r"[\x00-\x20]*(?P<sign>[+-]?)(?P<word>NaN|Infinity)[\x00-\x20]*")


class Undecidable(Exception):
    """A value cannot be compared as the condition requires."""


class NotANumber:
    """Java's NaN: equal to itself, and greater than every number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotANumber)

    def __hash__(self) -> int:
        return 1

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self == other

    def __gt__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: object) -> bool:
        return True


NAN: Final = NotANumber()


def as_int(value: bytes) -> int:
    """Java's Integer.valueOf."""
    number = _whole(value)
    if -INT_MAX - 1 <= number <= INT_MAX:
        return number
    raise Undecidable


def as_long(value: bytes) -> int:
    """Java's Long.valueOf."""
    number = _whole(value)
    if -LONG_MAX - 1 <= number <= LONG_MAX:
        return number
    raise Undecidable


def _whole(value: bytes) -> int:
    if value.isdigit():
        return _short(value)
    digits = value[1:] if value[:1] in (b"-", b"+") else value
    if digits.isdigit():
        return _short(value)
    text = digits.decode("utf-8", "replace")
    if not text.isdecimal() or max(text) > "\uffff":  # digits of any script, as Java takes them
        raise Undecidable
    number = _short(text)
    return -number if value[:1] == b"-" else number


def _short(digits: bytes | str) -> int:
    try:
        return int(digits)
    except ValueError as error:  # thousands of digits
        raise Undecidable from error


def as_double(value: bytes) -> Any:
    """Java's Double.valueOf: a float, or NAN."""
    text = value.decode("utf-8", "replace")
    match = _DOUBLE.fullmatch(text)
    if match is not None:
        return float(match["number"])
    match = _HEX.fullmatch(text)
    if match is not None:
        return _from_hex(match["number"])
    match = _WORD.fullmatch(text)
    if match is None:
        raise Undecidable
    if match["word"] == "NaN":
        return NAN
    return -math.inf if match["sign"] == "-" else math.inf


def _from_hex(number: str) -> float:
    try:
        return float.fromhex(number)
    except OverflowError:
        return -math.inf if number[0] == "-" else math.inf


def as_bool(value: bytes) -> bool:
    """Java's Boolean.valueOf: everything but `true` is false."""
    return value.lower() == b"true"


def ranked(number: Any) -> tuple[Any, bool]:
    """A double as Java orders it: -0.0 stands below 0.0."""
    return number, not (number == 0 and math.copysign(1.0, number) < 0)


def alike(left: int | float, right: int | float) -> tuple[int | float, int | float]:
    """Both numbers in one type, as Java converts them before it compares."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right
