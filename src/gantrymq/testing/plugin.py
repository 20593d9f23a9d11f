"""The pytest plugin: `gantry`, a real cluster over TCP on a thread of its own, and `gantry_sim`.

Every run of pytest imports this module, so it loads the rest only when a fixture is used.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gantrymq.testing.cluster import Cluster
    from gantrymq.testing.threaded import GantryCluster


def __getattr__(name: str) -> Any:
    if name != "GantryCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gantrymq.testing.threaded import GantryCluster

    return GantryCluster


@pytest.fixture
def gantry() -> "Iterator[GantryCluster]":
    """A real name server and broker over TCP: `.namesrv`, `.clock.advance(s)`, `.create_topic`."""
    from gantrymq.testing.threaded import GantryCluster

    running = GantryCluster()
    yield running
    running.close()


@pytest.fixture
def gantry_sim() -> Callable[..., Any]:
    """Run `async def test(cluster)` against a cluster in memory, in virtual time."""
    from gantrymq.testing.cluster import Cluster
    from gantrymq.testing.loop import simulate

    def run(test: "Callable[[Cluster], Coroutine[Any, Any, Any]]", **options: Any) -> Any:
        async def work() -> Any:
            async with Cluster(memory=True, **options) as cluster:
                return await test(cluster)

        return simulate(work)

    return run
