"""Rows from store files against Spark's own Parquet, Arrow against tuples, and the audit.

What bounds them: rows from files by Spark, which turns Arrow batches into rows one by one and
cannot leave columns out; tuples by Python; the audit by the checksum and by memory.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench.rows import Row
from bench.stores import TOPIC, make_store
from bench.tuples import TupleSource
from bench.workloads import Run
from gantrymq.pipelines.audit import audit as audit_store
from gantrymq.spark.runtime.session import local_session

COUNT: Final = 1_000_000
FOUR: Final = "queueId,queueOffset,storeTimestamp,body"
STORE_WANTED, FOUR_WANTED, ALL_WANTED, AUDIT_WANTED = 0.6, 3.0, 5.0, 400.0
SETTINGS: Final = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Xshare:auto"}
"""Java as it is by default: with the quick compiler that our sessions choose, Spark's own readers
would be slower than they can be."""
TIMES: Final = 4
"""Each is measured so often, and the best counts: Java gets quicker as it goes."""


@contextmanager
def _spark_and_store(count: int) -> Iterator[tuple[Any, Path, int]]:
    folder = Path(tempfile.mkdtemp(prefix="gantrymq-bench-"))
    spark = local_session("bench", master="local[2]", settings=SETTINGS)
    try:
        yield spark, folder / "store", make_store(folder / "store", count)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _load(spark: Any, store: Path, columns: str | None, kind: str = "rocketmq") -> Any:
    options = {"via": "store", "storePath": str(store), "topic": TOPIC}
    if columns is not None:
        options["columns"] = columns
    return spark.read.format(kind).options(**options).load()


def _count(spark: Any, store: Path, columns: str | None, kind: str = "rocketmq") -> int:
    return int(_load(spark, store, columns, kind).count())


def _best(work: Callable[[], Any], count: int, times: int = TIMES) -> float:
    """Rows a second of the quickest run."""
    best = 0.0
    for _ in range(times):
        began = time.perf_counter()
        found = work()
        best = max(best, count / (time.perf_counter() - began))
        if found not in (None, count):
            raise AssertionError(f"{found} rows of {count}")
    return best


def _scan(frame: Any) -> None:
    """Read every column of every row, and let it go."""
    frame.write.format("noop").mode("overwrite").save()


def scan(run: Run) -> list[Row]:
    """Count with the body read, against a scan of the same rows in Parquet."""
    count, kind = run.scaled(COUNT), "spark-store"
    with _spark_and_store(count) as (spark, store, _):
        table = str(store.with_name("parquet"))
        _load(spark, store, None).write.parquet(table)
        parquet = _best(lambda: _scan(spark.read.parquet(table)), count)
        four = _best(partial(_count, spark, store, FOUR), count)
        every = _best(lambda: _scan(_load(spark, store, None)), count)
        bare = _best(partial(_count, spark, store, "queueId,queueOffset"), count)
    return [
        Row(kind, "Spark's Parquet, all columns", parquet, "1/s"),
        Row(kind, "store files, 4 columns with the body", four, "1/s"),
        Row(kind, "against Spark's Parquet", four / parquet, "x", STORE_WANTED),
        Row(kind, "store files, all columns", every, "1/s"),
        Row(kind, "store files, 2 columns without the body", bare, "1/s"),
    ]


def arrow(run: Run) -> list[Row]:
    """The same rows as Arrow batches and as tuples, one Python object a value."""
    count, kind = run.scaled(COUNT), "spark-arrow"
    with _spark_and_store(count) as (spark, store, _):
        cloudpickle: Any = import_module("pyspark.cloudpickle")  # it has no types
        cloudpickle.register_pickle_by_value(sys.modules[TupleSource.__module__])
        spark.dataSource.register(TupleSource)
        rows = []
        for name, columns, wanted in (("4", FOUR, FOUR_WANTED), ("all", None, ALL_WANTED)):
            tuples = _best(partial(_count, spark, store, columns, "tuples"), count, 2)
            batches = _best(partial(_count, spark, store, columns), count)
            rows += [
                Row(kind, f"tuples, {name} columns", tuples, "1/s"),
                Row(kind, f"Arrow, {name} columns", batches, "1/s"),
                Row(kind, f"Arrow against tuples, {name} columns", batches / tuples, "x", wanted),
            ]
    return rows


def audit(run: Run) -> list[Row]:
    """Checksums, chain, queues, index and times of a whole store."""
    with _spark_and_store(run.scaled(COUNT)) as (spark, store, size):
        found = [audit_store(spark, str(store)) for _ in range(TIMES)]
    assert all(each.is_good for each in found)
    best = size / min(each.seconds for each in found) / 1e6
    return [Row("spark-audit", "log checked, with checksums", best, "MB/s", AUDIT_WANTED)]
