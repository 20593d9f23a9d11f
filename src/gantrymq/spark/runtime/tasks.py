"""Python work on Spark's executors: a list of tasks, a function, rows that come back.

For jobs that read and write by themselves (archive, audit): only what they report crosses to the
JVM. It works on a classic session and through Spark Connect alike.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from gantrymq.spark.explain import one_line_errors, unread_quietly

T = TypeVar("T")


def run_tasks(
    spark: Any, tasks: Sequence[T], work: Callable[[T], Iterator[Any]], schema: str
) -> Any:
    """A frame of what `work` yields (`pyarrow.RecordBatch`es of `schema`) for each task.

    Each task is a Spark task of its own, and is run again where an executor is lost: `work` must
    allow that. Nothing runs before the frame is used, and every use runs it again.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        unread_quietly()
        with one_line_errors():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from work(tasks[number])

    count = len(tasks)
    return spark.range(0, count, 1, max(1, count)).mapInArrow(run, schema)
