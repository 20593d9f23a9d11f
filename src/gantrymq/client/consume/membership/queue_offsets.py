"""The first and next offset of a queue, and where a group without progress begins."""

from datetime import datetime
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import TIMESTAMP_FORMAT
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol import calls
from gantrymq.protocol.headers.messages import QueueRequest, SearchOffsetRequest

FROM_FIRST: Final = "CONSUME_FROM_FIRST_OFFSET"
FROM_TIMESTAMP: Final = "CONSUME_FROM_TIMESTAMP"
TIMESTAMP_DEFAULT_MS_AGO: Final = 30 * 60_000


async def _master(instance: Instance, queue: Queue) -> str:
    await instance.routes.get(queue.topic)
    return instance.routes.address_of(queue.broker_name, any_id=True)


async def max_offset(instance: Instance, queue: Queue) -> int:
    """The offset that the next message of the queue will get."""
    header = QueueRequest(topic=queue.topic, queue_id=queue.queue_id)
    address = await _master(instance, queue)
    found, _ = await instance.call(address, calls.GET_MAX_OFFSET, header)
    return found.offset


async def min_offset(instance: Instance, queue: Queue) -> int:
    """The offset of the oldest message that is still stored."""
    header = QueueRequest(topic=queue.topic, queue_id=queue.queue_id)
    address = await _master(instance, queue)
    found, _ = await instance.call(address, calls.GET_MIN_OFFSET, header)
    return found.offset


async def search_offset(instance: Instance, queue: Queue, timestamp_ms: int) -> int:
    """The offset of the first message stored at that time or later."""
    header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms)
    address = await _master(instance, queue)
    found, _ = await instance.call(address, calls.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return found.offset


async def start_offset(
    instance: Instance, offsets: OffsetStore, queue: Queue, where: str, timestamp_ms: int
) -> int:
    """The offset to begin at: the stored progress, or without any the one that `where` chooses.

    A group without progress reads its retry topic from the first offset, or from the last if
    `where` is a timestamp.
    """
    stored = await offsets.read(queue)
    if stored is not None:
        return stored
    is_retry = queue.topic.startswith(RETRY_PREFIX)
    if where == FROM_FIRST or (is_retry and where != FROM_TIMESTAMP):
        return await min_offset(instance, queue)
    if where == FROM_TIMESTAMP and not is_retry:
        return await search_offset(instance, queue, timestamp_ms)
    return await max_offset(instance, queue)


def timestamp_of(text: str | None, now_ms: int) -> int:
    """A `yyyyMMddHHmmss` in local time as milliseconds; None is half an hour ago."""
    if text is None:
        return now_ms - TIMESTAMP_DEFAULT_MS_AGO
    try:
        return int(datetime.strptime(text, TIMESTAMP_FORMAT).astimezone().timestamp() * 1000)
    except ValueError as error:
        raise ConfigError(f"consume_timestamp is yyyyMMddHHmmss, not {text!r}") from error
