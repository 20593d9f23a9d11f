"""Time as a port: the calendar, and elapsed time where no event loop runs.

Code on an event loop measures elapsed time with `loop.time()`, so that tests in virtual time see
the same. Only this module asks the machine; ruff's TID251 refuses it elsewhere.
"""

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


def elapsed_seconds() -> float:
    """Seconds since some moment, on a clock that never jumps: for blocking code, as Spark's tasks.

    Only differences of two values have a meaning.
    """
    return time.monotonic()
