"""How late what waited was delivered."""

from typing import Final

CLOCK_LOOK_SECONDS: Final = 10.0
"""How long a sleeper trusts the clock: a calendar may jump, and a laptop may sleep as well."""


class Lateness:
    """Delivery against due time, for one level or one kind of waiting messages."""

    __slots__ = ("count", "last_ms", "max_ms")

    def __init__(self) -> None:
        self.count = self.last_ms = self.max_ms = 0

    def note(self, now_ms: int, due_ms: int) -> None:
        """A message that was due at one time was delivered at another."""
        self.count += 1
        self.last_ms = max(0, now_ms - due_ms)
        self.max_ms = max(self.max_ms, self.last_ms)
