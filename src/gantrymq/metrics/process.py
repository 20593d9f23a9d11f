"""Metrics of any server: its process, its event loop, its connections and requests."""

import asyncio
import os
import platform
import resource
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from gantrymq.base.histogram import Histogram
from gantrymq.kernel import GRADE
from gantrymq.metrics import table
from gantrymq.metrics.metric import Row, Samples, yes_no
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.remoting.admission import ServerAdmission

LOOK_SECONDS: Final = 0.1
LAG_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_STATUS: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = ("/proc/self/fd", "/dev/fd")
POLLING: Final = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION}
)


class LoopLag:
    """Looks ten times a second how late the event loop is; runs only where metrics are asked for.

    A turn that took long is seen by the timer that it delayed.
    """

    def __init__(self) -> None:
        self.histogram = Histogram(LAG_BOUNDS)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + LOOK_SECONDS
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self.histogram.observe(max(0.0, self._loop.time() - self._due))
        self._next()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class ProcessMetrics:
    """The process and its event loop."""

    def __init__(self, role: Callable[[], str], boot_ms: int) -> None:
        self._role, self._boot_ms = role, boot_ms
        self.loop_lag = LoopLag()

    async def collect(self) -> Samples:
        used = resource.getrusage(resource.RUSAGE_SELF)
        names = (release(), GRADE, platform.python_version(), self._role())
        yield table.INFO, [(names, 1)]
        yield table.START_TIME, [((), self._boot_ms / 1000)]
        yield table.RESIDENT, [((), resident_bytes())]
        yield table.OPEN_FILES, [((), open_descriptors())]
        yield table.OPEN_FILES_MAX, [((), resource.getrlimit(resource.RLIMIT_NOFILE)[0])]
        yield table.CPU_SECONDS, [((), used.ru_utime + used.ru_stime)]
        yield table.LOOP_LAG, [((), self.loop_lag.histogram.shown)]


class RequestMetrics:
    """What came over the ports of a server: connections, refusals, times of requests."""

    def __init__(self, admission: ServerAdmission) -> None:
        self._admission = admission

    async def collect(self) -> Samples:
        admission = self._admission
        yield table.CONNECTIONS, [((), admission.open_connections)]
        yield table.REFUSED, [((key,), n) for key, n in admission.refusals.counts.items()]
        rows: list[Row] = [
            (("remoting", _request(code), _response(answer), yes_no(code in POLLING), "success"),
             times.shown)
            for (code, answer), times in list(admission.times.items())
        ]  # fmt: skip
        yield table.RPC_LATENCY, rows


def _request(code: int) -> str:
    """The name of a request code, as RocketMQ's metrics write it."""
    try:
        return RequestCode(code).name.lower()
    except ValueError:
        return str(code)


def _response(code: int) -> str:
    try:
        return ResponseCode(code).name.lower()
    except ValueError:
        return str(code)


def release() -> str:
    """The installed release of this package."""
    try:
        return version("gantrymq")
    except PackageNotFoundError:
        return "unknown"


def resident_bytes() -> int:
    """The memory of this process; what it had at most, where the system tells nothing else."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_descriptors() -> int:
    """How many files and sockets this process has open; -1 where the system does not tell."""
    for folder in _DESCRIPTORS:
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return -1
