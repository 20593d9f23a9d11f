"""Clocks that tests set."""

import asyncio

from gantrymq.testing.clock import EPOCH_MS


class ShiftedClock:
    """A wall clock that follows the loop until somebody sets it."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + int(asyncio.get_running_loop().time() * 1000) + self.shift_ms
