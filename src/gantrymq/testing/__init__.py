"""A real name server and broker inside your tests, with a clock that can be moved.

    from gantrymq.testing import Cluster

    async with Cluster() as cluster:                  # real TCP on 127.0.0.1
        async with cluster.producer("g") as producer:
            await producer.send(Message("orders", b"hello"))

`simulate` runs the same thing in virtual time on a network and disks in memory: no ports, no
sleeps, and a seed repeats the run. The pytest plugin offers both as `gantry` and `gantry_sim`.
A `Timeline` notes what happened, and `gantrymq.testing.invariants` has what must always hold.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gantrymq.testing.clock import MovableClock
    from gantrymq.testing.cluster import Cluster
    from gantrymq.testing.disk import MemoryDisk
    from gantrymq.testing.loop import VirtualLoop, simulate
    from gantrymq.testing.network import MemoryNetwork
    from gantrymq.testing.threaded import GantryCluster
    from gantrymq.testing.timeline import Timeline

__all__ = [
    "Cluster",
    "GantryCluster",
    "MemoryDisk",
    "MemoryNetwork",
    "MovableClock",
    "Timeline",
    "VirtualLoop",
    "simulate",
]

_HOMES = {
    "Cluster": "cluster",
    "GantryCluster": "threaded",
    "MemoryDisk": "disk",
    "MemoryNetwork": "network",
    "MovableClock": "clock",
    "Timeline": "timeline",
    "VirtualLoop": "loop",
    "simulate": "loop",
}


def __getattr__(name: str) -> Any:
    """Load names on first use, because every pytest run imports this package for its plugin."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
