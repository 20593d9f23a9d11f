"""Cut a replay into chunks, each published as one epoch. Pure.

The selected messages are counted in blocks of neighbouring offsets. Blocks are taken in the order
of their time, those of one queue always in the order of their offsets, even if its clock went back.
So the order within a queue holds from chunk to chunk, and queues stay side by side in time.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange


class CountedBlock(NamedTuple):
    """Selected messages of a queue that lie near each other and are of one day."""

    queue: Queue
    block: int
    """Blocks are numbered along the queue."""
    day: str
    rows: int
    size: int
    first: int
    last: int
    """Offsets of the first and the last of them."""
    first_ms: int
    last_ms: int


class Chunk(msgspec.Struct, frozen=True):
    """One epoch: the selected messages of some ranges."""

    rows: int
    first_ms: int
    last_ms: int
    ranges: tuple[OffsetRange, ...]


class DayCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages of a queue's day were selected."""

    topic: str
    broker: str
    queue_id: int
    day: str
    messages: int
    bytes: int
    first_ms: int
    last_ms: int


def chunked(counts: Iterable[CountedBlock], rows_max: int, bytes_max: int) -> list[Chunk]:
    """Chunks of at most so many messages and bytes; a larger block is a chunk of its own."""
    chunks: list[Chunk] = []
    held: list[CountedBlock] = []
    rows = size = 0
    for block in _in_order(counts):
        if held and (rows + block.rows > rows_max or size + block.size > bytes_max):
            chunks.append(_chunk(held))
            held, rows, size = [], 0, 0
        held.append(block)
        rows += block.rows
        size += block.size
    return [*chunks, _chunk(held)] if held else chunks


def by_day(counts: Iterable[CountedBlock]) -> list[DayCount]:
    """The counts that a dry run shows: each queue's days, in order."""
    found: dict[tuple[str, Queue], list[CountedBlock]] = defaultdict(list)
    for each in counts:
        found[each.day, each.queue].append(each)
    return [
        DayCount(
            topic=queue.topic,
            broker=queue.broker_name,
            queue_id=queue.queue_id,
            day=day,
            messages=sum(each.rows for each in parts),
            bytes=sum(each.size for each in parts),
            first_ms=min(each.first_ms for each in parts),
            last_ms=max(each.last_ms for each in parts),
        )
        for (day, queue), parts in sorted(found.items())
    ]


def _in_order(counts: Iterable[CountedBlock]) -> Iterable[CountedBlock]:
    """Whole blocks, by time, those of a queue by offset."""
    queues: dict[Queue, list[CountedBlock]] = defaultdict(list)
    for block in _whole(counts):
        queues[block.queue].append(block)
    waiting = [(blocks[0].first_ms, queue, 0) for queue, blocks in queues.items()]
    heapq.heapify(waiting)
    while waiting:
        reached, queue, at = heapq.heappop(waiting)
        blocks = queues[queue]
        yield blocks[at]
        if at + 1 < len(blocks):
            later = max(reached, blocks[at + 1].first_ms)
            heapq.heappush(waiting, (later, queue, at + 1))


def _whole(counts: Iterable[CountedBlock]) -> list[CountedBlock]:
    """Blocks, joined where they were counted in parts because a day ended inside."""
    found: dict[tuple[Queue, int], CountedBlock] = {}
    for part in counts:
        place = part.queue, part.block
        found[place] = _joined(found[place], part) if place in found else part
    return [found[place] for place in sorted(found)]


def _joined(one: CountedBlock, two: CountedBlock) -> CountedBlock:
    return CountedBlock(
        one.queue,
        one.block,
        min(one.day, two.day),
        one.rows + two.rows,
        one.size + two.size,
        min(one.first, two.first),
        max(one.last, two.last),
        min(one.first_ms, two.first_ms),
        max(one.last_ms, two.last_ms),
    )


def _chunk(blocks: list[CountedBlock]) -> Chunk:
    queues: dict[Queue, list[CountedBlock]] = defaultdict(list)
    for block in blocks:
        queues[block.queue].append(block)
    return Chunk(
        rows=sum(block.rows for block in blocks),
        first_ms=min(block.first_ms for block in blocks),
        last_ms=max(block.last_ms for block in blocks),
        ranges=tuple(
            OffsetRange(queue, parts[0].first, parts[-1].last + 1)
            for queue, parts in sorted(queues.items())
        ),
    )
