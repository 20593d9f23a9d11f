"""Group commit: senders that wait for the disk share its syncs."""

import asyncio
import contextlib
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.rows import Row
from bench.workloads import Run
from gantrymq.base.disk import File, OsDisk
from gantrymq.cli.load import Load, SendLoad, run_fast
from gantrymq.store.log.syncer import Done, InlineSyncer, Syncer, best_syncer
from gantrymq.testing.cluster import Cluster

TOPIC = "flushed"
SYNC_SECONDS = 0.005
SENDERS = 64


class Counting:
    """Counts the syncs of another syncer."""

    def __init__(self, inner: Syncer) -> None:
        self._inner = inner
        self.count = 0

    def sync(self, files: Sequence[File], done: Done) -> None:
        self.count += 1
        self._inner.sync(files, done)

    def close(self) -> None:
        self._inner.close()


async def _flushed(syncer: Syncer, senders: int, count: int) -> float:
    async with Cluster(syncer=syncer, flush_disk_type="SYNC_FLUSH") as cluster:
        await cluster.create_topic(TOPIC)
        load = Load(
            namesrv=cluster.namesrv,
            topic=TOPIC,
            group="bench",
            count=count,
            size=1024,
            threads=senders,
        )
        run = SendLoad(load)
        row = await run.waiting()
        assert not row["failed"], row
        return float(row["tps"])


def group_commit(run: Run) -> list[Row]:
    """64 senders against one, with a sync that takes 5 ms."""
    alone = run_fast(_flushed(InlineSyncer(SYNC_SECONDS), 1, run.scaled(1_000)))
    many = run_fast(_flushed(InlineSyncer(SYNC_SECONDS), SENDERS, run.scaled(40_000)))
    return [
        Row("group-commit", "one sender", alone, "1/s"),
        Row("group-commit", f"{SENDERS} senders", many, "1/s"),
        Row("group-commit", "gain", many / alone, "x", 20),
    ]


def real_disk(run: Run) -> list[Row]:
    """64 senders on this machine's disk, with the syncer a broker uses."""
    count = run.scaled(50_000)

    async def work() -> tuple[float, int]:
        syncer = Counting(best_syncer())
        try:
            tps = await _flushed(syncer, SENDERS, count)
        finally:
            syncer.close()
        return tps, syncer.count

    tps, syncs = run_fast(work())
    return [
        Row("real-disk", f"{SENDERS} senders", tps, "1/s"),
        Row("real-disk", "messages a sync", count / syncs, ""),
        Row("real-disk", "syncs", tps / (count / syncs), "1/s"),
    ]


def under_load(run: Run) -> list[Row]:
    """Syncs a second while the event loop never rests."""
    seconds = 1.0 if run.quick else 5.0
    rate, worst = run_fast(_sync_under_load(seconds))
    return [
        Row("sync-under-load", "commits", rate, "1/s"),
        Row("sync-under-load", "slowest commit", worst * 1000, "ms"),
    ]


async def _sync_under_load(seconds: float) -> tuple[float, float]:
    loop = asyncio.get_running_loop()
    syncer = best_syncer()
    times: list[float] = []
    over = asyncio.Event()
    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as directory:
        file = OsDisk().open(str(Path(directory) / "file"), create=True)
        file.allocate(1 << 20)

        def again(error: OSError | None) -> None:
            assert error is None, error
            times.append(time.perf_counter())
            if times[-1] - times[0] > seconds:
                over.set()
            else:
                file.pwrite(b"x" * 4096, 4096 * (len(times) % 256))
                syncer.sync([file], again)

        def busy() -> None:
            sum(range(20_000))
            if not over.is_set():
                loop.call_soon(busy)

        busy()
        again(None)
        await over.wait()
        file.close()
    with contextlib.suppress(OSError):
        syncer.close()
    gaps = [after - before for before, after in itertools.pairwise(times)]
    return len(gaps) / (times[-1] - times[0]), max(gaps)
