"""Finds the translation of a sentence whose names and numbers differ each time."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

KEPT: Final = 4_096
"""Translations that are kept: pages show the same sentences again and again."""
CHARACTERS_MAX: Final = 600
"""Longer ones stay as they are: a server may say anything, and each name is a guess."""
_PART: Final = re.compile(r"\{(?P<name>\w+)(?::(?P<kind>[ds]))?\}|\[(?P<forms>[^\]]+)\]")


class _Pattern(NamedTuple):
    expression: re.Pattern[str]
    nested: frozenset[str]
    """Values that are sentences themselves."""
    translation: str


class SentenceTable:
    """Translations by English pattern; the first pattern that fits the whole sentence counts.

    `{name}` stands for any text, `{n:d}` for a number, `{why:s}` for a sentence that is translated
    in turn; `[s]` may be missing, and `[is|are]` is one of both. A translation names the values.
    Sentences with semicolons between are translated one by one, and so is what follows a name and
    a colon.
    """

    def __init__(self, *tables: Mapping[str, str]) -> None:
        self._patterns = [_compiled(*each) for table in tables for each in table.items()]
        self._find = lru_cache(KEPT)(self._translate)

    def __call__(self, sentence: str) -> str:
        """The translation, or the sentence itself if no pattern fits it."""
        return self._find(sentence) if len(sentence) <= CHARACTERS_MAX else sentence

    def __iter__(self) -> Iterator[re.Pattern[str]]:
        return (each.expression for each in self._patterns)

    def _translate(self, sentence: str) -> str:
        parts = sentence.split("; ")
        if len(parts) > 1:  # several sentences, before a name could take the others in
            each = [self._by_pattern(part) for part in parts]
            if None not in each:
                return "；".join(map(str, each))
        found = self._by_pattern(sentence)
        if found is not None:
            return found
        told = [self._part(part) for part in parts]
        return sentence if told == parts else "；".join(told)

    def _by_pattern(self, sentence: str) -> str | None:
        for expression, nested, translation in self._patterns:
            match = expression.fullmatch(sentence)
            if match is not None:
                values = match.groupdict()
                return translation.format_map(
                    {
                        name: self(value) if name in nested else value
                        for name, value in values.items()
                    }
                )
        return None

    def _part(self, sentence: str) -> str:
        name, _, said = sentence.partition(": ")
        if (found := self._by_pattern(sentence)) is not None:
            return found
        found = self._by_pattern(said)
        return sentence if found is None else f"{name}：{found}"


def _compiled(english: str, translation: str) -> _Pattern:
    at, parts, nested = 0, [], set()
    for part in _PART.finditer(english):
        parts.append(re.escape(english[at : part.start()]))
        at = part.end()
        name, kind, forms = part.group("name", "kind", "forms")
        if forms:
            parts.append(f"(?:{forms})" if "|" in forms else f"(?:{forms})?")
        else:
            parts.append(rf"(?P<{name}>[\d,]+)" if kind == "d" else f"(?P<{name}>.*?)")
            if kind == "s":
                nested.add(name)
    parts.append(re.escape(english[at:]))
    return _Pattern(re.compile("".join(parts), re.DOTALL), frozenset(nested), translation)
