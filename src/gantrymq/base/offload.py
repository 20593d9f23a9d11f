"""Blocking calls off the event loop, as a port: worker threads, or none in simulations."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Offload(Protocol):
    """Runs calls that may block."""

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call `fn` elsewhere; returns its result or raises its error."""


class ThreadOffload:
    """A few worker threads."""

    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="offload")

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, fn, *args)

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._pool.shutdown()


class InlineOffload:
    """No threads: the call runs on the loop, one turn later, so that simulations are repeatable."""

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        await asyncio.sleep(0)
        return fn(*args)
