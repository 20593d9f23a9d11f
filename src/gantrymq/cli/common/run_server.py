"""Runs a server as this process, until a signal ends it."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from gantrymq.base.errors import GantryError
from gantrymq.base.memory import keep_freed_memory
from gantrymq.cli.common.guard import describe, leaves_of

GC_THRESHOLD = 50_000
"""Requests leave few reference cycles, so the collector runs rarely."""

Main = Callable[[], Coroutine[Any, Any, None]]


def run_until_stopped(serve: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Run a server until SIGTERM, SIGINT, or until the supervisor that holds stdin ends."""

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, stop.set)
        if os.environ.get("GANTRY_SUPERVISED"):
            loop.add_reader(0, lambda: stop.set() if not os.read(0, 1) else None)
        await serve(stop)

    gc.set_threshold(GC_THRESHOLD, 20, 20)
    failures: list[BaseException] = []
    try:
        _run(main)
    except* (GantryError, OSError) as group:
        failures = leaves_of(group)
    for failure in failures:
        print(f"error: {describe(failure)}", file=sys.stderr)
    return 1 if failures else 0


def _run(main: Main) -> None:
    keep_freed_memory()
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
