"""Checks of arguments: each returns the value or raises an error that says what is right."""

import math
from typing import Any, TypeVar

from gantrymq.base.errors import WrongType, WrongValue

T = TypeVar("T")


def wrong_type(name: str, right: str, value: object) -> WrongType:
    shown = repr(value)
    return WrongType(f"{name} is {right}, not {shown[:80]} ({type(value).__name__})")


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value)
    return value


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(name, "a whole number", value)
    if value < least:
        raise WrongValue(f"{name} is {least} or more, not {value}")
    return value


def seconds(name: str, value: Any, *, more_than_none: bool = False) -> float:
    """A length of time in seconds; `more_than_none` refuses 0."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise wrong_type(name, "a number of seconds", value)
    if not 0 <= value < math.inf or (more_than_none and not value):
        least = "more than 0" if more_than_none else "0 or more"
        raise WrongValue(f"{name} is {least} seconds, not {value}")
    return value


def one_of(name: str, value: Any, kind: type[T], right: str) -> T:
    """An object of a class; `right` says where the caller gets one."""
    if not isinstance(value, kind):
        raise wrong_type(name, right, value)
    return value
