"""Whether a regular expression is quick for every short text.

Python's `re` tries every way in which repetitions can share a text. Nested ones, such as `(a+)+`,
have so many that a name of 40 letters takes years, and nothing can stop it.
"""

from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final

REPEATS_MAX: Final = 4
"""With n of them a name of 127 characters takes 127 ** n / n! steps at most."""
ENDLESS: Final = 16
"""A repetition that may go on longer than this counts as one without an end."""
_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)


def is_quick(pattern: str) -> bool:
    """Whether no repetition without an end has another one, or alternatives, in itself."""
    repeats = list(_endless(_parser.parse(pattern)))
    return len(repeats) <= REPEATS_MAX and not any(_has_choice(inner) for inner in repeats)


def _endless(parsed: Any) -> Iterator[Any]:
    """What is repeated without an end, at any depth."""
    for operation, argument in parsed:
        if operation in _REPEATS and argument[1] > ENDLESS:
            yield argument[2]
        for inner in _inside(argument):
            yield from _endless(inner)


def _has_choice(parsed: Any) -> bool:
    for operation, argument in parsed:
        if operation is _constants.BRANCH or (operation in _REPEATS and argument[0] != argument[1]):
            return True
        if any(_has_choice(inner) for inner in _inside(argument)):
            return True
    return False


def _inside(argument: Any) -> Iterator[Any]:
    """The parts of a pattern that another part consists of."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for each in argument:
            yield from _inside(each)
