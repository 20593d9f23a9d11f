"""What the plan of a query needs: queues, their first and next offsets, samples, progress."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from gantrymq.base.errors import ConfigError
from gantrymq.client.admin.tables import topic_offsets
from gantrymq.client.consume.membership.offset_store import RemoteOffsets
from gantrymq.client.consume.membership.queue_offsets import max_offset, min_offset, search_offset
from gantrymq.client.consume.membership.subscriptions import SQL, check_sql
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.core.errors import BrokerRefused, NoNameServer, NoRoute
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.routes import subscribe_queues
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, Queue, is_system_topic
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import TopicList
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.topics import TopicRequest
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.protocol.subscription import subscription

SAMPLE_MESSAGES: Final = 16
"""So many messages are looked at to learn how large a queue's messages are."""
SAMPLE_BYTES: Final = 256 * 1024


async def matching_topics(instance: Instance, pattern: str) -> list[str]:
    """The topics of a cluster whose names match the pattern."""
    _, answer = await instance.call_namesrv(calls.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Nothing())
    names = fastjson.load_as(answer.body, TopicList).topic_list if answer.body else []
    return match_names(names or (), pattern)


def match_names(names: Iterable[str], pattern: str) -> list[str]:
    """The topics whose whole name matches; retry and dead-letter topics only if it has `%`."""
    private = () if "%" in pattern else (RETRY_PREFIX, DEAD_PREFIX)
    return sorted(
        name
        for name in names
        if re.fullmatch(pattern, name)
        and not is_system_topic(name)
        and not name.startswith(private)
    )


async def check_condition(
    instance: Instance, group: str, condition: str, topics: Sequence[str]
) -> None:
    """Ask every broker of the topics whether it takes an SQL condition, before anything is read."""
    for topic in topics:
        route = await instance.routes.get(topic)
        wanted = subscription(topic, condition, SQL)
        for data in route.broker_datas:
            address = instance.routes.address_of(data.broker_name, any_id=True)
            try:
                await check_sql(instance, group, address, wanted)
            except BrokerRefused as error:
                raise ConfigError(
                    f"{data.broker_name} does not take sqlFilter ({error.remark}): set "
                    "enablePropertyFilter=true there, or filter in the query"
                ) from error


# where queues begin and end


async def bounds(
    instance: Instance, topics: Sequence[str], *, may_vanish: bool = False, anew: bool = True
) -> tuple[QueueOffsets, QueueOffsets]:
    """The first and the next offset of every queue that may be read.

    This sends one request a broker and topic. A topic without a route is an error unless
    `may_vanish`. With `anew` routes are looked up again, else those known are used.
    """
    if anew:
        await asyncio.gather(*(_refresh(instance, topic) for topic in topics))
    found = await asyncio.gather(*(_bounds(instance, topic, may_vanish) for topic in topics))
    lows: QueueOffsets = {}
    highs: QueueOffsets = {}
    for some_lows, some_highs in found:
        lows |= some_lows
        highs |= some_highs
    return lows, highs


async def _bounds(
    instance: Instance, topic: str, may_vanish: bool
) -> tuple[QueueOffsets, QueueOffsets]:
    try:
        route = await instance.routes.get(topic)
    except NoRoute:
        if may_vanish:
            return {}, {}
        raise
    queues = subscribe_queues(route, topic)
    brokers = sorted({queue.broker_name for queue in queues})
    tables = await asyncio.gather(*(_table(instance, topic, broker) for broker in brokers))
    known = {queue: row for table in tables for queue, row in table.items()}
    lows, highs = {}, {}
    for queue in queues:
        row = known.get(queue)
        if row is None:  # its table lacks the queue, or it refused the request
            row = await min_offset(instance, queue), await max_offset(instance, queue)
        lows[queue], highs[queue] = max(0, row[0]), row[1]  # an empty queue may begin at -1
    return lows, highs


async def _table(instance: Instance, topic: str, broker: str) -> dict[Queue, tuple[int, int]]:
    address = instance.routes.address_of(broker, any_id=True)
    try:
        _, answer = await instance.call(
            address, calls.GET_TOPIC_STATS_INFO, TopicRequest(topic=topic)
        )
    except BrokerRefused:
        return {}
    rows = topic_offsets(answer.body)
    return {queue: (row.min_offset, row.max_offset) for queue, row in rows.items()}


async def _refresh(instance: Instance, topic: str) -> None:
    """Look a route up; the known one stays while its brokers or the name server are away."""
    with suppress(NoRoute, NoNameServer):
        await instance.routes.refresh(topic)


# what lies where


async def offsets_at(instance: Instance, group: str, times: Mapping[Queue, int]) -> QueueOffsets:
    """For each queue the first message that was stored at a time or later."""
    found = await asyncio.gather(
        *(_offset_at(instance, group, queue, at_ms) for queue, at_ms in times.items())
    )
    return dict(zip(times, found, strict=True))


async def _offset_at(instance: Instance, group: str, queue: Queue, at_ms: int) -> int:
    """The first offset stored at a time or later.

    Brokers before 5.x answer with the nearest message, before or after: it is only a hint. Store
    times never fall along a queue, so a bisection over single messages finds the offset.
    """
    low = max(0, await min_offset(instance, queue))
    high = max(low, await max_offset(instance, queue))

    async def is_late(offset: int) -> bool:
        if offset < low or offset >= high:
            return offset >= high
        first = await _first_message(instance, group, queue, offset)
        return first is None or first.store_ms >= at_ms

    hint = min(max(low, await search_offset(instance, queue, at_ms)), high)
    if await is_late(hint) and not await is_late(hint - 1):
        return hint
    while low < high:
        middle = (low + high) // 2
        if await is_late(middle):
            high = middle
        else:
            low = middle + 1
    return low


async def _first_message(
    instance: Instance, group: str, queue: Queue, offset: int
) -> StoredMessage | None:
    pulled = await pull_raw(instance, group, queue, offset, max_count=1)
    return next(decode_records(pulled.body), None)


class Sample(NamedTuple):
    """The size and age of the next messages of a queue."""

    size: float
    """Bytes a message, on average."""
    store_ms: int
    """When the first of them was stored."""


async def samples(instance: Instance, group: str, starts: QueueOffsets) -> dict[Queue, Sample]:
    """A sample of the next messages of each queue; queues without any are left out."""
    found = await asyncio.gather(
        *(_sample(instance, group, queue, start) for queue, start in starts.items())
    )
    return {queue: sample for queue, sample in zip(starts, found, strict=True) if sample}


async def _sample(instance: Instance, group: str, queue: Queue, start: int) -> Sample | None:
    pulled = await pull_raw(
        instance, group, queue, start, max_count=SAMPLE_MESSAGES, max_bytes=SAMPLE_BYTES
    )
    if not pulled.body:
        return None
    messages = list(decode_records(pulled.body))
    return Sample(len(pulled.body) / len(messages), messages[0].store_ms)


async def committed(instance: Instance, group: str, queues: Sequence[Queue]) -> QueueOffsets:
    """How far a group has come; queues without progress are left out."""
    progress = RemoteOffsets(instance, group, skip_young_queues=True)
    found = await asyncio.gather(*(progress.read(queue) for queue in queues))
    return {
        queue: offset for queue, offset in zip(queues, found, strict=True) if offset is not None
    }
