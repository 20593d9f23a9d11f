"""The archive against Spark's own Parquet writer, on the same source in the same run.

What bounds it: decoding and zstd on two cores, and the disk that takes the files. Rows of the
archive never pass the JVM; those of Spark's writer do, one by one.
"""

import itertools
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.servers import Ours
from bench.stores import SERVED, TOPIC, make_store
from bench.workloads import Run
from gantrymq.base.clock import SystemClock
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.runtime.session import local_session

COUNT = 1_000_000
STREAM_ROWS = 200_000
TIMES = 2
"""Each is measured so often, and the best counts; the first also starts Spark's workers."""
BATCH_WANTED, STREAM_WANTED = 2.5, 1.5


def archive(run: Run) -> list[Row]:
    """1 KiB messages, all columns, zstd on both sides: from store files, and from their broker."""
    count = run.scaled(COUNT)
    settings = {"spark.driver.memory": "1g", "spark.sql.parquet.compression.codec": "zstd"}
    spark = local_session("bench", master="local[2]", settings=settings)
    cluster = Ours(profile=run.profile, settings=SERVED)
    try:
        make_store(cluster.store, count)
        stored = {"via": "store", "storePath": str(cluster.store), "topic": TOPIC}
        rows = _compared(spark, "via store", stored, count)
        with cluster:
            pulled = {"nameServer": cluster.namesrv, "topic": TOPIC}
            rows += _compared(spark, "via broker", pulled, count)
    finally:
        spark.stop()
    return rows


def _compared(spark: Any, name: str, source: Mapping[str, str], count: int) -> list[Row]:
    work = _Work(spark, source, count)
    peer, ours = _best(work.spark_batch, count), _best(work.archive_batch, count)
    peer_stream, ours_stream = (
        _best(work.spark_stream, count),
        _best(work.archive_stream, count),
    )
    kind = "spark-archive"
    return [
        Row(kind, f"{name}: Spark's writer, batch", peer, "1/s"),
        Row(kind, f"{name}: archive, batch", ours, "1/s"),
        Row(kind, f"{name}: batch against Spark's", ours / peer, "x", BATCH_WANTED),
        Row(kind, f"{name}: Spark's writer, stream", peer_stream, "1/s"),
        Row(kind, f"{name}: archive, stream", ours_stream, "1/s"),
        Row(kind, f"{name}: stream against Spark's", ours_stream / peer_stream, "x", STREAM_WANTED),
    ]


def _best(work: Callable[[Path], None], count: int) -> float:
    """Rows a second of the quickest of a few runs, each into a folder of its own."""
    best = 0.0
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as folder:
            began = time.perf_counter()
            work(Path(folder) / "t")
            best = max(best, count / (time.perf_counter() - began))
    return best


class _Work:
    """The same rows to Parquet, in four ways."""

    def __init__(self, spark: Any, source: Mapping[str, str], count: int) -> None:
        self._spark, self._source, self._count = spark, source, count
        self._number = itertools.count()

    def spark_batch(self, path: Path) -> None:
        table = self._spark.read.format("rocketmq").options(**self._source).load()
        table.write.parquet(str(path))

    def spark_stream(self, path: Path) -> None:
        table = self._spark.readStream.format("rocketmq").options(
            **self._source, startingOffsets="earliest", maxOffsetsPerTrigger=str(STREAM_ROWS)
        )
        query = (
            table.load().writeStream.format("parquet").option("path", str(path))
            .option("checkpointLocation", str(path.with_name("checkpoint")))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    def archive_batch(self, path: Path) -> None:
        self._archive(path, self._count)

    def archive_stream(self, path: Path) -> None:
        self._archive(path, STREAM_ROWS)

    def _archive(self, path: Path, rows_per_commit: int) -> None:
        job = ArchiveRequest(
            options=parse_source_options(self._source), rows_per_commit=rows_per_commit
        )
        table = open_table(path, "delta", create=True)
        totals = Archive(
            self._spark, table, job, run=f"b{next(self._number)}", clock=SystemClock()
        ).run()
        if totals.rows != self._count:
            raise AssertionError(f"{totals.rows} rows of {self._count}")
