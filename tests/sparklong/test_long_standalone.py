"""On a real cluster of two workers whose Python has no packages: what is bundled is enough."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sparkkit import Processes, bodies_of, numbered
from standalone import WORKERS, Standalone

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.files import doubled
from gantrymq.spark import explain
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.runtime.tasks import run_tasks

pytestmark = pytest.mark.timeout(240)

WAIT_SECONDS_MAX = 60.0

T = TypeVar("T")


def load(spark: Any, cluster: Processes, topic: str) -> Any:
    options = {"nameServer": cluster.namesrv, "topic": topic}
    return spark.read.format("rocketmq").options(**options).load()


def until(holds: Callable[[], object]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def test_tasks_run_on_both_workers_with_the_bundle_alone(
    far_spark: Any, standalone: Standalone
) -> None:
    """The package they import is the one that was sent, in a Python that has no other."""

    def look(task: int) -> Iterator[Any]:
        import sys

        import pyarrow as pa

        import gantrymq

        time.sleep(1)  # long enough that one worker does not do both
        yield pa.RecordBatch.from_pylist(
            [{"python": sys.prefix, "package": gantrymq.__file__, "executor": os.getppid()}]
        )

    found = run_tasks(
        far_spark, [0, 1], look, "python string, package string, executor bigint"
    ).collect()

    assert {row.python for row in found} == {str(standalone.python.parent.parent)}
    assert all("gantrymq-bundle" in row.package for row in found)
    assert len(standalone.executors()) == len({row.executor for row in found}) == WORKERS


def test_a_topic_is_read_by_executors(far_spark: Any, cluster: Processes, topic: str) -> None:
    """Every row once, through the wire from the executors."""
    cluster.create_topic(topic, queues=4)
    cluster.fill(topic, [300, 200, 0, 100])
    assert bodies_of(load(far_spark, cluster, topic).collect()) == numbered([300, 200, 0, 100])


def test_an_executors_error_is_one_line(far_spark: Any) -> None:
    """Four attempts and two machines away, it is what the worker said."""

    def refuse(task: int) -> Iterator[Any]:
        raise GantryError(f"task {task} cannot: do this")
        yield

    with pytest.raises(Exception) as refused:
        run_tasks(far_spark, [1], refuse, "a int").collect()
    assert explain(refused.value) == "task 1 cannot: do this"


def held(folder: Path, at: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step of a query that gives its first batches, then waits for the test."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == at:
                (folder / f"started-{os.getpid()}").touch()
                while not (folder / "goes").exists():
                    time.sleep(0.02)
            yield batch

    return step


def with_a_loss(standalone: Standalone, folder: Path, query: Callable[[], T]) -> T:
    """Run a query with `held` in it, and kill an executor while both hold."""
    until(lambda: len(standalone.executors()) == WORKERS)

    def kill() -> None:
        until(lambda: len(list(folder.glob("started-*"))) == WORKERS)
        (victim, *_) = standalone.executors()
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in standalone.executors())
        (folder / "goes").touch()

    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill)
        result = query()
        killed.result(WAIT_SECONDS_MAX)
    return result


def test_an_executor_killed_in_a_batch_changes_nothing(
    far_spark: Any, standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Its tasks are run again elsewhere; each row comes once."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [2000, 2000])
    bodies = load(far_spark, cluster, topic).select("body")
    table = bodies.mapInArrow(held(tmp_path, at=0), "body binary")
    assert bodies_of(with_a_loss(standalone, tmp_path, table.collect)) == numbered([2000, 2000])


def test_an_executor_killed_while_it_writes_doubles_nothing(
    far_spark: Any, standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """What it had staged is never published; the task that runs again stages all of it anew."""
    cluster.create_topic(topic, queues=2)
    far_spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    numbers = far_spark.range(0, 4000, 1, WORKERS).selectExpr("concat('0:', id) as body")
    rows = numbers.mapInArrow(held(tmp_path, at=3), "body string")
    options = {"nameServer": cluster.namesrv, "topic": topic, "sendBatchBytes": "4k"}
    writer = rows.write.format("rocketmq").options(delivery="exactly-once", **options)

    with_a_loss(standalone, tmp_path, writer.mode("append").save)

    assert bodies_of(load(far_spark, cluster, topic).collect()) == numbered([4000])


def test_an_archive_on_a_cluster_outlives_an_executor(
    far_spark: Any, standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """It is killed between the first file and the last commit; the table has every row once."""
    cluster.create_topic(topic, queues=4)
    cluster.fill(topic, [2000] * 4)
    settings = {"nameServer": cluster.namesrv, "topic": topic}
    archive = Archive(
        far_spark, open_table(tmp_path / "table", "delta", create=True),
        ArchiveRequest(options=parse_source_options(settings), rows_per_commit=2000),
        run="one", clock=SystemClock(),
    )  # fmt: skip
    until(lambda: len(standalone.executors()) == WORKERS)
    with ThreadPoolExecutor(1) as pool:
        totals = pool.submit(archive.run)
        until(lambda: list((tmp_path / "table").rglob("*.parquet")) or totals.done())
        os.kill(standalone.executors()[-1], signal.SIGKILL)
        assert totals.result(WAIT_SECONDS_MAX).rows == 8000

    table = open_table(tmp_path / "table")
    assert doubled(table.files()) == []
    assert bodies_of(table.frame(far_spark).select("body").collect()) == numbered([2000] * 4)
