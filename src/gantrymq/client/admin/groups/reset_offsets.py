"""Resets: moving a group's progress, with a preview of the effect."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from gantrymq.base.config import parse_properties
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.membership.offset_store import RemoteOffsets, queue_pairs
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import GroupRequest
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest
from gantrymq.protocol.headers.resets import ConsumerStatusRequest, ResetRequest

STATUS_SECONDS_MAX: Final = 10.0
"""Brokers give each member 5 s to answer."""

To = Literal["first", "last"] | int | datetime
"""Where to: an end of the queue, an offset, or the first message stored at a time or later."""


class ResetRow(NamedTuple):
    """What a reset does to one queue."""

    queue: Queue
    now: int | None
    """The group's progress before; None: it never read this queue."""
    new: int
    first: int
    end: int
    """What the queue holds: its first offset and the next one to be given."""

    @property
    def again(self) -> int:
        """How many messages will be read again."""
        return max(0, (self.now or 0) - self.new) if self.now is not None else 0

    @property
    def skipped(self) -> int:
        """How many messages will be skipped."""
        return max(0, self.new - (self.now or 0)) if self.now is not None else 0

    @property
    def changes(self) -> bool:
        return self.now != self.new


async def preview(
    instance: Instance, group: str, topic: str, to: To, *, queue: Queue | None, force: bool
) -> list[ResetRow]:
    """What `reset` with the same arguments would do now; changes nothing.

    Without `force` progress only moves back: a queue whose progress is smaller stays as it is.
    """
    route = await instance.routes.refresh(topic)
    queues = sorted(instance.routes.subscribe_queues(route, topic))
    if queue is not None and queue not in queues:
        raise ClientError(f"{queue} is no queue of {topic!r} that can be read")
    progress = RemoteOffsets(instance, group, skip_young_queues=True)
    rows = []
    for each in queues if queue is None else [queue]:
        first = await queue_offsets.min_offset(instance, each)
        end = await queue_offsets.max_offset(instance, each)
        place = await _place(instance, each, to, first, end, exact=queue is not None)
        now = await progress.read(each)
        if now is not None and not force:
            place = min(place, now)
        rows.append(ResetRow(each, now, place, first, end))
    return rows


async def _place(
    instance: Instance, queue: Queue, to: To, first: int, end: int, *, exact: bool
) -> int:
    if isinstance(to, datetime):
        at_ms = int(to.timestamp() * 1000)
        return await queue_offsets.search_offset(instance, queue, at_ms)
    if isinstance(to, int):
        if exact and not first <= to <= end:
            raise ClientError(f"{queue} holds offsets {first} to {end}; {to} is none of them")
        return min(max(to, first), end)
    if to not in ("first", "last"):
        raise ClientError(f"{to!r} is neither first nor last, an offset or a time")
    return first if to == "first" else end


async def reset(instance: Instance, group: str, rows: Sequence[ResetRow]) -> list[ResetRow]:
    """Carry out a preview; returns the rows that were moved.

    With `useServerSideResetOffset` (GantryMQ, RocketMQ 5) the broker moves the progress and running
    members follow. Without it only the progress of a group that is not running can be moved.
    """
    moved = [row for row in rows if row.changes]
    for broker_name in dict.fromkeys(row.queue.broker_name for row in moved):
        address = instance.routes.address_of(broker_name)
        mine = [row for row in moved if row.queue.broker_name == broker_name]
        if await _moves_by_itself(instance, address):
            for row in mine:
                await _move(instance, address, group, row)
        else:
            await _move_offline(instance, address, group, mine)
    return moved


async def _moves_by_itself(instance: Instance, address: str) -> bool:
    """Whether the broker resets single queues; an older one would reset all queues instead."""
    _, answer = await instance.call(address, calls.GET_BROKER_CONFIG, Nothing())
    settings = parse_properties(answer.body.decode("utf-8", "replace"))
    return settings.get("useServerSideResetOffset") == "true"


async def _move(instance: Instance, address: str, group: str, row: ResetRow) -> None:
    header = ResetRequest(
        group=group,
        topic=row.queue.topic,
        timestamp=0,
        is_force=True,
        queue_id=row.queue.queue_id,
        offset=row.new,
    )
    try:
        await instance.call(address, calls.INVOKE_BROKER_TO_RESET_OFFSET, header)
    except BrokerRefused as error:
        if error.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
            raise ClientError(f"no group {group!r} on {row.queue.broker_name}") from error
        raise


async def _move_offline(
    instance: Instance, address: str, group: str, rows: Sequence[ResetRow]
) -> None:
    _, answer = await instance.call(
        address,
        calls.GET_CONSUMER_CONNECTION_LIST,
        GroupRequest(consumer_group=group),
        expect=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
    )
    if answer.code == ResponseCode.SUCCESS:
        raise ClientError(
            f"{rows[0].queue.broker_name} cannot move the progress of a running group by itself "
            f"(useServerSideResetOffset is not on): stop {group!r} first, its members would undo it"
        )
    for row in rows:
        header = UpdateConsumerOffsetRequest(
            consumer_group=group,
            topic=row.queue.topic,
            queue_id=row.queue.queue_id,
            commit_offset=row.new,
        )
        await instance.call(address, calls.UPDATE_CONSUMER_OFFSET, header)


async def consumer_status(
    instance: Instance, address: str, group: str, topic: str
) -> dict[str, dict[Queue, int]]:
    """Client id to the progress that the running member reports."""
    header = ConsumerStatusRequest(topic=topic, group=group)
    _, answer = await instance.call(
        address, calls.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header, timeout=STATUS_SECONDS_MAX
    )
    table = fastjson.loads(answer.body) if answer.body else {}
    members = table.get("consumerTable") or {}
    return {client_id: dict(queue_pairs(rows)) for client_id, rows in members.items()}
