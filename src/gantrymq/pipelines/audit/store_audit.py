"""An audit on Spark: the store's own checks, run by workers."""

from collections.abc import Iterator, Sequence
from typing import Any

from gantrymq.base.errors import GantryError
from gantrymq.pipelines.audit.rows import SCHEMA, batch_of, from_rows
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.spark.runtime.tasks import run_tasks
from gantrymq.store.audit.findings import Finding
from gantrymq.store.audit.scope import Scope, Task
from gantrymq.store.audit.task import audit_task
from gantrymq.store.audit.whole import Audit, audit_by
from gantrymq.store.errors import StoreError


def audit(spark: Any, directory: str, progress: RunProgress | None = None) -> Audit:
    """Check a store on Spark's workers, which must see its directory."""
    shown = _Shown(progress or Silent())

    def on_spark(scope: Scope, tasks: Sequence[Task]) -> list[Finding]:
        frame = run_tasks(spark, tasks, lambda task: on_worker(scope, task), SCHEMA)
        return from_rows(frame.collect())

    found = audit_by(on_spark, directory, tell=shown.tell)
    shown.progress.done()
    return found


def on_worker(scope: Scope, task: Task) -> Iterator[Any]:
    """What a task finds, as one Arrow batch."""
    try:
        yield batch_of(audit_task(scope, task))
    except StoreError as error:
        raise GantryError(
            f"{scope.directory} cannot be seen from where Spark's executors run: audit it on its "
            f"own machine, or where it is mounted ({error})"
        ) from error


class _Shown:
    """Shows how many parts are done."""

    def __init__(self, progress: RunProgress) -> None:
        self.progress, self._done = progress, 0
        self._begun = False

    def tell(self, done: int, total: int) -> None:
        if not self._begun:
            self.progress.start(total, "parts of the store")
            self._begun = True
        self.progress.advance(done - self._done)
        self._done = done
