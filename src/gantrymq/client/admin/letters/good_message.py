"""A message of the same topic that a group consumed well, to lay beside a dead letter."""

from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.letters.dead_letters import Letter
from gantrymq.client.admin.messages.message_query import by_key, read_records
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue, dead_topic, retry_topic

BLOCK: Final = 64
"""So far around the letter's own place it is looked for."""
TRIED_MAX: Final = 12
QUEUES_MAX: Final = 4
READER: Final = "TOOLS_CONSUMER"


async def went_well(admin: Admin, group: str, letter: Letter) -> Received | None:
    """The nearest message that the group is past and that was never given back; None if unknown.

    It is preferably one with the letter's tag. Groups say how far they are and not what came of a
    message, so one that a handler skipped counts as well.
    """
    if not letter.topic:
        return None
    try:
        progress = (await admin.consume_stats(group, letter.topic)).queues
        places = await _places(admin, letter)
    except GantryError:
        return None
    candidates: list[Received] = []
    for queue, offset in places:
        row = progress.get(queue)
        if row is not None:
            candidates += await _around(admin, queue, offset, row.consumer_offset)
    tag = letter.message.tags
    candidates.sort(key=lambda each: (each.tags != tag, abs(each.born_ms - letter.message.born_ms)))
    for each in candidates[:TRIED_MAX]:
        if each.msg_id != letter.message.msg_id and not await _came_back(admin, group, each):
            return each
    return None


async def _places(admin: Admin, letter: Letter) -> list[tuple[Queue, int]]:
    """Where the letter's first copy lies; if it is deleted, where others of its time do."""
    instance = admin.instance
    found = await by_key(instance, letter.topic, letter.message.msg_id, unique=True)
    if found:
        return [(found[0].queue, found[0].offset)]
    route = await instance.routes.get(letter.topic)
    queues = sorted(instance.routes.subscribe_queues(route, letter.topic))[:QUEUES_MAX]
    born_ms = letter.message.born_ms
    return [(queue, await admin.search_offset(queue, born_ms)) for queue in queues]


async def _around(admin: Admin, queue: Queue, offset: int, end: int) -> list[Received]:
    """Messages before and behind an offset, those that the group is past."""
    begin = max(0, offset - BLOCK // 2)
    try:
        pulled = await pull_raw(admin.instance, READER, queue, begin, max_count=BLOCK)
    except GantryError:
        return []
    found = read_records(pulled.body, queue.broker_name)
    return [each for each in found if each.offset < end and each.offset != offset]


async def _came_back(admin: Admin, group: str, message: Received) -> bool:
    """Whether the group gave it back, or let it die."""
    for topic in (retry_topic(group), dead_topic(group)):
        try:
            if await by_key(admin.instance, topic, message.msg_id, unique=True):
                return True
        except NoRoute:
            continue
    return False
