"""The pytest plugin: `gantry`, a real cluster over TCP on a thread of its own, and `gantry_sim`."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

START_SECONDS_MAX = 30.0


class GantryCluster:
    """A running cluster, usable from sync and async tests alike."""

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

    def _run(self) -> None:
        from gantrymq.testing.clock import MovableClock
        from gantrymq.testing.cluster import Cluster
        from gantrymq.testing.loop import MovableLoop

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            self.clock = MovableClock(self._loop)
            """`clock.advance(seconds)` returns when all due work is done."""
            async with Cluster(clock=self.clock, **self._options) as cluster:
                self.cluster = cluster
                self.namesrv = cluster.namesrv
                self._ready.set()
                await self._stop.wait()

        try:
            with asyncio.Runner(loop_factory=MovableLoop) as runner:
                runner.run(serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    def call(self, work: Coroutine[Any, Any, Any], timeout: float = 30.0) -> Any:
        """Run a coroutine on the cluster's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def create_topic(self, name: str, queues: int = 4) -> None:
        self.call(self.cluster.create_topic(name, queues))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure


@pytest.fixture
def gantry() -> Iterator[GantryCluster]:
    """A real name server and broker over TCP: `.namesrv`, `.clock.advance(s)`, `.create_topic`."""
    running = GantryCluster()
    yield running
    running.close()


@pytest.fixture
def gantry_sim() -> Callable[..., Any]:
    """Run `async def test(cluster)` against a cluster in memory, in virtual time."""
    from gantrymq.testing.cluster import Cluster
    from gantrymq.testing.loop import simulate

    def run(test: Callable[[Cluster], Coroutine[Any, Any, Any]], **options: Any) -> Any:
        async def work() -> Any:
            async with Cluster(memory=True, **options) as cluster:
                return await test(cluster)

        return simulate(work)

    return run
