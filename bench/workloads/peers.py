"""The same client program against our broker and RocketMQ's own."""

from collections.abc import Callable

from bench import programs
from bench.rows import Row
from bench.servers import Ours, real
from bench.workloads import Run

VERSION = "4.9.7"
WARM_UP = 20_000

Measure = Callable[[str, Run], float]


def _sync(size: int) -> Measure:
    def measure(namesrv: str, run: Run) -> float:
        return _produce(namesrv, f"bench-sync-{size}", size, run.scaled(100_000))

    return measure


def _async(namesrv: str, run: Run) -> float:
    return _produce(namesrv, "bench-async", 1024, run.scaled(200_000), "--async")


def _produce(namesrv: str, topic: str, size: int, count: int, *more: str) -> float:
    found = programs.gantry(
        "producer", "--namesrv", namesrv, "--topic", topic, "--size", size, "--count", count,
        "--threads", 64, *more,
    )  # fmt: skip
    return float(found["tps"])


def _backlog(namesrv: str, run: Run) -> float:
    """What `_async` left behind."""
    found = programs.gantry(
        "consumer", "--namesrv", namesrv, "--topic", "bench-async", "--count", run.scaled(200_000)
    )
    return float(found["tps"])


MEASURES: dict[str, Measure] = {
    "sync, 64 senders, 128 B": _sync(128),
    "sync, 64 senders, 1 KiB": _sync(1024),
    "async, 1 KiB": _async,
    "backlog consumed": _backlog,
}


def _all(namesrv: str, run: Run) -> dict[str, float]:
    """Java needs to warm up before it is fast, so both get the chance."""
    for size in (128, 1024):
        _produce(namesrv, "bench-warm", size, WARM_UP)
    _produce(namesrv, "bench-warm", 1024, WARM_UP, "--async")
    return {name: measure(namesrv, run) for name, measure in MEASURES.items()}


def peers(run: Run) -> list[Row]:
    with real(VERSION) as namesrv:
        theirs = _all(namesrv, run)
    with Ours(profile=run.profile) as cluster:
        ours = _all(cluster.namesrv, run)
    rows = []
    for name in MEASURES:
        rows += [
            Row("peers", f"{name}: GantryMQ", ours[name], "1/s"),
            Row("peers", f"{name}: RocketMQ {VERSION}", theirs[name], "1/s"),
            Row("peers", f"{name}: ratio", ours[name] / theirs[name], "x"),
        ]
    return rows
