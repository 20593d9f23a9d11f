"""What a broker pays for a message, measured with frames that were made in advance."""

from typing import NamedTuple

from bench import programs
from bench.servers import Ours

WARM_UP = 20_000


class SendCost(NamedTuple):
    """One round of sends."""

    us: float
    """Microseconds of the broker's processor time for a message."""
    tps: float


def measure_sends(cluster: Ours, count: int, *how: str) -> SendCost:
    """Send `count` messages as `bench.load` is told, after some that do not count."""
    programs.load(cluster.broker, *how, "--count", WARM_UP)
    before = cluster.cpu_seconds()
    found = programs.load(cluster.broker, *how, "--count", count)
    return SendCost((cluster.cpu_seconds() - before) / found["count"] * 1e6, found["tps"])
