"""Checks that records have their queue entries and index entries."""

import bisect
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from gantrymq.kernel import FILLER_SIZE, KeyRows, Walked
from gantrymq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_MASK, TRANSACTION_ROLLBACK
from gantrymq.store.audit.against_queues import fit
from gantrymq.store.audit.findings import NOTE, WRONG, Finding, TaskFindings, runs
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import IndexView
from gantrymq.store.files.mapped import Bools, Entries, Ints
from gantrymq.store.index.index_file import columns_of
from gantrymq.store.queues.queueext import ADDRESS_MAX
from gantrymq.store.writing.dispatch import SCHEDULE_TOPIC

APART_MAX: Final = 4096
"""Offsets further apart than this are looked up separately."""
STEP_BACK_MS: Final = 1000
"""A clock that goes back further than this is worth a note: times are searched by bisection."""
SECONDS_MAX: Final = 0x7FFF_FFFF


class Block(NamedTuple):
    """Some records, as columns."""

    queues: list[tuple[bytes, int]]
    offsets: Ints
    positions: Ints
    sizes: Ints
    flags: Ints
    codes: Ints
    times: Ints
    records: list[Walked]


def block_of(records: list[Walked]) -> Block:
    topics, numbers, offsets, positions, sizes, flags, codes, times, _ = zip(*records, strict=True)
    return Block(
        queues=list(zip(topics, numbers, strict=True)),
        offsets=np.array(offsets, np.int64),
        positions=np.array(positions, np.int64),
        sizes=np.array(sizes, np.int64),
        flags=np.array(flags, np.int64),
        codes=np.array(codes, np.int64),
        times=np.array(times, np.int64),
        records=records,
    )


class EntriesOf:
    """Compares records of the log with the entries in queue files."""

    def __init__(self, folder: StoreFolder, ledger: TaskFindings) -> None:
        self._folder, self._ledger = folder, ledger
        self._topics = set(folder.topics())
        self._first: dict[tuple[bytes, int], int] = {}

    def check(self, block: Block) -> None:
        """Report records that belong to a queue and lack their entry there."""
        kinds = block.flags & TRANSACTION_MASK
        queued = (kinds == 0) | (kinds == TRANSACTION_COMMIT)
        numbers: dict[tuple[bytes, int], int] = {}
        which = np.array([numbers.setdefault(queue, len(numbers)) for queue in block.queues])
        for queue, number in numbers.items():
            rows = np.flatnonzero((which == number) & queued)
            if rows.size:
                self._check_queue(queue, block, rows)

    def _check_queue(self, queue: tuple[bytes, int], block: Block, rows: Ints) -> None:
        topic = queue[0].decode("utf-8", "replace")
        if topic not in self._topics:
            self._ledger.cover("records of deleted topics", rows.size)
            return
        rows = rows[np.argsort(block.offsets[rows], kind="stable")]
        apart = np.flatnonzero(np.diff(block.offsets[rows]) > APART_MAX) + 1
        for part in np.split(rows, apart):
            self._compare(queue, topic, block, part)

    def _compare(self, queue: tuple[bytes, int], topic: str, block: Block, rows: Ints) -> None:
        offsets, positions = block.offsets[rows], block.positions[rows]
        found = self._entries(topic, queue[1], offsets)
        self._ledger.cover("records with their queue entry", rows.size)
        absent = (found["size"] == 0) | (found["size"] == FILLER_SIZE)
        # The topic was deleted and created again: these records are from before.
        newer = ~absent & (found["position"] > positions) & self._is_of(found, queue[1], offsets)
        earlier = newer | (positions < self._begin(queue, topic))
        self._ledger.cover("records of earlier lives of topics", int(earlier.sum()))
        elsewhere = ~absent & (found["position"] != positions) & ~earlier
        there = ~absent & ~elsewhere & ~earlier
        resized = there & (found["size"] != block.sizes[rows])
        retagged = there & ~resized & self._is_tag_wrong(queue, block, rows, found)
        for kind, mask, text in (
            ("entry-missing", absent & ~earlier, "records in the log have no entry in their queue"),
            ("entry-place", elsewhere, "the entry names another place than its record's"),
            ("entry-size", resized, "the entry names another size than its record's"),
            ("entry-tag", retagged, "the entry has another tag hash than its record"),
        ):
            self._report(kind, text, queue[1], topic, block, rows[mask])

    def _entries(self, topic: str, queue_id: int, offsets: Ints) -> Entries:
        """The entries at these offsets; zeros where there is none."""
        low, high = int(offsets[0]), int(offsets[-1]) + 1
        return self._folder.queue(topic, queue_id).whole(low, high)[offsets - low]

    def _is_of(self, found: Entries, queue_id: int, offsets: Ints) -> Bools:
        """Whether entries lead to records of their queue and offset; asked for newer ones only."""
        return fit(self._folder.log, found, queue_id, offsets)

    def _begin(self, queue: tuple[bytes, int], topic: str) -> int:
        """The log offset of the first message that the queue still has."""
        if queue not in self._first:
            found = self._first_place(topic, queue[1])
            if found is None:  # it has no entries: then it is as old as the topic's other queues
                others = (self._first_place(topic, n) for n in self._folder.queue_ids(topic))
                found = min((place for place in others if place is not None), default=0)
            self._first[queue] = found
        return self._first[queue]

    def _first_place(self, topic: str, queue_id: int) -> int | None:
        files = self._folder.queue(topic, queue_id)
        entries = files.read(files.begin, files.begin + APART_MAX)
        real = entries[(entries["size"] != 0) & (entries["size"] != FILLER_SIZE)]
        return int(real["position"][0]) if real.size else None

    def _is_tag_wrong(
        self, queue: tuple[bytes, int], block: Block, rows: Ints, found: Entries
    ) -> Bools:
        codes, expected = found["code"].astype(np.int64), block.codes[rows]
        wrong: Bools = codes != expected
        wrong &= codes > ADDRESS_MAX  # else the code is an address in the queue's extension file
        if queue[0] == SCHEDULE_TOPIC:
            wrong &= codes < block.times[rows]  # there the code is the due time
        return wrong

    def _report(
        self, kind: str, text: str, queue_id: int, topic: str, block: Block, rows: Ints
    ) -> None:
        files = self._folder.queue(topic, queue_id)
        offsets = block.offsets[rows]
        for first, count in runs(offsets):
            offset, row = int(offsets[first]), rows[first]
            path, at = files.place(offset)
            self._ledger.add(
                Finding(
                    WRONG,
                    kind,
                    path,
                    at,
                    int(block.positions[row]),
                    topic,
                    queue_id,
                    offset,
                    count,
                    text,
                )
            )


