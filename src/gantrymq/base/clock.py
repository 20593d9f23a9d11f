"""Wall-clock time as a port. Elapsed time is the event loop's own."""

import time
from typing import Protocol


class WallClock(Protocol):
    """What the calendar says. It may jump; nothing measures a duration with it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
