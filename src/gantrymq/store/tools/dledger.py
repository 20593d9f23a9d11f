"""The log of a member of RocketMQ's raft groups (DLedger), read and checked, never written.

Below the store lies `dledger-<id>/data`: files as those of a commit log, but each record is the
body of an entry with a head of 48 bytes, and its log offset is that of the body. So queue entries
and the key index lead to records as they do elsewhere, and the same checks serve.
`dledger-<id>/index` has a unit of 32 bytes for each entry; `checkpoint` and `currterm` are small
files of properties.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gantrymq.base.clock import elapsed_seconds
from gantrymq.base.disk import OsDisk
from gantrymq.base.layout import I32, I64, byte_layout
from gantrymq.base.plurals import counted
from gantrymq.kernel import Walked, walk_records
from gantrymq.store.audit.against_index import check_index
from gantrymq.store.audit.against_log import EntriesOf, KeysOf, block_of, check_times
from gantrymq.store.audit.against_queues import check_queue
from gantrymq.store.audit.against_tables import check_tables
from gantrymq.store.audit.findings import COVERED, NOTE, WRONG, Finding, TaskFindings, worst_first
from gantrymq.store.audit.scope import Scope, scope_of
from gantrymq.store.audit.survey import Tell
from gantrymq.store.audit.whole import Audit
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import index_files
from gantrymq.store.files.mapped import Bytes, map_file
from gantrymq.store.log.segment import bases_in, file_name

MAGICS: Final = (1, 2)
"""An entry with a body, and one that a new leader of DLedger 0.4 begins with."""
NO_MESSAGE: Final = 2
MAGIC_END: Final = -1
"""Marks the unused end of a file."""
BLOCK_RECORDS: Final = 16_384


class EntryHead(NamedTuple):
    """What stands before the record."""

    magic: I32
    size: I32
    """The whole entry, this head included."""
    number: I64
    """DLedger calls it the index of the entry."""
    term: I64
    position: I64
    """The log offset of the entry."""
    channel: I32
    chain_crc: I32
    body_crc: I32
    body_size: I32


class IndexUnit(NamedTuple):
    """What the index has of an entry."""

    magic: I32
    position: I64
    size: I32
    number: I64
    term: I64


HEAD: Final = byte_layout(EntryHead)
UNIT: Final = byte_layout(IndexUnit)
assert (HEAD.size, UNIT.size) == (48, 32)


class LogEntry(NamedTuple):
    """An entry and its record."""

    head: EntryHead
    record: Walked | None
    """None if it has none, or a damaged one."""
    data: Bytes
    """The bytes of the record."""


@dataclass(frozen=True, slots=True)
class BadEntry:
    """Where the chain of entries breaks."""

    position: int
    text: str
    follows: int | None
    """Where the next entry is; None if there is none."""


def dledger_of(directory: Path, log_directory: Path | None = None) -> Path | None:
    """The folder of DLedger's files in a store; None if the store has none."""
    if log_directory is not None:
        return log_directory if (log_directory / "data").is_dir() else None
    found = sorted(path.parent for path in directory.glob("dledger-*/data") if path.is_dir())
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise StoreError(f"{directory} has logs of several members: {names}; name one")
    return found[0] if found else None


