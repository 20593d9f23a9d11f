"""One task of an audit, as this process or a Spark worker runs it."""

import gc
from collections.abc import Iterator
from typing import Final

from gantrymq.kernel import Walked
from gantrymq.store.audit.against_index import check_index
from gantrymq.store.audit.against_log import EntriesOf, KeysOf, block_of, check_times
from gantrymq.store.audit.against_queues import check_queue
from gantrymq.store.audit.findings import Finding, TaskFindings
from gantrymq.store.audit.scope import IndexPart, LogSlice, QueueSet, Scope, Task
from gantrymq.store.audit.walk import records_of
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import index_files

BLOCK_RECORDS: Final = 16_384
"""Records that are held against queues and index together."""


def audit_task(scope: Scope, task: Task) -> list[Finding]:
    """What a task finds."""
    ledger = TaskFindings()
    folder = StoreFolder(scope.directory, scope.log_directory)
    gc.disable()  # many short-lived tuples without cycles
    try:
        if isinstance(task, LogSlice):
            _check_log(folder, scope, task, ledger)
        elif isinstance(task, QueueSet):
            for topic, queue_id in task.queues:
                check_queue(folder, scope, topic, queue_id, ledger)
        else:
            _check_index(scope, task, ledger)
    finally:
        gc.enable()
        folder.close()
    return ledger.all()


def _check_log(folder: StoreFolder, scope: Scope, part: LogSlice, ledger: TaskFindings) -> None:
    entries = EntriesOf(folder, ledger)
    keys = KeysOf(index_files(scope.directory), ledger, is_clean=scope.is_clean)
    path = folder.log.path(folder.log.base_of(part.start))
    low, before_ms = part.start, 0
    for records in _blocks(records_of(folder.log, part, ledger)):
        block = block_of(records)
        end = records[-1][3] + records[-1][4]
        ledger.cover("log bytes", int(block.sizes.sum()))
        ledger.cover("records", len(records))
        check_times(block, path, ledger, before_ms)
        before_ms = int(block.times[-1])
        entries.check(block)
        keys.check(block, low, end)
        low = end


def _blocks(parts: Iterator[list[Walked]]) -> Iterator[list[Walked]]:
    """Small lists joined to larger ones."""
    block: list[Walked] = []
    for part in parts:
        block += part
        if len(block) >= BLOCK_RECORDS:
            yield block
            block = []
    if block:
        yield block


def _check_index(scope: Scope, part: IndexPart, ledger: TaskFindings) -> None:
    views = index_files(scope.directory)
    if part.number < len(views):
        is_last = part.number == len(views) - 1
        check_index(views[part.number], ledger, slots_too=scope.is_clean or not is_last)
