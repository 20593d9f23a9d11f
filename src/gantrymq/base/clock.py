"""Time as a port: the calendar, and elapsed time where no event loop runs.

Code on an event loop measures elapsed time with `loop.time()`, so that tests in virtual time see
the same. Only this module asks the machine; ruff's TID251 refuses it elsewhere.
"""

import time
from typing import Protocol


class WallClock(Protocol):
    """The calendar time. It may jump, so durations are never measured with it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def elapsed_seconds() -> float:
    """Seconds on a clock that never jumps, for blocking code such as Spark's tasks.

    Only the difference of two values has a meaning.
    """
    return time.monotonic()
