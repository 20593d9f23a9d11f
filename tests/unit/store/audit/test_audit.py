"""An audit finds what is damaged, names it once, and finds nothing where nothing is."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from storekeeping import TOPIC, StepClock, contents, flip, keep_store, message, patch, records_in

from gantrymq.protocol.record import decode_record
from gantrymq.store.audit.findings import JOINT, NOTE, WRONG, Finding, TaskFindings
from gantrymq.store.audit.whole import Audit, audit_store
from gantrymq.store.index.index_file import ENTRY_DTYPE, HEADER
from gantrymq.store.queues.consumequeue import ENTRY_TYPE

COUNT = 60
SLOTS = 16


def orders(count: int = COUNT) -> list[Any]:
    return [
        message(
            number % 3, f"{number:03d}" * 60, tags=f"t{number % 4}", keys=f"k{number}",
            unique=f"U{number:04d}",
        )
        for number in range(count)
    ]  # fmt: skip


def audited(store: Path) -> Audit:
    return audit_store(str(store))


def wrong(store: Path) -> list[tuple[str, int]]:
    """Kind and count of everything that is wrong."""
    return [(each.kind, each.count) for each in audited(store).findings if each.level == WRONG]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of several log, queue and index files, stopped properly."""
    keep_store(tmp_path, orders())
    return tmp_path


def test_records_of_long_topics_are_looked_at_as_well(tmp_path: Path) -> None:
    """Version 2 of a record: where the topic's length has two bytes."""
    keep_store(tmp_path, [*orders(6), *(message(0, "x", topic="t" * 200) for _ in range(4))])

    found = audited(tmp_path)
    (log_file(tmp_path, 0)).write_bytes(
        log_file(tmp_path, 0).read_bytes().replace(b"t" * 200, b"t" * 199 + b"u", 1)
    )

    assert [] == found.findings
    assert 10 == found.covered["records with their queue entry"]
    assert [] != wrong(tmp_path)


def log_file(store: Path, number: int) -> Path:
    return sorted((store / "commitlog").iterdir())[number]


def queue_file(store: Path, queue_id: int = 0, number: int = 0) -> Path:
    return sorted((store / "consumequeue" / TOPIC / str(queue_id)).iterdir())[number]


def index_file(store: Path, number: int = 0) -> Path:
    return sorted((store / "index").iterdir())[number]


