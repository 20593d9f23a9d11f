"""Queue entries from records: the pure twin."""

from collections.abc import Sequence

from gantrymq.kernel.records import ENTRY, Walked
from gantrymq.protocol.record import (
    TRANSACTION_MASK,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)

EntryRun = tuple[bytes, int, int, int, int, bytes]
"""Topic, queue id, first queue offset, numbers of the first record and of the one behind the last,
their queue entries."""


def entry_runs(records: Sequence[Walked]) -> list[EntryRun]:
    """Queue entries of neighbouring records that follow each other in one queue, run by run.

    Records that belong to no queue are left out: half messages, and rollbacks.
    """
    runs: list[EntryRun] = []
    at = 0
    while at < len(records):
        start, at = at, at + 1
        topic, queue_id, queue_offset = records[start][:3]
        if _in_no_queue(records[start]):
            continue
        while at < len(records) and not _in_no_queue(records[at]):
            if records[at][:3] != (topic, queue_id, queue_offset + at - start):
                break
            at += 1
        entries = b"".join(ENTRY.pack(each[3], each[4], each[6]) for each in records[start:at])
        runs.append((topic, queue_id, queue_offset, start, at, entries))
    return runs


def _in_no_queue(record: Walked) -> bool:
    return record[5] & TRANSACTION_MASK in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)
