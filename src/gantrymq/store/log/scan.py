"""Reads the log from an offset to its end, across all topics."""

from collections.abc import AsyncIterator
from typing import Final

from gantrymq.base.offload import Offload
from gantrymq.kernel import STOP_BLANK, STOP_PARTIAL, Walked, walk_records
from gantrymq.store.log.commitlog import CommitLog

CHUNK_BYTES: Final = 1 << 20

Chunk = tuple[bytes, int, list[Walked]]
"""Bytes of the log, the log offset of the first one, and the records in them."""


async def scan(
    commit_log: CommitLog, offload: Offload, position: int, end: int
) -> AsyncIterator[Chunk]:
    """The records between two log offsets, in chunks; a record must begin at `position`."""
    position, size = max(position, commit_log.min), CHUNK_BYTES
    while position < end:
        rest = commit_log.rest_of_file(position)
        data = await offload.run(commit_log.read, min(size, rest, end - position), position)
        walk = walk_records(data, position, rest, False)
        if walk.records:
            yield data, position, walk.records
            position, size = walk.end, CHUNK_BYTES
        elif walk.stop == STOP_BLANK:
            position += rest
        elif walk.stop == STOP_PARTIAL and size < rest and position + size < end:
            size *= 2  # one record is larger than a chunk
        else:
            return
