"""Walk a part of the log from record to record, and over damage.

The walk is the store's own, so a record is good here exactly if a broker accepts it at its start:
its checksum fits, its parts fill it, and its stored offset is its place.
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

import numpy as np

from gantrymq.base.errors import ProtocolError
from gantrymq.base.plurals import counted
from gantrymq.kernel import STOP_BLANK, STOP_PARTIAL, Walked, walk_records
from gantrymq.protocol.record import (
    AT_MAGIC,
    BLANK_BYTES,
    I32_LEN,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    body_crc,
    decode_record,
)
from gantrymq.store.audit.findings import JOINT, WRONG, Finding, TaskFindings
from gantrymq.store.audit.scope import LogSlice
from gantrymq.store.files.mapped import FRONT_TYPE, Bytes, MappedLog, gather

CHUNK: Final = 4 << 20
SEARCH_BYTES: Final = 16 << 20
"""How much is looked at in one go for the next record behind a damaged one."""

RECORDS, DEBRIS = "records", "debris"
"""What a part of the log may consist of."""

_MAGICS = [I32_LEN.pack(magic) for magic in (MAGIC_V1, MAGIC_V2)]


class WalkEnd(NamedTuple):
    """Where a stretch of good records ends, and why."""

    at: int
    kind: int


class Damage(NamedTuple):
    """A stretch of the log that holds no good record."""

    start: int
    end: int
    kind: str
    text: str
    before_ms: int = 0
    """The store time of the last good record before it, if it was asked for."""


def records_of(log: MappedLog, part: LogSlice, ledger: TaskFindings) -> Iterator[list[Walked]]:
    """The good records that begin in a part of the log, some thousands at a time.

    Damage between them goes into the ledger, together with where the records begin and end: from
    that the driver sees whether the parts join.
    """
    base = log.base_of(part.start)
    view, stop, first = log.file(base), part.end - base, part.start - base
    at = first if first == 0 else next_record(view, first, stop, base)
    if at is None:
        if view[first:stop].any():
            ledger.add(Finding(JOINT, DEBRIS, position=part.start, count=stop - first))
        return
    begun = ended = at
    while at is not None and at < stop:
        ended, kind = yield from stretch(view, at, stop, base, log.segment_bytes)
        if ended >= stop:
            break
        if kind == STOP_BLANK:
            ended = log.segment_bytes
            break
        at = _over_damage(log, ledger, view, ended, stop, base)
    ledger.add(Finding(JOINT, RECORDS, position=base + begun, count=ended - begun))


def stretch(
    view: Bytes, at: int, stop: int, base: int, segment_bytes: int
) -> Generator[list[Walked], None, WalkEnd]:
    """Good records from `at` on; returns where they end."""
    want = CHUNK
    while True:
        data = view[at : at + want].data
        records, end, kind = walk_records(data, base + at, segment_bytes - at, True)
        end -= base
        if records and records[-1][3] - base >= stop:
            inside = [record for record in records if record[3] - base < stop]
            yield inside
            return WalkEnd(records[len(inside)][3] - base, STOP_PARTIAL)
        if records:
            yield records
        if end >= stop:
            return WalkEnd(end, kind)
        if kind == STOP_PARTIAL and end > at:
            at, want = end, CHUNK
        elif kind == STOP_PARTIAL and at + want < view.size:
            want *= 2  # a record larger than the bytes in view
        else:
            return WalkEnd(end, kind)


def _over_damage(
    log: MappedLog, ledger: TaskFindings, view: Bytes, at: int, stop: int, base: int
) -> int | None:
    """Report the damage at `at`; return where the next record is, None if there is none."""
    after, found = damage_at(log, view, at, stop, base)
    if found is not None:
        size = found.end - found.start
        path = log.path(base)
        ledger.add(Finding(WRONG, found.kind, path, at, base + at, count=size, text=found.text))
    return after


def damage_at(
    log: MappedLog, view: Bytes, at: int, stop: int, base: int
) -> tuple[int | None, Damage | None]:
    """Where the next record is in a file, and what stands before it.

    None for the first: there is no further record; for both: nothing was ever written here.
    """
    size = _size_at(view, at)
    follows = at + size
    is_sized = size >= RECORD_BYTES_MIN and follows <= view.size
    if is_sized and _is_start(view, follows, base):
        after: int | None = follows
    else:
        after = next_record(view, at + 1, stop, base)
        if after is None and not view[at : min(stop, view.size)].any():
            return None, None
    end = stop if after is None else after
    kind, text = _reason(view, at, base, log.segment_bytes)
    return after, Damage(base + at, base + end, kind, text)


def _size_at(view: Bytes, at: int) -> int:
    return int(gather(view, np.array([at]), ">i4")[0]) if at + 4 <= view.size else 0


def _is_start(view: Bytes, at: int, base: int) -> bool:
    """Whether a record, the end mark of a file, or zeros stand there."""
    if at + BLANK_BYTES > view.size:
        return at == view.size
    if not view[at : at + 4096].any():
        return True
    size, magic = gather(view, np.array([at, at + I32_LEN.size]), ">i4").tolist()
    if magic == MAGIC_BLANK and at + size == view.size:
        return True
    return next_record(view, at, at + 1, base) == at


def next_record(view: Bytes, start: int, stop: int, base: int) -> int | None:
    """The first place in [start, stop) of a record whose stored offset is its place."""
    for begin in range(start, min(stop, view.size), SEARCH_BYTES):
        end = min(begin + SEARCH_BYTES, stop, view.size)
        part = view[begin + AT_MAGIC : end + AT_MAGIC + 3]
        places = begin + np.flatnonzero(part == _MAGICS[0][0])
        places = places[places + FRONT_TYPE.itemsize <= view.size]
        front = gather(view, places, FRONT_TYPE)
        is_magic = (front["magic"] == MAGIC_V1) | (front["magic"] == MAGIC_V2)
        good = places[is_magic & (front["physical_offset"] == places + base)]
        if good.size:
            return int(good[0])
    return None


def _reason(view: Bytes, at: int, base: int, segment_bytes: int) -> tuple[str, str]:
    """What is wrong at `at`: a kind for scripts and a text for people."""
    head = view[at : at + FRONT_TYPE.itemsize]
    if head.size < FRONT_TYPE.itemsize:
        return "log-cut", "the file ends within a record"
    if not head.any():
        return "log-zeros", "zeros where a record should be"
    front = gather(view, np.array([at]), FRONT_TYPE)[0]
    if front["magic"] not in (MAGIC_V1, MAGIC_V2):
        return "log-chain", f"no record begins here: its magic number is {int(front['magic'])}"
    size = int(front["total_size"])
    if not RECORD_BYTES_MIN <= size <= segment_bytes - at - BLANK_BYTES:
        return "log-chain", f"a record cannot have {counted(size, 'byte')} here"
    if front["physical_offset"] != base + at:
        return "log-chain", f"the record says that it stands at {int(front['physical_offset'])}"
    if at + size > view.size:
        return "log-cut", "the file ends within a record"
    return _reason_within(view[at : at + size].tobytes())


def _reason_within(data: bytes) -> tuple[str, str]:
    """The same for a record whose beginning and size are right."""
    try:
        message = decode_record(data)
    except ProtocolError as error:
        return "log-parts", str(error)
    if message.body and body_crc(message.body) != message.body_crc:
        return "crc", f"the body of {counted(len(message.body), 'byte')} does not fit its checksum"
    return "log-parts", "topic or properties lost a sector to zeros"
