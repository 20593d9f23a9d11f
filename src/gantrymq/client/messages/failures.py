"""Why a message failed, short enough for its properties; groups dead letters by cause."""

import hashlib
import re
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple

from gantrymq.protocol import properties

TEXT_CHARS_MAX: Final = 500
NAME_CHARS_MAX: Final = 200
FINGERPRINT_BYTES: Final = 6
FRAMES_MAX: Final = 50
"""Innermost places that count: an endless recursion has no better fingerprint than that."""

_OWN = (
    "gantrymq.client.consume.handling.workers",
    "gantrymq.client.once.",
    "gantrymq.sync.",
    "concurrent.futures.",
)
"""Frames of whoever called the handler say nothing about the failure."""
_VALUES: Final = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|(?<![\w.-])[\w.-]*\d[\w.-]*""")
"""What differs between reasons of the same kind: words with digits, and what stands in quotes."""
_SEPARATORS = str.maketrans({properties.NAME_END: " ", properties.ENTRY_END: " ", "\0": " "})


class Failure(NamedTuple):
    """What is known of one failure; unknown fields are empty."""

    error: str = ""
    """The exception's type."""
    text: str = ""
    """The exception's message, cut."""
    fingerprint: str = ""
    """The same for the same kind of exception from the same code, whatever the message; of a
    reason, the same whatever its numbers and what it quotes.
    """
    reason: str = ""
    """What the handler said when it gave up: `retry(reason=...)`, `dead(reason=...)`."""

    def properties(self) -> dict[str, str]:
        """The failure as properties of the message."""
        return {name: value for name, value in zip(properties.FAILURE, self, strict=True) if value}


def failure_of(error: BaseException) -> Failure:
    """The failure that describes an exception."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)
    try:
        text = str(error)
    except Exception as broken:
        text = f"(its message cannot be made: {type(broken).__name__})"
    return Failure(
        _cut(name, NAME_CHARS_MAX),
        _cut(text, TEXT_CHARS_MAX),
        _fingerprint(name, error.__traceback__),
    )


def because(reason: str | None) -> Failure | None:
    """A failure with a reason and its fingerprint; None without one."""
    if not reason:
        return None
    text = _cut(reason, TEXT_CHARS_MAX)
    return Failure(fingerprint=_digest(_VALUES.sub("#", text)), reason=text)


def failure_in(found: Mapping[str, str]) -> Failure | None:
    """The last failure of a retried message or dead letter, from its properties."""
    known = Failure(*(found.get(name, "") for name in properties.FAILURE))
    return known if any(known) else None


def _full_name(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _fingerprint(name: str, trace: TracebackType | None) -> str:
    """A hash of functions, not of lines, so that it survives edits of the file."""
    places = [
        f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}"
        for frame, _ in traceback.walk_tb(trace)
    ]
    mine = [place for place in places if not place.startswith(_OWN)][-FRAMES_MAX:]
    # The depth of a recursion does not matter either.
    steps = [place for at, place in enumerate(mine) if not at or mine[at - 1] != place]
    return _digest("\n".join([name, *steps]))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).hexdigest()


def _cut(text: str, chars_max: int) -> str:
    plain = text.translate(_SEPARATORS).encode("utf-8", "replace").decode()
    return plain if len(plain) <= chars_max else f"{plain[: chars_max - 1]}…"
