"""Entries of the key index that wait to be written: the pure twin."""

from array import array
from collections.abc import Iterable

from gantrymq.kernel.records import Walked, hash_keys, index_keys


class KeyRows:
    """Hash, log offset and store time of every key of the records that were added, in order."""

    def __init__(self) -> None:
        self._hashes, self._offsets, self._times = array("i"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, records: Iterable[Walked]) -> None:
        """Add a row for each key of the records."""
        for topic, _, _, position, _, _, _, store_ms, properties in records:
            keys = index_keys(properties)
            self._hashes.extend(hash_keys([b"%b#%b" % (topic, key) for key in keys]))
            self._offsets.extend([position] * len(keys))
            self._times.extend([store_ms] * len(keys))

    def columns(self, count: int) -> tuple[bytes, bytes, bytes]:
        """The first rows: hashes as native 32-bit numbers, offsets and times as 64-bit ones."""
        parts = self._hashes[:count], self._offsets[:count], self._times[:count]
        hashes, offsets, times = (part.tobytes() for part in parts)
        return hashes, offsets, times

    def drop(self, count: int) -> None:
        """Forget the first rows."""
        for column in (self._hashes, self._offsets, self._times):
            del column[:count]
