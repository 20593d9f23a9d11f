"""A cluster on a thread of its own, for tests that are written with or without `async`."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from gantrymq.testing.clock import MovableClock
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import MovableLoop

START_SECONDS_MAX = 30.0

T = TypeVar("T")


class GantryCluster:
    """A running cluster over TCP; the pytest fixture `gantry` is one."""

    clock: MovableClock
    """`clock.advance(seconds)` moves its time, and returns when all due work is done."""
    cluster: Cluster
    """The servers; they belong to another thread's event loop: use `call`."""
    namesrv: str
    """The name servers' addresses, as every client takes them."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gantry", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS_MAX):
            raise TimeoutError("the cluster did not start in time")
        if self._failure is not None:
            raise self._failure

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.clock = MovableClock(self._loop)
        async with Cluster(clock=self.clock, **self._options) as cluster:
            self.cluster = cluster
            self.namesrv = cluster.namesrv
            self._ready.set()
            await self._stop.wait()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=MovableLoop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    def call(self, work: Coroutine[Any, Any, T], timeout: float = 30.0) -> T:
        """Run a coroutine on the cluster's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def create_topic(self, name: str, queues: int = 4) -> None:
        """Create a topic on every broker; the name servers know it when this returns."""
        self.call(self.cluster.create_topic(name, queues))

    def close(self) -> None:
        """Stop the servers; raises an error that occurred in them."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure
