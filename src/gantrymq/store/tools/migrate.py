"""Makes an ordinary store of one whose log is DLedger's.

Entries of DLedger have 48 bytes before each record, so records move, and get new log offsets.
Queue offsets stay: progress of groups and delayed messages stay what they are. Message ids that
are log offsets change; ids that producers give do not. Queues, index and checkpoint are derived
from the new log. The folder gets its name when it is whole: a run that was killed is run again.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk, delete_tree
from gantrymq.base.offload import ThreadOffload
from gantrymq.protocol.record import AT_PHYSICAL_OFFSET, BLANK_BYTES
from gantrymq.store.audit.against_tables import BACKUP, TABLES
from gantrymq.store.audit.survey import good_records
from gantrymq.store.config import StoreConfig
from gantrymq.store.errors import StoreError
from gantrymq.store.files.index_files import ENTRIES_A_SLOT, JAVA_SLOTS, index_files
from gantrymq.store.files.mapped import MappedLog
from gantrymq.store.index.index_file import ENTRY_BYTES, SLOT_BYTES
from gantrymq.store.index.index_file import HEADER as INDEX_HEADER
from gantrymq.store.log.segment import file_name
from gantrymq.store.recovery.rebuild import Rebuilt, rebuild_settled
from gantrymq.store.tools.dledger import NO_MESSAGE, BadEntry, DLedgerFolder
from gantrymq.store.tools.filler import end_mark
from gantrymq.store.tools.snapshot import check_empty, copy_data

PARTIAL: Final = ".migrating"


@dataclass
class MigrationPlan:
    """What would be taken over."""

    records: int = 0
    bytes: int = 0
    last_index: int = -1
    """The last entry that is taken over."""
    behind: int = 0
    """Entries behind the last one that is known to be committed."""
    earlier: int = 0
    """Records of the commit log that the store had before it became a raft group's."""
    damaged: list[str] = field(default_factory=list)
    """What cannot be read."""

    def row(self) -> dict[str, int]:
        """The plan as a row for output."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "lastEntry": self.last_index,
            "uncommittedEntries": self.behind,
            "earlierRecords": self.earlier,
            "damaged": len(self.damaged),
        }


def plan_migration(source: DLedgerFolder, *, all_entries: bool = False) -> MigrationPlan:
    """Count what a migration takes over."""
    plan = MigrationPlan()
    for _ in _records(source, plan, all_entries=all_entries):
        pass
    return plan


def _records(source: DLedgerFolder, plan: MigrationPlan, *, all_entries: bool) -> Iterator[bytes]:
    for data in _earlier_records(source):
        plan.earlier += 1
        plan.bytes += len(data)
        yield data
    broken: list[BadEntry] = []
    for each in source.entries(broken):
        if each.head.number > source.committed_index and not all_entries:
            plan.behind += 1
            continue
        plan.last_index = each.head.number
        if each.record is not None:
            plan.records += 1
            plan.bytes += each.data.size
            yield each.data.tobytes()
        elif each.head.magic != NO_MESSAGE:
            plan.damaged.append(f"the record of entry {each.head.number} is damaged")
    plan.damaged += [
        f"at {each.position}: {each.text}" for each in broken if each.follows is not None
    ]


def _earlier_records(source: DLedgerFolder) -> Iterator[bytes]:
    """Records of the ordinary commit log that lie before DLedger's."""
    directory = source.root / "commitlog"
    if not directory.is_dir() or not any(directory.iterdir()):
        return
    log = MappedLog(str(directory), source.folder.segment_bytes)
    for base, view, records in good_records(log, log.min, log.limit):
        for _, _, _, position, size, *_ in records:
            yield view[position - base : position - base + size].tobytes()


def migrate(source: DLedgerFolder, target: str, *, all_entries: bool = False) -> MigrationPlan:
    """Make the store; refused if something that was committed cannot be read."""
    check_empty(target)
    plan = plan_migration(source, all_entries=all_entries)
    if plan.damaged:
        raise StoreError(
            f"{source.root} is damaged: {plan.damaged[0]}. Take the store of another member of its "
            "group; all have the same log"
        )
    work, disk = f"{target}{PARTIAL}", OsDisk()
    if disk.exists(work):
        delete_tree(disk, work)
    config = _config(source, work)
    Path(config.commit_log_directory).mkdir(parents=True)
    done = MigrationPlan()
    writer = _LogWriter(config)
    for data in _records(source, done, all_entries=all_entries):
        writer.append(data)
    writer.close()
    _copy_tables(source, Path(work))
    asyncio.run(_derive(config))
    disk.sync_all(work)
    if Path(target).exists():
        Path(target).rmdir()
    os.rename(work, target)
    disk.sync_dir(str(Path(target).resolve().parent))
    return done


class _LogWriter:
    """Writes records one after the other into the files of a new commit log."""

    def __init__(self, config: StoreConfig) -> None:
        self._directory, self._size = config.commit_log_directory, config.segment_bytes
        self._base, self._at = 0, 0
        self._file = self._open()

    def _open(self) -> BinaryIO:
        file = Path(self._directory, file_name(self._base)).open("wb")  # noqa: SIM115 (kept open)
        os.posix_fallocate(file.fileno(), 0, self._size)
        return file

    def append(self, data: bytes) -> None:
        """Write a record at the end; it gets its new log offset."""
        if len(data) + BLANK_BYTES > self._size:
            raise StoreError(f"a record of {len(data)} bytes does not fit a file of {self._size}")
        if self._at + len(data) + BLANK_BYTES > self._size:
            self._file.write(end_mark(self._size - self._at))
            self.close()
            self._base, self._at = self._base + self._size, 0
            self._file = self._open()
        place = (self._base + self._at).to_bytes(8, "big")
        self._file.write(data[:AT_PHYSICAL_OFFSET] + place + data[AT_PHYSICAL_OFFSET + 8 :])
        self._at += len(data)

    def close(self) -> None:
        """Make the present file durable."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _config(source: DLedgerFolder, work: str) -> StoreConfig:
    """The file sizes of the new store: those of the old one."""
    slots, entries = JAVA_SLOTS, JAVA_SLOTS * ENTRIES_A_SLOT
    for view in index_files(source.folder.directory)[:1]:
        slots = view.slots
        entries = (view.data.size - INDEX_HEADER.size - SLOT_BYTES * slots) // ENTRY_BYTES
    return StoreConfig(
        directory=work,
        segment_bytes=source.folder.segment_bytes,
        queue_file_entries=source.folder.file_entries,
        index_slots=slots,
        index_entries=entries,
    )


def _copy_tables(source: DLedgerFolder, work: Path) -> None:
    (work / TABLES).mkdir()
    for path in sorted((source.root / TABLES).glob("*")):
        if path.is_file() and path.suffix not in (BACKUP, ".tmp"):
            copy_data(path, work / TABLES / path.name)


async def _derive(config: StoreConfig) -> Rebuilt:
    offload = ThreadOffload()
    try:
        return await rebuild_settled(config, disk=OsDisk(), clock=SystemClock(), offload=offload)
    finally:
        offload.close()
