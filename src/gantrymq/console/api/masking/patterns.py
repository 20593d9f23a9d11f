"""Regular expressions that end in time linear to the text, whatever the two say.

Python's own can take exponential time, and bodies come from strangers. RE2 cannot; it has no
backward references and no looking around.
"""

from functools import lru_cache
from typing import Any, Final

from gantrymq.console.errors import BadInput

PATTERN_CHARACTERS_MAX: Final = 300
MEMORY_MAX: Final = 4 * 1024 * 1024
"""Of one compiled pattern."""
HINT: Final = "masking by regular expressions needs google-re2: pip install 'gantrymq[console]'"


class Pattern:
    """A compiled pattern, for text and for bytes."""

    def __init__(self, text: str) -> None:
        if len(text) > PATTERN_CHARACTERS_MAX:
            raise BadInput(f"a pattern has {PATTERN_CHARACTERS_MAX} characters at most")
        self._text, self._bytes = _compiled(text)

    def mask_text(self, text: str) -> tuple[str, int]:
        """Every match becomes stars, as many as it has characters."""
        found: tuple[str, int] = self._text.subn(_stars, text)
        return found

    def mask_bytes(self, data: bytes) -> tuple[bytes, int]:
        """The same for bytes that are no text; the length stays."""
        found: tuple[bytes, int] = self._bytes.subn(_star_bytes, data)
        return found


def _stars(match: Any) -> str:
    return "*" * len(match.group())


def _star_bytes(match: Any) -> bytes:
    return b"*" * len(match.group())


@lru_cache(maxsize=256)
def _compiled(text: str) -> tuple[Any, Any]:
    try:
        import re2
    except ImportError:
        raise BadInput(HINT) from None
    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False
    for_bytes = re2.Options()
    for_bytes.max_mem = MEMORY_MAX
    for_bytes.log_errors = False
    for_bytes.encoding = re2.Options.Encoding.LATIN1
    try:
        made = re2.compile(text, options), re2.compile(text.encode("latin-1", "ignore"), for_bytes)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise BadInput(f"{text!r} is no pattern: {why}") from None
    if made[0].search(""):
        raise BadInput(f"{text!r} matches the empty text, so it would match everywhere")
    return made