class DLedgerFolder:
    """A store whose log is DLedger's."""

    def __init__(self, directory: Path, ledger: Path) -> None:
        self.root, self.ledger = directory, ledger
        self.folder = StoreFolder(str(directory), str(ledger / "data"))
        self.log = self.folder.log
        self.checkpoint = _properties(ledger / "checkpoint")
        self.state = _properties(ledger / "currterm")

    @property
    def committed_index(self) -> int:
        """The last entry that a majority had when the member last noted it; -1 for none."""
        return int(self.checkpoint.get("committedIndex", "-1"))

    def entries(self, broken: list[BadEntry]) -> Iterator[LogEntry]:
        """All entries in order; where the chain breaks is added to `broken`, and passed over."""
        before: EntryHead | None = None
        for base in self.log.bases:
            view = self.log.file(base)
            at: int | None = 0
            while at is not None and at + HEAD.size <= view.size:
                head = EntryHead._make(HEAD.unpack(view[at : at + HEAD.size].tobytes()))
                if head.magic == MAGIC_END:
                    break
                error = _error(head, before, base + at, view.size - at)
                if error:
                    at = self._pass_over(view, base, at, error, broken)
                    before = None
                    continue
                yield _entry(view, base, at, head)
                before, at = head, at + head.size

    def _pass_over(
        self, view: Bytes, base: int, at: int, error: str, broken: list[BadEntry]
    ) -> int | None:
        follows = _next_entry(view, at + 1, base)
        rest = view[at:]
        is_end = follows is None and not rest[:4].any()
        if not is_end:
            where = None if follows is None else base + follows
            broken.append(BadEntry(base + at, error, where))
        return follows

    def units(self) -> "UnitTable":
        """The index of entries."""
        return UnitTable(self.ledger / "index")


