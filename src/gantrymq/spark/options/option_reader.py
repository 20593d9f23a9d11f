"""The options that a user gave, read one by one. Pure.

Spark hands options over with lower-case names and values of text. An unknown option is an
error: a misspelt `startingOffsets` must not read the wrong half of a topic.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from gantrymq.base.errors import ConfigError
from gantrymq.spark.options import values
from gantrymq.spark.options.option_table import OPTIONS, canonical

T = TypeVar("T")


class OptionReader:
    """Reads options by their names; each is read where it is needed."""

    def __init__(self, options: Mapping[str, str], *, streaming: bool) -> None:
        self._given = canonical(options)
        for option in OPTIONS:
            if option.use == ("read" if streaming else "readStream") and self.has(option.name):
                raise ConfigError(f"{option.name} is an option of {option.use}")

    @property
    def given(self) -> Mapping[str, str]:
        """All of them, by their proper names."""
        return self._given

    def has(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str) -> str | None:
        return self._given.get(name)

    def text(self, name: str, default: str) -> str:
        return self._given.get(name, default)

    def maybe(self, name: str, read: Callable[[str, str], T]) -> T | None:
        text = self._given.get(name)
        return None if text is None else read(text, name)

    def choice(self, name: str, *choices: str, default: str | None = None) -> str:
        """One of some words; the first is the default unless another is."""
        return values.choice(self._given.get(name, default or choices[0]), name, choices)

    def flag(self, name: str, *, default: bool) -> bool:
        return values.flag(self._given.get(name, str(default)), name)

    def limits(self, what: str) -> tuple[int | None, int | None]:
        """The least and the most of something, `min...` and `max...`."""
        least, most = (self.maybe(f"{word}{what}", values.count) for word in ("min", "max"))
        if least is not None and most is not None and least > most:
            raise ConfigError(f"min{what} {least} is more than max{what} {most}")
        return least, most

    def one_of(self, *names: str) -> str | None:
        """Which of some options that exclude each other was given; None if none was."""
        found = [name for name in names if self.has(name)]
        if len(found) > 1:
            raise ConfigError(f"give {' or '.join(found)}, not both")
        return found[0] if found else None
