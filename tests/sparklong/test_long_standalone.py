"""On a real cluster of two workers whose Python has no packages: what is bundled is enough."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sparkkit import Processes, bodies_of, numbered
from standalone import WORKERS, Standalone

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.pipelines.archive.run import Archive, Job
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.files import doubled
from gantrymq.spark import explain
from gantrymq.spark.rows import source_options
from gantrymq.spark.tasks import run_tasks

pytestmark = pytest.mark.timeout(240)

WAIT_SECONDS_MAX = 60.0


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


def test_an_executor_killed_in_a_batch_changes_nothing(
    far_spark: Any, standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Its tasks are run again elsewhere; each row comes once."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [2000, 2000])
    goes = tmp_path / "goes"

    def held(batches: Iterator[Any]) -> Iterator[Any]:
        """Give the first rows, then wait for the test."""
        for number, batch in enumerate(batches):
            if number == 0:
                (tmp_path / f"started-{os.getpid()}").touch()
                while not goes.exists():
                    time.sleep(0.02)
            yield batch

    table = load(far_spark, cluster, topic).select("body").mapInArrow(held, "body binary")
    until(lambda: len(standalone.executors()) == WORKERS)
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(table.collect)
        until(lambda: len(list(tmp_path.glob("started-*"))) == 2 or rows.done())
        (victim, *others) = standalone.executors()
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in standalone.executors())
        goes.touch()
        assert bodies_of(rows.result(WAIT_SECONDS_MAX)) == numbered([2000, 2000])
    assert others


def test_an_archive_on_a_cluster_outlives_an_executor(
    far_spark: Any, standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """It is killed between the first file and the last commit; the table has every row once."""
    cluster.create_topic(topic, queues=4)
    cluster.fill(topic, [2000] * 4)
    settings = {"nameServer": cluster.namesrv, "topic": topic}
    archive = Archive(
        far_spark, open_table(tmp_path / "table", "delta", create=True),
        Job(options=source_options(settings), rows_per_commit=2000),
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
