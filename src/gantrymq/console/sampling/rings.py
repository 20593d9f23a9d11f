"""Figures over time in rings of fixed size, in a buffer that may be a file. Pure.

A series has three rings: a value each 10 s for an hour, each minute for a day, each 10 minutes for
two weeks. The coarser ones are means of the finer ones. A time without a value is a gap, no zero.

The buffer begins with a head and a table of names; a name that is missing takes the place of the
series that was written longest ago when there is no room.
"""

import math
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

MAGIC: Final = b"GNTRYSMP"
VERSION: Final = 1
SERIES_MAX: Final = 512
NAME_BYTES_MAX: Final = 320

_HEAD: Final = struct.Struct("<8sIIII")
_ENTRY: Final = struct.Struct(f"<qH{NAME_BYTES_MAX}s6x")
GONE: Final = math.nan


class RingShape(NamedTuple):
    """One of the rings of a series."""

    step: int
    """Seconds between two values."""
    slots: int
    """How many values it has."""
    begin: int
    """Where it begins among the values of its series."""


RINGS: Final = (RingShape(10, 360, 0), RingShape(60, 1_440, 360), RingShape(600, 2_016, 1_800))
STEP: Final = RINGS[0].step
VALUES: Final = sum(ring.slots for ring in RINGS)
BACK_SECONDS_MAX: Final = 3_600
"""A clock that was set back further than that: what lies in its future is forgotten."""


def size_of(series_max: int = SERIES_MAX) -> int:
    """The bytes of a buffer for so many series."""
    return _HEAD.size + series_max * (_ENTRY.size + 4 * VALUES)


def ring_of(step: int) -> RingShape:
    """The ring with so many seconds between two values."""
    return next(ring for ring in RINGS if ring.step == step)


class SampleRings:
    """The series in a buffer of `size_of(series_max)` bytes; one that holds anything else is
    emptied."""

    def __init__(self, buffer: memoryview, series_max: int = SERIES_MAX) -> None:
        self._buffer, self._series_max = buffer, series_max
        self._begin = _HEAD.size + series_max * _ENTRY.size
        self._values = buffer[self._begin : self._begin + series_max * VALUES * 4].cast("f")
        self._places: dict[str, int] = {}
        self._last: list[int] = [0] * series_max
        """When each was written, in seconds since 1970; 0 for a free place."""
        head = (MAGIC, VERSION, series_max, VALUES, NAME_BYTES_MAX)
        if _HEAD.unpack_from(buffer) != head:
            buffer[: self._begin] = bytes(self._begin)
            _HEAD.pack_into(buffer, 0, *head)
        for place in range(series_max):
            last, length, name = _ENTRY.unpack_from(buffer, self._entry(place))
            if last > 0 and 0 < length <= NAME_BYTES_MAX:
                self._last[place] = last
                self._places[name[:length].decode("utf-8", "replace")] = place

    def _entry(self, place: int) -> int:
        return _HEAD.size + place * _ENTRY.size

    def names(self) -> Iterator[str]:
        """The series that are there."""
        return iter(self._places)

    def write(self, name: str, at_s: int, value: float) -> None:
        """Put the value of a time into all rings. Nothing is put into the past."""
        place = self._place_of(name, at_s)
        last = self._last[place]
        if at_s // STEP < last // STEP:
            if last - at_s <= BACK_SECONDS_MAX:
                return
            self._clear(place)
            last = at_s - 1
        for ring in RINGS:
            self._skip(place, ring, last, at_s)
        self._note(place, name, at_s)
        fine, *coarser = RINGS
        self._values[self._index(place, fine, at_s // fine.step)] = value
        for ring in coarser:
            slot = at_s // ring.step
            mean = self._mean(place, fine, slot * ring.step, at_s)
            self._values[self._index(place, ring, slot)] = mean
            fine = ring

    def _place_of(self, name: str, at_s: int) -> int:
        place = self._places.get(name)
        if place is None:
            place = min(range(self._series_max), key=self._last.__getitem__)
            for other, used in list(self._places.items()):
                if used == place:
                    del self._places[other]
            self._places[name] = place
            self._clear(place)
            self._last[place] = at_s - 1
        return place

    def _clear(self, place: int) -> None:
        for at in range(place * VALUES, (place + 1) * VALUES):
            self._values[at] = GONE

    def _note(self, place: int, name: str, at_s: int) -> None:
        self._last[place] = at_s
        raw = name.encode()
        _ENTRY.pack_into(self._buffer, self._entry(place), at_s, len(raw), raw)

    def _skip(self, place: int, ring: RingShape, last: int, at_s: int) -> None:
        """Empty the slots between two times, of which nobody knows a value."""
        first, end = last // ring.step + 1, at_s // ring.step + 1
        for slot in range(max(first, end - ring.slots), end):
            self._values[self._index(place, ring, slot)] = GONE

    def _index(self, place: int, ring: RingShape, slot: int) -> int:
        return place * VALUES + ring.begin + slot % ring.slots

    def _mean(self, place: int, ring: RingShape, from_s: int, to_s: int) -> float:
        slots = range(from_s // ring.step, to_s // ring.step + 1)
        found = [self._values[self._index(place, ring, slot)] for slot in slots]
        known = [value for value in found if not math.isnan(value)]
        return sum(known) / len(known) if known else GONE

    def read(self, name: str, step: int, from_s: int, to_s: int) -> list[float | None]:
        """The values of a series from one time up to another, a gap where there is none."""
        ring = ring_of(step)
        slots = range(from_s // step, to_s // step)
        place = self._places.get(name)
        if place is None:
            return [None] * len(slots)
        newest = self._last[place] // step
        oldest = newest - ring.slots + 1
        return [
            self._known(place, ring, slot) if oldest <= slot <= newest else None for slot in slots
        ]

    def _known(self, place: int, ring: RingShape, slot: int) -> float | None:
        value = self._values[self._index(place, ring, slot)]
        return None if math.isnan(value) else value

    def release(self) -> None:
        """Let go of the buffer, so that its file can be closed."""
        self._values.release()
        self._buffer.release()


def named(kind: str, name: str) -> str:
    """The name of a series about something; a name that is too long is cut."""
    raw = f"{kind}:{name}".encode()[:NAME_BYTES_MAX]
    return raw.decode("utf-8", "ignore")
