"""Transactions that nobody decided: half messages that wait, and those brokers gave up.

A broker stores half messages in a topic of its own, and each decision in another. What has no
decision yet is found by reading both, from where the broker's own group stands; so it works for
RocketMQ's brokers, too.
"""

from typing import Final, NamedTuple

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import BrokerRefused, NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, Queue
from gantrymq.protocol import calls, properties
from gantrymq.protocol.headers.messages import QueryConsumerOffsetRequest
from gantrymq.protocol.headers.transactions import CheckHalfRequest, ResumeCheckRequest

GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The brokers' own group: its progress says where undecided half messages begin."""
READER: Final = "TOOLS_CONSUMER"
HALVES_MAX: Final = 5_000
DECISIONS_MAX: Final = 50_000
PULL_COUNT: Final = 512


class HalfTable(NamedTuple):
    """The undecided half messages of one broker, the oldest first."""

    halves: list[Received]
    gave_up: list[Received]
    """Those that the broker no longer asks about, the newest first."""
    complete: bool
    """False if there are more than are read at once."""


async def undecided(admin: Admin, broker: str, address: str, *, count: int) -> HalfTable:
    """What one broker has; `count` is for those that it gave up."""
    queue, ops = Queue(HALF_TOPIC, broker, 0), Queue(OP_HALF_TOPIC, broker, 0)
    try:
        begin = await _progress(admin, address, queue)
        stored, whole = await _read(admin, queue, begin, HALVES_MAX)
    except NoRoute:
        stored, whole = [], True  # no transaction was ever begun there
    halves = stored
    if stored:
        notes, all_notes = await _decisions(admin, address, ops)
        decided = _decided(notes)
        halves = [each for each in stored if each.offset not in decided]
        whole = whole and all_notes
    return HalfTable(_newest_copies(halves), await _gave_up(admin, broker, count), whole)


async def resume_check(admin: Admin, address: str, topic: str, offset_msg_id: str) -> None:
    """Let a broker ask again about a half message that it gave up."""
    header = ResumeCheckRequest(topic=topic, msg_id=offset_msg_id)
    await admin.instance.call(address, calls.RESUME_CHECK_HALF_MESSAGE, header)


async def check_now(admin: Admin, address: str, topic: str, offset_msg_id: str) -> None:
    """Let a broker ask now about a half message; RocketMQ's ask in their interval only."""
    header = CheckHalfRequest(topic=topic, msg_id=offset_msg_id)
    await admin.instance.call(address, calls.CHECK_HALF_MESSAGE, header)


async def _decisions(admin: Admin, address: str, ops: Queue) -> tuple[list[Received], bool]:
    """The decisions that count, and whether these are all; before the first there is no topic."""
    try:
        since = await _progress(admin, address, ops)
        return await _read(admin, ops, since, DECISIONS_MAX)
    except NoRoute:
        return [], True


def _decided(notes: list[Received]) -> set[int]:
    """The half queue offsets that decisions name: one in a record, or several with commas."""
    words = (word for note in notes for word in note.body.split(b","))
    return {int(word) for word in words if word.isdigit()}


def _newest_copies(halves: list[Received]) -> list[Received]:
    """One of each message: a check-back stores it again before it notes the old copy as done."""
    found = {each.properties.get(properties.UNIQ_KEY, each.offset_msg_id): each for each in halves}
    return sorted(found.values(), key=lambda each: each.born_ms)


async def _progress(admin: Admin, address: str, queue: Queue) -> int:
    header = QueryConsumerOffsetRequest(
        consumer_group=GROUP, topic=queue.topic, queue_id=queue.queue_id
    )
    first = await admin.min_offset(queue)
    try:
        found, _ = await admin.instance.call(address, calls.QUERY_CONSUMER_OFFSET, header)
    except BrokerRefused:
        return first
    return max(first, found.offset)


async def _read(admin: Admin, queue: Queue, offset: int, most: int) -> tuple[list[Received], bool]:
    """The messages from an offset on, and whether these are all."""
    found: list[Received] = []
    while len(found) < most:
        pulled = await pull_raw(admin.instance, READER, queue, offset, max_count=PULL_COUNT)
        if pulled.status is PullStatus.FOUND:
            found += read_records(pulled.body, queue.broker_name)
        if pulled.next_offset <= offset or pulled.status is PullStatus.NO_NEW:
            return found, True
        offset = pulled.next_offset
    return found, False


async def _gave_up(admin: Admin, broker: str, count: int) -> list[Received]:
    queue = Queue(CHECK_MAX_TOPIC, broker, 0)
    try:
        end = await admin.max_offset(queue)
        begin = max(await admin.min_offset(queue), end - count)
        found, _ = await _read(admin, queue, begin, count)
    except (NoRoute, BrokerRefused):  # it never gave one up
        return []
    return found[::-1]