class UnitTable:
    """DLedger's index: a unit for each number of an entry."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = {
            base: map_file(str(directory / file_name(base))) for base in _bases(directory)
        }

    def at(self, number: int) -> IndexUnit | None:
        """The unit of an entry; None if no file has it."""
        place = number * UNIT.size
        for base, view in self._files.items():
            if base <= place and place + UNIT.size <= base + view.size:
                data = view[place - base : place - base + UNIT.size].tobytes()
                return IndexUnit._make(UNIT.unpack(data))
        return None


def _bases(directory: Path) -> list[int]:
    return bases_in(OsDisk(), str(directory))


def _properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return {
        name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)
    }


def _error(head: EntryHead, before: EntryHead | None, position: int, room: int) -> str:
    """Why this is no entry here; empty if it is one."""
    if head.magic not in MAGICS:
        return f"no entry begins here: its magic number is {head.magic}"
    if head.position != position:
        return f"the entry says that it stands at {head.position}"
    if not HEAD.size <= head.size <= room or head.body_size != head.size - HEAD.size:
        return f"an entry cannot have {counted(head.size, 'byte')} here"
    if before is not None and head.number != before.number + 1:
        return f"entry {head.number} follows entry {before.number}"
    if before is not None and head.term < before.term:
        return f"term {head.term} follows term {before.term}"
    return ""


def _entry(view: Bytes, base: int, at: int, head: EntryHead) -> LogEntry:
    data = view[at + HEAD.size : at + head.size]
    position = base + at + HEAD.size
    found = walk_records(data.data, position, data.size + 8, True).records
    whole = bool(found) and found[0][4] == data.size
    return LogEntry(head, found[0] if whole else None, data)


def _next_entry(view: Bytes, start: int, base: int) -> int | None:
    """The next place of an entry that says that it stands there."""
    places = start + np.flatnonzero((view[start + 3 :] == 1) | (view[start + 3 :] == NO_MESSAGE))
    for at in places.tolist():
        if at + HEAD.size > view.size:
            break
        head = EntryHead._make(HEAD.unpack(view[at : at + HEAD.size].tobytes()))
        if not _error(head, None, base + at, view.size - at):
            return int(at)
    return None


def verify_dledger(found: DLedgerFolder, tell: Tell | None = None) -> Audit:
    """Check entries, their index, records, queues and key index of a store."""
    began, ledger = elapsed_seconds(), TaskFindings()
    folder, scope = found.folder, scope_of(str(found.root), found.log.directory)
    broken: list[BadEntry] = []
    _check_entries(found, scope, ledger, broken)
    names = [(topic, queue) for topic in folder.topics() for queue in folder.queue_ids(topic)]
    for number, (topic, queue_id) in enumerate(names):
        check_queue(folder, scope, topic, queue_id, ledger)
        if tell is not None:
            tell(number + 1, len(names))
    views = index_files(folder.directory)
    for view in views:
        check_index(view, ledger, slots_too=scope.is_clean or view is not views[-1])
    for each in broken:
        ledger.add(_broken(found, each))
    everything = ledger.all()
    findings = [each for each in everything if each.level in (WRONG, NOTE)]
    findings += check_tables(Path(folder.directory))
    covered = {each.kind: each.count for each in everything if each.level == COVERED}
    notes = [f"committed up to entry {found.committed_index}, as the member noted"]
    seconds = elapsed_seconds() - began
    return Audit(folder.directory, worst_first(findings), covered, seconds, notes)


def _broken(found: DLedgerFolder, each: BadEntry) -> Finding:
    base = found.log.base_of(each.position)
    level = NOTE if each.follows is None else WRONG
    said = "nothing follows" if each.follows is None else f"the next entry is at {each.follows}"
    count = 1 if each.follows is None else each.follows - each.position
    path, at = found.log.path(base), each.position - base
    return Finding(
        level,
        "dledger-entry",
        path,
        at,
        each.position,
        count=count,
        text=f"{each.text}; {said}",
    )


def _check_entries(
    found: DLedgerFolder, scope: Scope, ledger: TaskFindings, broken: list[BadEntry]
) -> None:
    units = found.units()
    entries_of = EntriesOf(found.folder, ledger)
    keys_of = KeysOf(index_files(found.folder.directory), ledger, is_clean=scope.is_clean)
    block: list[Walked] = []
    low = found.log.min
    for each in found.entries(broken):
        ledger.cover("entries", 1)
        _check_unit(found, each.head, units, ledger)
        if each.record is not None:
            block.append(each.record)
        elif each.head.magic != NO_MESSAGE:
            ledger.add(_bad_record(found, each.head))
        if len(block) >= BLOCK_RECORDS:
            low = _check_block(found, scope, block, low, ledger, entries_of, keys_of)
            block = []
    if block:
        _check_block(found, scope, block, low, ledger, entries_of, keys_of)


def _check_block(
    found: DLedgerFolder,
    scope: Scope,
    records: list[Walked],
    low: int,
    ledger: TaskFindings,
    entries_of: EntriesOf,
    keys_of: KeysOf,
) -> int:
    """Hold some records against queues and index; returns where the next ones begin."""
    records = [record for record in records if record[3] < scope.end]
    if not records:
        return low
    block = block_of(records)
    end = records[-1][3] + records[-1][4]
    ledger.cover("log bytes", int(block.sizes.sum()))
    ledger.cover("records", len(records))
    check_times(block, found.log.path(found.log.base_of(records[0][3])), ledger)
    entries_of.check(block)
    keys_of.check(block, low, end)
    return end


def _check_unit(
    found: DLedgerFolder, head: EntryHead, units: UnitTable, ledger: TaskFindings
) -> None:
    unit = units.at(head.number)
    wanted = IndexUnit(head.magic, head.position, head.size, head.number, head.term)
    if unit != wanted:
        path = str(found.ledger / "index")
        text = f"entry {head.number}: its unit says {unit}, the entry {wanted}"
        place = head.number * UNIT.size
        ledger.add(Finding(WRONG, "dledger-index", path, place, head.position, text=text))


def _bad_record(found: DLedgerFolder, head: EntryHead) -> Finding:
    base = found.log.base_of(head.position)
    at = head.position - base
    path, text = found.log.path(base), f"the record of entry {head.number} is damaged"
    return Finding(WRONG, "dledger-record", path, at, head.position, count=head.size, text=text)


def dledger_rows(found: DLedgerFolder) -> list[dict[str, Any]]:
    """What the log of entries holds, as one row."""
    broken: list[BadEntry] = []
    first = last = None
    count = 0
    for each in found.entries(broken):
        first, last, count = first or each.head, each.head, count + 1
    return [
        {
            "folder": str(found.ledger),
            "entries": count,
            "firstIndex": first.number if first else None,
            "lastIndex": last.number if last else None,
            "lastTerm": last.term if last else None,
            "committedIndex": found.committed_index,
            "term": int(found.state.get("currTerm", "-1")),
            "vote": found.state.get("voteLeader"),
            "broken": len([each for each in broken if each.follows is not None]),
        }
    ]