class KeysOf:
    """Compares records of the log with the entries of the key index."""

    def __init__(self, views: list[IndexView], ledger: TaskFindings, *, is_clean: bool) -> None:
        self._views = [view for view in views if view.rows.size]
        self._ledger, self._is_clean = ledger, is_clean
        self._end = int(self._views[-1].rows["at"][-1]) if self._views else -1

    def check(self, block: Block, low: int, high: int) -> None:
        """Report differences between index entries and the keys of records in a log range."""
        if not self._views:
            return
        keyed = [
            record
            for record in block.records
            if record[5] & TRANSACTION_MASK != TRANSACTION_ROLLBACK
        ]
        rows = KeyRows()
        rows.add(keyed)
        hashes, places, times = columns_of(rows, len(rows))
        self._ledger.cover("keys with their index entry", places.size)
        have = list(self._between(low, high))
        found_hashes = np.concatenate([rows["hash"] for _, rows in have]).astype(np.int64)
        found_places = np.concatenate([rows["at"] for _, rows in have]).astype(np.int64)
        if np.array_equal(found_places, places) and np.array_equal(found_hashes, hashes):
            self._check_times(have, times)
        else:
            self._differences(
                set(zip(places.tolist(), hashes.tolist(), strict=True)),
                set(zip(found_places.tolist(), found_hashes.tolist(), strict=True)),
                set(block.positions.tolist()),
            )

    def _between(self, low: int, high: int) -> Iterator[tuple[IndexView, Entries]]:
        """Index entries of records from one log offset up to another, file by file."""
        for view in self._views:
            at = view.rows["at"]
            first = bisect.bisect_left(range(at.size), low, key=lambda n, at=at: int(at[n]))  # type: ignore[misc]
            end = bisect.bisect_left(range(at.size), high, key=lambda n, at=at: int(at[n]))  # type: ignore[misc]
            yield view, view.rows[first:end]

    def _check_times(self, have: list[tuple[IndexView, Entries]], times: Ints) -> None:
        done = 0
        for view, rows in have:
            seconds = (times[done : done + rows.size] - view.header.begin_ms) // 1000
            wrong = np.flatnonzero(rows["seconds"] != seconds.clip(0, SECONDS_MAX))
            done += rows.size
            if wrong.size:
                self._ledger.add(
                    Finding(
                        WRONG,
                        "index-time",
                        view.path,
                        position=int(rows["at"][wrong[0]]),
                        count=wrong.size,
                        text="index entries with another time than their record's",
                    )
                )

    def _differences(
        self, wanted: set[tuple[int, int]], found: set[tuple[int, int]], records: set[int]
    ) -> None:
        missing = sorted(wanted - found)
        if not self._is_clean:
            missing = [pair for pair in missing if pair[0] < self._end]
        surplus = sorted(found - wanted)
        self._report("index-missing", missing, "keys of records in the log are not in the index")
        foreign = [pair for pair in surplus if pair[0] in records]
        self._report("index-surplus", foreign, "the record has no key with this hash")
        damaged = self._ledger.damaged()
        for pair in surplus:
            if pair[0] not in records and not any(a <= pair[0] < b for a, b in damaged):
                self._report("index-nowhere", [pair], "no record stands where the entry says")

    def _report(self, kind: str, pairs: list[tuple[int, int]], text: str) -> None:
        if pairs:
            place, key_hash = pairs[0]
            path = self._views[-1].path.rpartition("/")[0]
            self._ledger.add(
                Finding(
                    WRONG,
                    kind,
                    path,
                    position=place,
                    count=len(pairs),
                    text=f"{text} (the first: log offset {place}, hash {key_hash})",
                )
            )


def check_times(block: Block, path: str, ledger: TaskFindings, before_ms: int = 0) -> None:
    """Report store times that go back too far or are missing; `before_ms` precedes the block."""
    times = np.concatenate([[before_ms], block.times])
    back = np.flatnonzero(np.diff(times) < -STEP_BACK_MS)
    if back.size:
        row = int(back[0])
        ms = int(times[row] - times[row + 1])
        ledger.add(
            Finding(
                NOTE,
                "time-back",
                path,
                position=int(block.positions[row]),
                count=back.size,
                text=f"the clock went back {ms} ms: searches by time may miss what is near",
            )
        )
    if (block.times <= 0).any():
        row = int(np.argmin(block.times))
        ledger.add(
            Finding(
                WRONG,
                "time-none",
                path,
                position=int(block.positions[row]),
                count=int((block.times <= 0).sum()),
                text="records without a store time",
            )
        )
