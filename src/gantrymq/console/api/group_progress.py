"""The progress of a group: lag by queue, resets with a preview, and a copy for another group."""

from datetime import UTC, datetime
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.base.time_text import find_moment
from gantrymq.client.admin.groups.lag import Backlog, GroupLag, QueueLag
from gantrymq.client.admin.groups.lag_advice import advice
from gantrymq.client.admin.groups.reset_offsets import ResetRow, To, reset
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable
from gantrymq.console.api.groups import NamedGroup, known_group
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.model import Queue

TABLE = EndpointTable("groups")

EPOCH_MS_DIGITS: Final = 13
"""A number with so many digits is a time in milliseconds, not an offset."""


class QueueBacklog(Answer, frozen=True, kw_only=True):
    """The lag of one queue."""

    topic: str
    broker: str
    queue_id: int
    end: int
    """The offset that the next message gets."""
    read: int
    """The offset that the group reads next, as far as it has said."""
    first: int
    """The first message that is still there."""
    lag: int
    deleted: int
    """Messages that were deleted before the group read them."""
    holders: list[str]
    """The members that hold the queue."""
    in_hand: int
    """Messages that the holder has fetched and not finished."""
    oldest_ms: int | None
    """When the oldest unread message was stored."""
    trouble: str
    """Why it does not go on, if something is wrong."""


class GroupBacklog(Answer, frozen=True, kw_only=True):
    """The lag of one group by queue."""

    group: str
    lag: int
    retry: int
    """Retries among them."""
    dead: int
    """Dead letters, which are no part of the lag."""
    oldest_ms: int | None
    came_per_second: float
    read_per_second: float
    drain_seconds: float | None
    """How long the backlog lasts at these rates; null if it does not shrink."""
    queues: list[QueueBacklog]
    members_differ: bool
    """Whether members have different subscriptions."""
    advice: list[str]


class ResetPlan(NamedGroup, frozen=True, kw_only=True):
    """Where progress is moved."""

    topic: str
    to: str
    """`first`, `last`, an offset, or a time such as `2026-03-29 08:00` or `-15m` (UTC)."""
    queue: str | None = None
    """Only this queue, as BROKER:NUMBER."""
    force: bool = False
    """Also forwards, which skips messages."""
    zone: str = "UTC"
    """The time zone of a time without an offset."""


class QueueReset(Answer, frozen=True, kw_only=True):
    """What a reset does to one queue."""

    broker: str
    queue_id: int
    now: int | None
    """The progress before; null: the group never read this queue."""
    new: int
    again: int
    """Messages that are read again."""
    skipped: int
    changes: bool


class ResetPreview(Answer, frozen=True, kw_only=True):
    """What a reset does, or did."""

    text: str
    queues: list[QueueReset]


class ProgressCopy(NamedGroup, frozen=True, kw_only=True):
    """The progress of a group for another one."""

    topic: str
    target: str
    """The group that gets it."""


@TABLE.get("/clusters/{cluster}/groups/{group}/lag")
async def show_group_lag(ask: Ask, wanted: NamedGroup) -> GroupBacklog:
    """The lag of a group by queue, with holders, and what to do about it."""
    admin = await ask.admin(wanted.cluster)
    configs = await known_group(ask, admin, wanted.group)
    names = frozenset(await admin.topics())
    known = {wanted.group: configs}
    return _backlog(await Backlog(admin).look(wanted.group, None, known, names))


def _backlog(found: GroupLag) -> GroupBacklog:
    return GroupBacklog(
        group=found.group,
        lag=found.lag,
        retry=found.retry,
        dead=found.dead_count,
        oldest_ms=found.oldest_ms,
        came_per_second=found.came_per_second,
        read_per_second=found.read_per_second,
        drain_seconds=found.drain_seconds,
        queues=[_queue(row) for topic in found.topics for row in topic.queues],
        members_differ=found.members.differ,
        advice=advice(found),
    )


