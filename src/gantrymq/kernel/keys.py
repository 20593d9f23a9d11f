"""Entries of the key index from records: the pure twin."""

from collections.abc import Sequence

from gantrymq.kernel.records import Walked, hash_keys, index_keys


def key_rows(pending: Sequence[Walked]) -> tuple[list[int], list[int], list[int]]:
    """Hash, log offset and store time for every key of the records, in their order."""
    keys: list[bytes] = []
    offsets: list[int] = []
    times: list[int] = []
    for topic, _, _, position, _, _, _, store_ms, properties in pending:
        for key in index_keys(properties):
            keys.append(b"%b#%b" % (topic, key))
            offsets.append(position)
            times.append(store_ms)
    return hash_keys(keys), offsets, times
