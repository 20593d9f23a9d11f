"""Which messages a spread has copied: every copy has a property with its first place.

Progress is stored after the copies, so an interrupted spread leaves copies of messages that are
still unread by the group's progress. They are the last that were written: the target queues are
read from their ends backwards until copies of messages below the progress appear.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gantrymq.client.admin.groups.members import together
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol import properties

READER: Final = "TOOLS_CONSUMER"
"""The group that RocketMQ keeps for tools: neither topic is read on behalf of the group."""
BLOCK: Final = 256
ACCOUNTED_MAX: Final = 20_000
"""A backward scan ends after so many copies of messages that the progress has passed."""
COPIES_MAX: Final = 1_000_000
"""More copies than an interrupted spread leaves: the progress was reset since."""
SKEW_MS: Final = 60_000
"""How far the clocks of two brokers may be apart."""

Copies = dict[Queue, set[int]]
"""Queue of the old topic to the offsets of which there are copies."""


def mark_of(message: Received) -> str:
    queue = message.queue
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}/{message.offset}"


def parse_mark(text: str) -> tuple[Queue, int] | None:
    """The queue and offset a copy comes from; None if the text is not a mark."""
    topic, _, rest = text.partition("/")
    broker, *numbers = rest.rsplit("/", 2)
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return Queue(topic, broker, int(numbers[0])), int(numbers[1])


async def read_block(
    instance: Instance, queue: Queue, at: int, end: int
) -> tuple[list[Received], int]:
    """Messages from `at` up to, not including, `end`, and the next offset (`at`: none there)."""
    pulled = await pull_raw(instance, READER, queue, at, max_count=min(BLOCK, end - at))
    if pulled.status is PullStatus.NO_NEW:
        return [], at
    if pulled.next_offset <= at:
        raise ClientError(f"{queue} cannot be read at {at}: sent back to {pulled.next_offset}")
    found = read_records(pulled.body, queue.broker_name)
    return [message for message in found if message.offset < end], min(pulled.next_offset, end)


async def copies_there(
    instance: Instance, targets: Iterable[Queue], starts: Mapping[Queue, int]
) -> Copies:
    """Which messages, from these offsets on, have a copy in the target queues."""
    since_ms = await _since(instance, starts)
    if since_ms is None:
        return {}
    scans = await together(_scan(instance, target, starts, since_ms) for target in targets)
    found: Copies = {}
    for part in scans:
        for queue, offsets in part.items():
            found.setdefault(queue, set()).update(offsets)
    if sum(map(len, found.values())) > COPIES_MAX:
        raise ClientError(
            f"over {COPIES_MAX} messages behind the group's progress have been moved before: if it "
            "was reset, move it forward again"
        )
    return found


async def _since(instance: Instance, starts: Mapping[Queue, int]) -> int | None:
    """Store time in ms of the oldest message that may have a copy; None without such a message."""
    times = []
    for queue, at in starts.items():
        messages, _ = await read_block(instance, queue, at, at + 1)
        times += [message.store_ms for message in messages]
    return min(times) - SKEW_MS if times else None


async def _scan(
    instance: Instance, target: Queue, starts: Mapping[Queue, int], since_ms: int
) -> Copies:
    """Scan a target backwards, until each source queue shows a copy from below its start."""
    end = await queue_offsets.max_offset(instance, target)
    low = await queue_offsets.min_offset(instance, target)
    if low < end:
        low = max(low, await queue_offsets.search_offset(instance, target, since_ms))
    found: Copies = {}
    open_queues = set(starts)
    accounted = 0
    while low < end and open_queues and accounted < ACCOUNTED_MAX:
        at = begin = max(low, end - BLOCK)
        while at < end:
            messages, after = await read_block(instance, target, at, end)
            at = after if after > at else end
            for queue, offset in _marks(messages):
                if queue not in starts:
                    continue
                if offset >= starts[queue]:
                    found.setdefault(queue, set()).add(offset)
                    accounted = 0
                else:
                    open_queues.discard(queue)
                    accounted += 1
        if sum(map(len, found.values())) > COPIES_MAX:
            break
        end = begin
    return found


def _marks(messages: Iterable[Received]) -> Iterable[tuple[Queue, int]]:
    for message in messages:
        mark = parse_mark(message.properties.get(properties.SPREAD_FROM, ""))
        if mark is not None:
            yield mark
