"""How late waiting messages were delivered."""

from typing import Final

CLOCK_LOOK_SECONDS: Final = 10.0
"""How long a sleeper trusts the clock: a calendar may jump, and a laptop may sleep as well."""


class Lateness:
    """Count and lateness of deliveries, for one delay level or for the timer."""

    __slots__ = ("count", "last_ms", "max_ms")

    def __init__(self) -> None:
        self.count = self.last_ms = self.max_ms = 0

    def note(self, now_ms: int, due_ms: int) -> None:
        """Count a message that was due at `due_ms` and delivered at `now_ms`."""
        self.count += 1
        self.last_ms = max(0, now_ms - due_ms)
        self.max_ms = max(self.max_ms, self.last_ms)
