"""Staged messages: checks that a share is complete, and reads it for copying."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.broker.tables.registry import Topics
from gantrymq.kernel import find_property
from gantrymq.model import STAGE_TOPIC, WRITE
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.publishing import Share, Stretch
from gantrymq.protocol.record import (
    BORN_V6,
    LAYOUTS,
    STORE_V6,
    StoredMessage,
    decode_record,
)
from gantrymq.store.append import BatchItem, ReadResult, ReadStatus
from gantrymq.store.engine import Store

STRETCHES_MAX: Final = 100_000
"""Of one epoch on one broker."""
STRETCHES_PER_SLICE: Final = 64
READ_BYTES_MAX: Final = 1 << 20
READ_MESSAGES_MAX: Final = 1_000
"""Of one slice of copying, so that the loop is free again within milliseconds."""

_SIZE, _BODY_SIZE, _TEXT_SIZE = struct.Struct(">i"), struct.Struct(">i"), struct.Struct(">H")
_MIDDLE, _AT_FLAG = struct.Struct(">i8xqi"), 16
"""Flag, queue offset (left out), log offset, sys flag."""


class StagedGone(GantryError):
    """Messages of an epoch are no longer in the stage topic; nothing of it was published."""

    code = ResponseCode.MESSAGE_ILLEGAL


class DestinationRefused(GantryError):
    """An epoch has messages for a queue that does not exist or is not writable."""

    code = ResponseCode.TOPIC_NOT_EXIST


StagedItem = tuple[int, BatchItem]
"""Where a staged message lies in the log, and what is copied of it."""


class StagedMessages(NamedTuple):
    """Some messages of a stretch, read for copying."""

    first: StoredMessage
    """The first of them, from which all take what one send has in common."""
    items: list[StagedItem]


async def check_share(store: Store, topics: Topics, share: Share) -> int:
    """Raise if a share cannot be published; returns the lowest log offset that it needs."""
    if len(share) > STRETCHES_MAX:
        raise StagedGone(
            f"an epoch of {len(share)} sends is too large, {STRETCHES_MAX} is the most: write "
            "smaller epochs or raise sendBatchBytes"
        )
    for topic, queue_id in {(stretch.topic, stretch.queue_id) for stretch in share}:
        _check_destination(topics, topic, queue_id)
    lowest = store.log_max
    for number, stretch in enumerate(share):
        lowest = min(lowest, await _check_stretch(store, stretch))
        if number % STRETCHES_PER_SLICE == 0:
            await asyncio.sleep(0)
    return lowest


async def lowest_place(store: Store, share: Share) -> int:
    """The lowest log offset of a share's messages that are still there."""
    lowest = store.log_max
    for number, stretch in enumerate(share):
        queue = store.queues.get(STAGE_TOPIC, stretch.stage_queue)
        entry = queue.entry(stretch.offset) if queue is not None else None
        if entry is not None:
            lowest = min(lowest, entry[0])
        if number % STRETCHES_PER_SLICE == 0:
            await asyncio.sleep(0)
    return lowest


def _check_destination(topics: Topics, topic: str, queue_id: int) -> None:
    known = topics.get(topic)
    if known is None:
        raise DestinationRefused(f"topic {topic} does not exist here: create it and write again")
    if not known.perm & WRITE:
        raise DestinationRefused(f"topic {topic} takes no messages here (perm {known.perm})")
    if not 0 <= queue_id < known.write_queue_nums:
        raise DestinationRefused(f"topic {topic} has no queue {queue_id} to write to")


async def _check_stretch(store: Store, stretch: Stretch) -> int:
    """The log offset of the first record; raises if messages are gone.

    Checking the last one is enough: one send wrote them all, and a power cut takes the end of the
    log.
    """
    end = stretch.offset + stretch.count
    queue = store.queues.get(STAGE_TOPIC, stretch.stage_queue)
    if queue is None or stretch.count < 1 or not queue.min_offset <= stretch.offset <= end:
        raise _gone(stretch, "they expired")
    if end > queue.max_offset:
        raise _gone(stretch, "the broker lost them")
    last = await _read(store, stretch.stage_queue, end - 1, 1)
    if last is None:
        raise _gone(stretch, "they expired")
    found = find_property(decode_record(last).raw_properties, b"UNIQ_KEY")
    if found != stretch.last_id.encode():
        raise _gone(stretch, "the broker lost them")
    first = queue.entry(stretch.offset)
    return first[0] if first is not None else store.log_min


def _gone(stretch: Stretch, why: str) -> StagedGone:
    return StagedGone(
        f"{stretch.count} staged messages for {stretch.topic} are gone ({why}), so nothing of "
        "the epoch is published: write it again"
    )


async def _read(store: Store, stage_queue: int, offset: int, count: int) -> bytes | None:
    # A copy's topic may have a longer name, and an append must fit into one log file.
    size_max = min(READ_BYTES_MAX, store.config.record_bytes_max // 3)
    outcome = store.reads.pull(STAGE_TOPIC, stage_queue, offset, count, size_max)
    pulled = outcome if isinstance(outcome, ReadResult) else await outcome
    return pulled.body if pulled.status is ReadStatus.FOUND else None


async def read_slice(store: Store, stretch: Stretch, done: int) -> StagedMessages | None:
    """The next messages of a stretch, behind the first `done`; None if they are gone."""
    count = min(READ_MESSAGES_MAX, stretch.count - done)
    data = await _read(store, stretch.stage_queue, stretch.offset + done, count)
    if data is None:
        return None
    first = decode_record(data)
    if first.queue_offset != stretch.offset + done:
        return None
    return StagedMessages(first, list(_items(data)))


def _items(data: bytes) -> Iterator[StagedItem]:
    """Log offset, flag, body and properties of consecutive records."""
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        flag, place, sys_flag = _MIDDLE.unpack_from(data, at + _AT_FLAG)
        body_at = at + LAYOUTS[sys_flag & (BORN_V6 | STORE_V6)].size
        (body_size,) = _BODY_SIZE.unpack_from(data, body_at - 4)
        body_end = body_at + body_size
        text_at = body_end + 1 + data[body_end]
        (text_size,) = _TEXT_SIZE.unpack_from(data, text_at)
        text_at += 2
        yield place, (flag, data[body_at:body_end], data[text_at : text_at + text_size])
        at += size
