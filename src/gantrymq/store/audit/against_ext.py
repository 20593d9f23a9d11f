"""Checks the units of `consumequeue_ext` that queue entries name against their records."""

from pathlib import Path
from typing import Final

import numpy as np

from gantrymq.base.disk import OsDisk
from gantrymq.base.files import read_file
from gantrymq.kernel import FILLER_SIZE, walk_records
from gantrymq.store.audit.findings import NOTE, WRONG, Finding, TaskFindings
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.mapped import Entries, Ints
from gantrymq.store.log.segment import bases_in, file_name
from gantrymq.store.queues.queueext import ADDRESS_MAX, ADDRESS_ZERO, Unit, unit_at
from gantrymq.store.writing.dispatch import SCHEDULE_TOPIC

TEXTS: Final = {
    "ext-unit": "the unit has another tag hash or store time than its record",
    "ext-none": "the unit of the entry is not there; the record is asked instead",
}


def check_units(
    folder: StoreFolder,
    topic: str,
    queue_id: int,
    offsets: Ints,
    entries: Entries,
    ledger: TaskFindings,
) -> None:
    """Report units that contradict the record of their entry, and entries without a unit."""
    named = (entries["code"] <= ADDRESS_MAX) & (entries["size"] != FILLER_SIZE)
    rows = np.flatnonzero(named & (entries["size"] > 0))
    if not rows.size:
        return
    units = UnitFiles(f"{folder.directory}/consumequeue_ext/{topic}/{queue_id}")
    ledger.cover("queue entries with their unit", rows.size)
    for row in rows.tolist():
        position, size, code = entries[row].tolist()
        kind = _fault(folder, units, position, size, code)
        if kind:
            path, at = units.place(code)
            level = NOTE if kind == "ext-none" else WRONG
            offset = int(offsets[row])
            ledger.add(
                Finding(level, kind, path, at, position, topic, queue_id, offset, 1, TEXTS[kind])
            )


def _fault(folder: StoreFolder, units: "UnitFiles", position: int, size: int, code: int) -> str:
    unit = units.at(code)
    if unit is None or unit.position not in (None, position):
        return "ext-none"
    base = folder.log.base_of(position)
    data = folder.log.file(base)[position - base : position - base + size].tobytes()
    records = walk_records(data, position, size + 8, False).records
    if not records:
        return ""  # the record is damaged, which the walk through the log reports
    topic, *_, tag_code, store_ms, _ = records[0]
    # The unit of a delayed message carries the time at which it is due.
    same_tag = unit.tag_code == tag_code or topic == SCHEDULE_TOPIC
    return "" if same_tag and unit.store_ms == store_ms else "ext-unit"


class UnitFiles:
    """The unit files of one queue."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._bases = bases_in(OsDisk(), directory)
        self._file_bytes = 0
        if len(self._bases) > 1:
            self._file_bytes = self._bases[1] - self._bases[0]
        elif self._bases:
            self._file_bytes = Path(self._path(self._bases[0])).stat().st_size
        self._base, self._data = -1, b""

    def _path(self, base: int) -> str:
        return f"{self._directory}/{file_name(base)}"

    def place(self, code: int) -> tuple[str, int]:
        """The file of a unit's address, and the byte in it."""
        at = code - ADDRESS_ZERO
        base = at - at % self._file_bytes if self._file_bytes else 0
        return self._path(base), at - base

    def at(self, code: int) -> Unit | None:
        """The unit of an address; None if nothing readable stands there."""
        at = code - ADDRESS_ZERO
        if not self._file_bytes:
            return None
        base = at - at % self._file_bytes
        if base != self._base:
            path = self._path(base)
            data = read_file(OsDisk(), path) if base in self._bases else b""
            self._base, self._data = base, data
        return unit_at(self._data, at - base)
