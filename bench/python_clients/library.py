"""What is asked of a client library, the same of each.

Bodies have 1 KiB, every message is confirmed by the server, and a failure ends the program.
"""

import resource
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

SIZE = 1024
BODY = b"0123456789abcdef" * (SIZE // 16)
WINDOW = 512
"""Messages under way at once where sends do not wait for each other."""
TASKS = 64
"""Senders at once where each waits for the answer before it sends again."""
BATCH = 512
"""Messages that a consumer asks for at once, where it has a say in that."""
COMMIT_SECONDS = 5.0
"""How often progress is stored: our default, and that of Kafka's clients."""
GROUP = "bench"


class WrongMessage(Exception):
    """A message came that was not sent, or a server said no."""


class Stopwatch:
    """Time, and processor time of this process with all its threads."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self._began: float | None = None
        self._cpu_began = 0.0

    def start(self) -> None:
        """Begin; a second call changes nothing: a consumer may get its queues one by one."""
        if self._began is None:
            self._began, self._cpu_began = time.perf_counter(), own_cpu_seconds()

    def stop(self) -> None:
        assert self._began is not None
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = own_cpu_seconds() - self._cpu_began


def own_cpu_seconds() -> float:
    """Processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Commits:
    """When it is time to store the progress."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due = time.perf_counter() + seconds

    def due(self) -> bool:
        now = time.perf_counter()
        if now < self._due:
            return False
        self._due = now + self._seconds
        return True


@dataclass(frozen=True)
class Target:
    """Where the messages of one run go."""

    address: str
    topic: str
    """New for every run; what a library needs before the first send, `open` makes."""


class Library(ABC):
    """A client library with a connection. A work that it is not compared in raises."""

    def __init__(self, target: Target, options: dict[str, str]) -> None:
        self.target, self.topic, self.options = target, target.topic, options

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the topic if sending does not."""

    @abstractmethod
    async def close(self) -> None:
        """Give up the connection."""

    @abstractmethod
    async def send_pipelined(self, count: int) -> None:
        """Send, up to WINDOW messages under way; returns when all are confirmed."""

    async def send_from_tasks(self, count: int) -> None:
        """Send from TASKS tasks, each with one message under way."""
        raise NotImplementedError

    async def consume(self, count: int, watch: Stopwatch) -> None:
        """Take what lies there and acknowledge it.

        `watch` runs from when the consumer holds its queues, before it has asked for messages,
        until the last acknowledgement has left, or is stored where the library waits for that.
        """
        raise NotImplementedError

    def check(self, body: bytes) -> None:
        """What every consumer does with every message."""
        if len(body) != SIZE:
            raise WrongMessage(f"{len(body)} bytes in place of {SIZE}")
