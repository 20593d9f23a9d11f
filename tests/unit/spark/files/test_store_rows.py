"""Rows from the files of a store are those that its broker would give."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from storekeeping import (
    BROKER,
    START_MS,
    TOPIC,
    StepClock,
    contents,
    keep_store,
    message,
    patch,
    records_in,
)

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.spark.files.store_rows import EVERYTHING, RecordFilter, StoreDamaged, StoreRows
from gantrymq.spark.options.columns import COLUMNS
from gantrymq.spark.records.decode import decode
from gantrymq.spark.records.fetch import DataLost, fail, skip
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.queues.consumequeue import ENTRY_TYPE

COUNT = 60
QUEUES = [Queue(TOPIC, BROKER, number) for number in range(3)]


def orders(count: int = COUNT) -> list[Any]:
    return [
        message(
            number % 3, f"{number}" * 90, tags=f"t{number % 4}", keys=f"k{number} shared",
            unique=f"U{number:04d}", price=number,
        )
        for number in range(count)
    ]  # fmt: skip


def opened(directory: Path, wanted: RecordFilter = EVERYTHING, *, strict: bool = True) -> StoreRows:
    return StoreRows(StoreFolder(str(directory)), BROKER, wanted, strict=strict)


def read(
    rows: StoreRows, queue: Queue, start: int = 0, end: int | None = None, **given: Any
) -> list[dict[str, Any]]:
    """The rows of a range as dictionaries."""
    stop = rows.bounds_of([queue])[1][queue] if end is None else end
    wanted = OffsetRange(queue, start, stop, is_new=given.get("is_new", False))
    columns = given.get("columns", ("queueOffset", "body"))
    found = rows.batches(wanted, columns, given.get("lost", fail))
    return [row for batch in found for row in batch.to_pylist()]


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [row["queueOffset"] for row in found]


@pytest.mark.parametrize("stays_open", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("java", [False, True], ids=["ours", "java"])
def test_rows_are_what_the_store_holds(tmp_path: Path, stays_open: bool, java: bool) -> None:
    """
    Every column, over many log and queue files, stopped or running, and when no checkpoint of
    ours tells how large files are; no file is changed.
    """
    keep_store(tmp_path, orders(), stays_open=stays_open)
    if java:
        patch(tmp_path / "checkpoint", 24, bytes(200))
    assert len(list((tmp_path / "commitlog").iterdir())) > 2
    before = contents(tmp_path)

    with opened(tmp_path) as rows:
        lows, highs = rows.bounds_of(rows.queues(TOPIC))
        found = {queue: read(rows, queue, columns=tuple(COLUMNS)) for queue in QUEUES}

    assert dict.fromkeys(QUEUES, 0) == lows
    assert dict.fromkeys(QUEUES, COUNT // 3) == highs
    for queue in QUEUES:
        data = b"".join(records_in(tmp_path, queue.queue_id))
        assert decode(data, queue, tuple(COLUMNS)).to_pylist() == found[queue]
    assert before == contents(tmp_path)


def test_a_part_of_a_queue_can_be_read(tmp_path: Path) -> None:
    """Ranges begin and end anywhere, across files."""
    keep_store(tmp_path, orders())

    with opened(tmp_path) as rows:
        assert list(range(5, 18)) == offsets(read(rows, QUEUES[1], 5, 18))
        assert [] == read(rows, QUEUES[1], 5, 5)


def test_what_expired_is_lost_and_said_so(tmp_path: Path) -> None:
    """A range that begins in front of what is left fails, or is skipped where that is allowed."""
    clock = StepClock()
    late = [message(0, "late") for _ in range(30)]
    keep_store(tmp_path, orders(), clock=clock)
    clock.ms += 100 * 3_600_000
    keep_store(tmp_path, late, clock=clock, expire=True)

    with opened(tmp_path) as rows:
        lows, highs = rows.bounds_of(QUEUES)
        assert highs[QUEUES[0]] == COUNT // 3 + 30
        assert lows[QUEUES[0]] > 0
        with pytest.raises(DataLost, match="failOnDataLoss=false"):
            read(rows, QUEUES[0])
        left = list(range(lows[QUEUES[0]], highs[QUEUES[0]]))
        assert left == offsets(read(rows, QUEUES[0], lost=skip))
        assert left == offsets(read(rows, QUEUES[0], is_new=True))
        assert left == offsets(read(rows, QUEUES[0], lows[QUEUES[0]]))


def test_a_queue_whose_messages_all_expired_keeps_its_end(tmp_path: Path) -> None:
    """Offsets go on where they were."""
    clock = StepClock()
    more = [message(0, "x" * 900) for _ in range(30)]
    keep_store(tmp_path, [*orders(), *more[:10]], clock=clock)
    clock.ms += 100 * 3_600_000
    keep_store(tmp_path, more[10:], clock=clock, expire=True)

    with opened(tmp_path) as rows:
        lows, highs = rows.bounds_of(QUEUES)

    assert (COUNT // 3, COUNT // 3) == (lows[QUEUES[2]], highs[QUEUES[2]])


def test_a_cut_log_file_is_named(tmp_path: Path) -> None:
    """The error says which file, where, and what to do; without strictness the rest is read."""
    keep_store(tmp_path, orders())
    cut = sorted((tmp_path / "commitlog").iterdir())[1]
    cut.write_bytes(cut.read_bytes()[:4000])

    with opened(tmp_path) as rows, pytest.raises(StoreDamaged, match=f"{cut.name}.*audit"):
        read(rows, QUEUES[0])

    lost: list[tuple[int, int]] = []
    with opened(tmp_path, strict=False) as rows:
        found = read(rows, QUEUES[0], lost=lambda _, start, end: lost.append((start, end)))
        assert rows.skipped > 0
        assert rows.skipped == sum(end - start for start, end in lost)
        gone = {offset for start, end in lost for offset in range(start, end)}
        assert sorted(set(range(COUNT // 3)) - gone) == offsets(found)


@pytest.mark.parametrize("field", ["position", "size", "zeros"])
def test_a_damaged_entry_is_found(tmp_path: Path, field: str) -> None:
    """An entry that leads to nothing, or to the record of another message."""
    keep_store(tmp_path, orders())
    path = tmp_path / "consumequeue" / TOPIC / "0" / f"{0:020d}"
    entries = np.frombuffer(path.read_bytes(), ENTRY_TYPE).copy()
    if field == "position":
        entries["position"][3] = entries["position"][4]
    elif field == "size":
        entries["size"][3] += 1
    else:
        entries[3:5] = 0
    path.write_bytes(entries.tobytes())

    with opened(tmp_path) as rows:
        with pytest.raises(StoreDamaged, match="message 3 of queue 0 of orders") as caught:
            read(rows, QUEUES[0])
        assert str(path) in str(caught.value)
    with opened(tmp_path, strict=False) as rows:
        found = offsets(read(rows, QUEUES[0], lost=skip))
    bad = {3, 4} if field == "zeros" else {3}
    assert [number for number in range(COUNT // 3) if number not in bad] == found


@pytest.mark.parametrize("field, value", [(84, 1 << 20), (84, -5), (36, 0x30), (36, 1)])
def test_a_record_that_is_damaged_inside_is_named(tmp_path: Path, field: int, value: int) -> None:
    """Sizes and flags that cannot be: the error says where; without strictness the rest is read."""
    keep_store(tmp_path, orders())
    queue_file = tmp_path / "consumequeue" / TOPIC / "0" / f"{0:020d}"
    position = int(np.frombuffer(queue_file.read_bytes(), ENTRY_TYPE)["position"][3])
    log = tmp_path / "commitlog" / f"{position // 8192 * 8192:020d}"
    patch(log, position % 8192 + field, value.to_bytes(4, "big", signed=True))

    with opened(tmp_path) as rows:
        with pytest.raises(StoreDamaged, match="message 3 of queue 0 of orders") as caught:
            read(rows, QUEUES[0], columns=("queueOffset", "body", "keys"))
        assert f"byte {position % 8192} of {log}" in str(caught.value)
    lost: list[tuple[int, int]] = []
    with opened(tmp_path, strict=False) as rows:
        found = read(
            rows, QUEUES[0], columns=("queueOffset", "body", "keys"),
            lost=lambda _, start, end: lost.append((start, end)),
        )  # fmt: skip
        assert [number for number in range(COUNT // 3) if number != 3] == offsets(found)
        assert (1, [(3, 4)]) == (rows.skipped, lost)


def test_a_cut_queue_file_is_named(tmp_path: Path) -> None:
    """What it no longer holds is left out if that is allowed, and what is behind is read."""
    keep_store(tmp_path, orders())
    path = tmp_path / "consumequeue" / TOPIC / "0" / f"{0:020d}"
    path.write_bytes(path.read_bytes()[: 5 * ENTRY_TYPE.itemsize + 7])

    with opened(tmp_path) as rows, pytest.raises(StoreDamaged, match=f"message 5 .*{path}"):
        read(rows, QUEUES[0])
    with opened(tmp_path, strict=False) as rows:
        assert [*range(5), *range(8, COUNT // 3)] == offsets(read(rows, QUEUES[0], lost=skip))
        assert 3 == rows.skipped


def test_entries_without_a_record_at_the_end_do_not_count(tmp_path: Path) -> None:
    """A crash may leave entries of records that never reached the disk, or half an entry."""
    keep_store(tmp_path, orders(), stays_open=True)
    path = sorted((tmp_path / "consumequeue" / TOPIC / "0").iterdir())[-1]
    entries = np.frombuffer(path.read_bytes(), ENTRY_TYPE).copy()
    used = int(np.count_nonzero(entries["size"]))
    end = (int(path.name) // ENTRY_TYPE.itemsize) + used
    entries[used]["position"] = entries["position"].max() + 10_000
    entries[used]["size"] = 300
    entries[used + 1]["position"] = 7
    path.write_bytes(entries.tobytes())

    with opened(tmp_path) as rows:
        assert end == rows.bounds_of(QUEUES)[1][QUEUES[0]]
        assert list(range(end)) == offsets(read(rows, QUEUES[0]))


def test_tags_are_chosen_by_the_entries_alone(tmp_path: Path) -> None:
    """Records with another hash are not touched, even if they cannot be read."""
    keep_store(tmp_path, orders())

    with opened(tmp_path, RecordFilter(tags=("t1", "t3"))) as rows:
        expected = [number // 3 for number in range(0, COUNT, 3) if number % 4 in (1, 3)]
        assert expected == offsets(read(rows, QUEUES[0]))


@pytest.mark.parametrize("index", ["whole", "none"])
def test_keys_are_found_through_the_index(tmp_path: Path, index: str) -> None:
    """
    Of what the index covers only hits are decoded; what it does not cover is all handed on, and
    looked at by its text later. That goes for the first and the last record of each index file,
    whose other keys may stand in the files beside.
    """
    keep_store(tmp_path, orders())
    files = list((tmp_path / "index").iterdir())
    if index == "none":
        for path in files:
            path.unlink()

    with opened(tmp_path, RecordFilter(keys=("k30", "k33"))) as rows:
        found = offsets(read(rows, QUEUES[0]))

    if index == "none":
        assert list(range(COUNT // 3)) == found
    else:
        assert {10, 11} <= set(found)
        assert len(found) <= 2 + 2 * len(files)


@pytest.mark.parametrize("damage", ["missing", "cut", "zeros"])
def test_keys_of_a_damaged_index_file_are_looked_for_in_the_records(
    tmp_path: Path, damage: str
) -> None:
    """Between two good index files a bad one covers nothing: its records are all handed on."""
    keep_store(tmp_path, orders())
    index = sorted((tmp_path / "index").iterdir())
    assert len(index) >= 3
    if damage == "missing":
        index[1].unlink()
    elif damage == "cut":
        index[1].write_bytes(index[1].read_bytes()[:30])
    else:
        patch(index[1], 40 + 16 * 4 + 2 * 20, bytes(60 * 20))

    wanted = {number // 3 for number in range(0, COUNT, 3)}
    for offset in wanted:
        with opened(tmp_path, RecordFilter(keys=(f"k{offset * 3}",))) as rows:
            found = offsets(read(rows, QUEUES[0]))
            assert offset in found
            assert len(found) < len(wanted)


def test_conditions_are_asked_of_the_properties(tmp_path: Path) -> None:
    """SQL92 as a broker would evaluate it."""
    keep_store(tmp_path, orders())

    with opened(tmp_path, RecordFilter(sql="price >= 30 AND TAGS <> 't0'")) as rows:
        expected = [n // 3 for n in range(0, COUNT, 3) if n >= 30 and n % 4]
        assert expected == offsets(read(rows, QUEUES[0]))


def test_a_time_is_found_by_bisection(tmp_path: Path) -> None:
    """The first message that was stored at that time or later; the end if there is none."""
    keep_store(tmp_path, orders())

    with opened(tmp_path) as rows:
        times = [row["storeTimestamp"] for row in read(rows, QUEUES[0], columns=["storeTimestamp"])]
        for number in (0, 7, 19):
            assert number == rows.offset_at(QUEUES[0], round(times[number].timestamp() * 1000))
        assert 8 == rows.offset_at(QUEUES[0], round(times[7].timestamp() * 1000) + 1)
        assert 0 == rows.offset_at(QUEUES[0], START_MS - 1)
        assert COUNT // 3 == rows.offset_at(QUEUES[0], START_MS + 10**9)


def test_batches_stay_small(tmp_path: Path) -> None:
    """Large records become many batches, none of more than a few MiB."""
    big = [message(0, bytes(900_000)) for _ in range(12)]
    keep_store(tmp_path, big, segment_bytes=1 << 25)

    with opened(tmp_path) as rows:
        batches: list[pa.RecordBatch] = list(
            rows.batches(OffsetRange(QUEUES[0], 0, 12), ["body"], fail)
        )

    assert [900_000] * 12 == [len(body) for batch in batches for body in batch["body"].to_pylist()]
    assert max(batch.num_rows for batch in batches) <= 5


def test_a_folder_without_a_log_is_no_store(tmp_path: Path) -> None:
    """The error says what to name instead."""
    with pytest.raises(StoreError, match=r"commitlog.*Name the folder"):
        StoreFolder(str(tmp_path))