def _queue(row: QueueLag) -> QueueBacklog:
    return QueueBacklog(
        topic=row.queue.topic, broker=row.queue.broker_name, queue_id=row.queue.queue_id,
        end=row.end, read=row.read, first=row.first, lag=row.lag, deleted=row.deleted,
        holders=list(row.holders), in_hand=row.in_hand, oldest_ms=row.oldest_ms,
        trouble=row.trouble,
    )  # fmt: skip


@TABLE.get("/clusters/{cluster}/groups/{group}/reset")
async def preview_reset(ask: Ask, wanted: ResetPlan) -> ResetPreview:
    """What a reset would do to each queue; changes nothing."""
    return _reset_text(await _rows(ask, wanted), "would be moved")


@TABLE.post("/clusters/{cluster}/groups/{group}/reset")
async def reset_group(ask: Ask, wanted: ResetPlan) -> ResetPreview:
    """Move the progress of a group on a topic, whether its members run or not."""
    rows = await _rows(ask, wanted)
    admin = await ask.admin(wanted.cluster)
    await reset(admin.instance, wanted.group, rows)
    ask.parts.tables.forget(admin)
    return _reset_text(rows, "moved")


async def _rows(ask: Ask, wanted: ResetPlan) -> list[ResetRow]:
    admin = await ask.admin(wanted.cluster)
    await known_group(ask, admin, wanted.group)
    if wanted.topic not in await admin.topics():
        raise NotThere(f"there is no topic {wanted.topic!r}")
    queue = queue_of(wanted.topic, wanted.queue) if wanted.queue else None
    to = place_of(wanted.to, wanted.zone, ask.parts.clock.now_ms())
    return await admin.preview_reset(
        wanted.group, wanted.topic, to, queue=queue, force=wanted.force
    )


def place_of(text: str, zone: str, now_ms: int) -> To:
    """Where to: an end, an offset, or a time. Pure."""
    if text in ("first", "last"):
        return "first" if text == "first" else "last"
    if text.isascii() and text.isdecimal() and len(text) < EPOCH_MS_DIGITS:
        return int(text)
    ms = find_moment(text, zone, now_ms).ms
    return datetime.fromtimestamp(ms / 1000, UTC)


def queue_of(topic: str, text: str) -> Queue:
    """A queue as BROKER:NUMBER. Pure."""
    name, mark, number = text.rpartition(":")
    if not mark or not name or not (number.isascii() and number.isdecimal()):
        raise BadInput(f"queue is BROKER:NUMBER, for instance broker-a:0, not {text!r}")
    return Queue(topic, name, int(number))


def _reset_text(rows: list[ResetRow], done: str) -> ResetPreview:
    again, skipped = sum(row.again for row in rows), sum(row.skipped for row in rows)
    moved = sum(row.changes for row in rows)
    return ResetPreview(
        text=f"{moved} of {counted(len(rows), 'queue')} {done}: "
        f"{counted(again, 'message')} again, {skipped} skipped",
        queues=[
            QueueReset(
                broker=row.queue.broker_name, queue_id=row.queue.queue_id, now=row.now,
                new=row.new, again=row.again, skipped=row.skipped, changes=row.changes,
            )
            for row in rows
        ],
    )  # fmt: skip


@TABLE.post("/clusters/{cluster}/groups/{group}/clone")
async def clone_progress(ask: Ask, wanted: ProgressCopy) -> Done:
    """Give another group the progress of this one on a topic."""
    admin = await ask.admin(wanted.cluster)
    if wanted.target == wanted.group:
        raise BadInput("a group has its own progress already: name another one")
    await known_group(ask, admin, wanted.group)
    await known_group(ask, admin, wanted.target)
    await admin.clone_offsets(wanted.group, wanted.target, wanted.topic)
    ask.parts.tables.forget(admin)
    return Done(text=f"{wanted.target} has the progress of {wanted.group} on {wanted.topic}")