def place_of(store: Path, number: int) -> tuple[Path, int]:
    """The log file of a record and the byte where it begins."""
    found = decode_record(records_in(store, number % 3)[number // 3])
    file = found.physical_offset // 8192
    return log_file(store, file), found.physical_offset % 8192


@pytest.mark.parametrize("stays_open", [False, True], ids=["stopped", "open"])
@pytest.mark.parametrize("java", [False, True], ids=["ours", "java"])
def test_a_good_store_has_no_findings(tmp_path: Path, stays_open: bool, java: bool) -> None:
    """Everything is looked at, and nothing is written."""
    keep_store(tmp_path, orders(), stays_open=stays_open)
    if java:
        patch(tmp_path / "checkpoint", 24, bytes(200))
    before = contents(tmp_path)

    found = audited(tmp_path)

    assert [] == found.findings
    assert found.is_good
    assert before == contents(tmp_path)
    assert any("left out" in note for note in found.notes) == stays_open
    # Of a running Java broker the last entry of each queue is not relied on.
    checked = COUNT - 3 if stays_open and java else COUNT
    assert checked == found.covered["records"]
    assert checked == found.covered["records with their queue entry"]
    assert checked == found.covered["queue entries with their record"]
    assert 2 * checked == found.covered.get("keys with their index entry", 2 * checked)
    assert java or 2 * COUNT == found.covered["index entries in their chain"]


def test_a_flipped_bit_in_a_body_is_found(store: Path) -> None:
    """The checksum does not fit; the finding says which file, which byte, which record."""
    file, at = place_of(store, 20)
    flip(file, at + 100)

    (finding,) = audited(store).findings

    assert (WRONG, "crc", str(file), at) == (
        finding.level, finding.kind, finding.file, finding.at
    )  # fmt: skip
    assert "checksum" in finding.text


@pytest.mark.parametrize(
    ("field", "kind"),
    [(0, "log-chain"), (4, "log-chain"), (30, "log-chain"), (84, "log-parts")],
    ids=["size", "magic", "place", "body size"],
)
def test_a_damaged_head_is_found_and_passed_over(store: Path, field: int, kind: str) -> None:
    """The records behind it are still checked; its queue entry is not blamed as well."""
    file, at = place_of(store, 20)
    flip(file, at + field)

    found = audited(store)

    assert [(kind, str(file), at)] == [(f.kind, f.file, f.at) for f in found.findings]
    assert COUNT - 1 == found.covered["records"]


def test_zeros_in_the_log_are_found(store: Path) -> None:
    """As a disk leaves them that lost a few sectors."""
    file, at = place_of(store, 20)
    patch(file, at, bytes(600))

    found = audited(store)

    assert ["log-zeros"] == [each.kind for each in found.findings]
    assert (str(file), at) == (found.findings[0].file, found.findings[0].at)
    assert COUNT - 3 <= found.covered["records"] < COUNT


def test_a_cut_log_file_is_found(store: Path) -> None:
    """Its size is wrong, and the record at the cut is named."""
    file = log_file(store, 1)
    file.write_bytes(file.read_bytes()[:5000])

    kinds = [kind for kind, _ in wrong(store)]

    assert "log-size" in kinds
    assert "log-cut" in kinds
    assert {"log-size", "log-cut", "entry-surplus", "log-chain"} >= set(kinds)


def test_a_missing_log_file_is_found(store: Path) -> None:
    """What stands in front of the gap cannot be used any more."""
    log_file(store, 1).unlink()

    assert ("log-gap", 1) in wrong(store)


def test_a_log_that_ends_early_is_found(store: Path) -> None:
    """The checkpoint vouches for more than there is."""
    last, at = place_of(store, COUNT - 1)
    patch(last, at, bytes(8192 - at))

    assert "log-end" in [kind for kind, _ in wrong(store)]


def test_zeros_at_the_end_of_a_part_are_found(store: Path, monkeypatch: Any) -> None:
    """Parts of the log are checked apart, and still no gap between them stays hidden."""
    monkeypatch.setattr("gantrymq.store.audit.scope.SLICE_BYTES", 1000)
    assert [] == wrong(store)
    file, at = place_of(store, 10)
    patch(file, at, bytes(2500))

    assert {"log-zeros", "log-chain"} >= {kind for kind, _ in wrong(store)}
    assert wrong(store)


def changed(path: Path, change: Callable[[Any], None], kind: Any = ENTRY_TYPE, at: int = 0) -> None:
    """Change the entries of a file."""
    data = bytearray(path.read_bytes())
    rows = np.frombuffer(data, kind, (len(data) - at) // np.dtype(kind).itemsize, at)
    change(rows)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("field", "kind"), [("position", "entry-place"), ("size", "entry-size"), ("code", "entry-tag")]
)
def test_a_damaged_queue_entry_is_found(store: Path, field: str, kind: str) -> None:
    """Once, with its file, byte, topic, queue and offset."""
    path = queue_file(store, 1)

    def change(rows: Any) -> None:
        rows[field][5] += 1

    changed(path, change)

    (finding,) = audited(store).findings
    assert (kind, str(path), 100, TOPIC, 1, 5, 1) == (
        finding.kind, finding.file, finding.at, finding.topic, finding.queue_id, finding.offset,
        finding.count,
    )  # fmt: skip


def test_swapped_queue_entries_are_found(store: Path) -> None:
    """Both of them, as one finding: they follow each other."""

    def swap(rows: Any) -> None:
        rows[[3, 4]] = rows[[4, 3]]

    changed(queue_file(store), swap)

    assert [("entry-place", 2)] == wrong(store)


def test_missing_queue_entries_are_found(store: Path) -> None:
    """Zeros in the middle, at the end, or a whole file."""

    def wipe(rows: Any) -> None:
        rows[2:5] = 0

    changed(queue_file(store, 0), wipe)
    queue_file(store, 1, -1).unlink()

    left = COUNT // 3 - 16
    assert [("entry-missing", 3), ("entry-missing", left)] == sorted(wrong(store))


def test_a_cut_queue_file_is_found(store: Path) -> None:
    """Its size, and the entries that went with it; those in files behind it are there."""
    path = queue_file(store, 0)
    path.write_bytes(path.read_bytes()[:107])

    assert [("entry-missing", 3), ("queue-size", 1)] == sorted(wrong(store))


def test_a_lost_queue_is_found_if_its_topic_is_known(store: Path) -> None:
    """A topic that was deleted leaves records behind; one that was not must have its queues."""
    for path in (store / "consumequeue" / TOPIC / "2").iterdir():
        path.unlink()

    assert [("entry-missing", COUNT // 3)] == wrong(store)


def test_surplus_queue_entries_are_found(store: Path) -> None:
    """Entries behind the end of a queue which no record has."""

    def add(rows: Any) -> None:
        rows[5] = rows[1]

    path = queue_file(store, 0, -1)
    changed(path, add)

    found = audited(store).findings
    assert {("entry-surplus", str(path), 21), ("entry-hole", str(path), 20)} == {
        (each.kind, each.file, each.offset) for each in found
    }


@pytest.mark.parametrize(
    ("field", "kind"),
    [("hash", "index-missing"), ("at", "index-missing"), ("seconds", "index-time"),
     ("previous", "index-chain")],
)  # fmt: skip
def test_a_damaged_index_entry_is_found(store: Path, field: str, kind: str) -> None:
    """By the record that it belongs to, or by the chain that it is in."""
    path = index_file(store)

    def change(rows: Any) -> None:
        rows[field][7] += 1

    changed(path, change, ENTRY_DTYPE, HEADER.size + 4 * SLOTS)

    kinds = {kind for kind, _ in wrong(store)}
    assert kind in kinds
    assert kinds <= {
        kind,
        "index-surplus",
        "index-nowhere",
        "index-chain",
        "index-slot",
        "index-order",
    }


def test_damaged_slots_and_headers_of_the_index_are_found(store: Path) -> None:
    """Searches begin at a slot; files are chosen by their header."""
    flip(index_file(store), HEADER.size + 4 * 3 + 3)
    flip(index_file(store), 20)

    assert {"index-slot", "index-header"} == {kind for kind, _ in wrong(store)}


def test_a_topic_that_began_again_is_no_damage(tmp_path: Path) -> None:
    """Records of its earlier life are in the log, but in no queue any more."""
    keep_store(tmp_path, orders(30))
    for path in (tmp_path / "consumequeue" / TOPIC).rglob("0*"):
        if path.is_file():
            path.unlink()
    keep_store(tmp_path, [message(0, f"again {number}") for number in range(12)])

    found = audited(tmp_path)

    assert [] == [each for each in found.findings if each.level == WRONG]
    assert found.covered["records of earlier lives of topics"] > 0


def test_a_deleted_topic_is_no_damage(store: Path) -> None:
    """Its records are counted."""
    import shutil

    keep_store(store, [message(0, "other", topic="other")])
    shutil.rmtree(store / "consumequeue" / TOPIC)

    found = audited(store)

    assert [] == found.findings
    assert COUNT == found.covered["records of deleted topics"]


def test_expired_files_are_no_damage(tmp_path: Path) -> None:
    """Entries of records that were deleted with their files are counted."""
    clock = StepClock()
    keep_store(tmp_path, orders(), clock=clock)
    clock.ms += 100 * 3_600_000
    keep_store(tmp_path, [message(0, "late") for _ in range(30)], clock=clock, expire=True)

    found = audited(tmp_path)

    assert [] == [each for each in found.findings if each.level == WRONG]
    assert found.covered["queue entries of deleted log files"] > 0


def test_a_clock_that_went_back_is_a_note(tmp_path: Path) -> None:
    """Nothing is lost, but searches by time rely on it."""
    keep_store(tmp_path, orders(10))
    file, at = place_of(tmp_path, 4)
    stored = int.from_bytes(file.read_bytes()[at + 56 : at + 64], "big")
    patch(file, at + 56, (stored - 60_000).to_bytes(8, "big"))

    found = audited(tmp_path)

    assert [(NOTE, "time-back")] == [(each.level, each.kind) for each in found.findings]
    assert found.is_good


def test_many_findings_are_counted_not_listed(store: Path, monkeypatch: Any) -> None:
    """A ruined file must not fill the report, nor the driver's memory."""
    monkeypatch.setattr("gantrymq.store.audit.findings.KEPT_MAX", 2)

    def ruin(rows: Any) -> None:
        rows["size"][::2] += 1

    changed(queue_file(store), ruin)

    found = [each for each in audited(store).findings if each.kind == "entry-size"]
    assert 4 == sum(each.count for each in found)
    assert any("more of the same" in each.text for each in found)


@pytest.mark.parametrize("seed", range(6))
def test_any_flipped_bit_that_something_guards_is_found(store: Path, seed: int) -> None:
    """A body, a queue entry, an index entry: wherever the bit is, something is wrong then."""
    rng = Random(seed)
    file, at = place_of(store, rng.randrange(COUNT))
    queue = queue_file(store, rng.randrange(3))
    index = index_file(store)
    entries = HEADER.size + 4 * SLOTS + ENTRY_DTYPE.itemsize
    for path, place in (
        (file, at + 88 + rng.randrange(180)),
        (queue, rng.randrange(8 * ENTRY_TYPE.itemsize)),
        (index, entries + rng.randrange(60 * ENTRY_DTYPE.itemsize)),
    ):
        flip(path, place)
        assert wrong(store), f"byte {place} of {path}"
        flip(path, place)
    assert [] == wrong(store)


def test_joints_of_the_log_are_never_dropped(monkeypatch: Any) -> None:
    """Without one the driver would call good log unreadable; a note stays a note."""
    monkeypatch.setattr("gantrymq.store.audit.findings.KEPT_MAX", 2)
    ledger = TaskFindings()
    for number in range(4):
        ledger.add(Finding(WRONG, "entry-missing", offset=2 * number))
    ledger.add(Finding(NOTE, "times", count=3))
    ledger.add(Finding(JOINT, "records", position=0, count=64))

    rows = [(each.level, each.kind, each.count) for each in ledger.all()]

    wrong = (WRONG, "entry-missing", 1)
    assert [
        wrong, wrong, (JOINT, "records", 64), (WRONG, "entry-missing", 2), (NOTE, "times", 3)
    ] == rows  # fmt: skip
