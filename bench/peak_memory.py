"""The most memory that a server had while something ran."""

import threading
from collections.abc import Callable
from typing import Self

EVERY_SECONDS = 0.25


class PeakMemory:
    """Asks for a figure again and again, and keeps the largest."""

    def __init__(self, memory_mib: Callable[[], float]) -> None:
        self._memory_mib = memory_mib
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.mib = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.mib = max(self.mib, self._memory_mib())

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self.mib = max(self.mib, self._memory_mib())
