"""What is done with a topic: send a message, fewer queues, a backlog moved into more queues."""

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gantrymq.base.plurals import counted
from gantrymq.client.admin.topics.shrink import shrink_topic, unread_beyond
from gantrymq.client.admin.topics.spread import RATE_DEFAULT, Spread, SpreadRow
from gantrymq.client.produce.producer import Producer
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable
from gantrymq.console.api.jobs import JobStarted, started
from gantrymq.console.api.seen import Seen
from gantrymq.console.api.topics import NamedTopic, QueueCount
from gantrymq.console.errors import BadInput
from gantrymq.console.jobs import ConsoleJob
from gantrymq.model import Message

TABLE = EndpointTable("topics")

PRODUCER_GROUP: Final = "gantry-console"
DRAIN_SECONDS: Final = 3600.0


class NewMessage(NamedTopic, frozen=True, kw_only=True):
    """A message to send."""

    body: str = ""
    body_base64: str | None = None
    """Instead of a text: any bytes."""
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    delay_level: Annotated[int, Meta(ge=0, le=18)] = 0
    delay_seconds: Annotated[float, Meta(ge=0)] | None = None
    deliver_at_ms: Annotated[int, Meta(ge=0)] | None = None
    sharding_key: str | None = None
    """Messages with one key go to one queue, in order."""


class MessageSent(Answer, frozen=True, kw_only=True):
    """Where a message was stored."""

    text: str
    status: str
    msg_id: str
    offset_msg_id: str | None
    broker: str
    queue_id: int
    offset: int
    recall_handle: str | None
    """By which a delayed message can be recalled."""


class ShrinkPlan(NamedTopic, frozen=True, kw_only=True):
    """Fewer queues of a topic on each broker."""

    queues: QueueCount


class Shrinking(ShrinkPlan, frozen=True, kw_only=True):
    """How to get there."""

    timeout_seconds: Annotated[float, Meta(ge=1)] = DRAIN_SECONDS
    """How long to wait for groups that have not read the queues to remove."""


class ShrinkPreview(Answer, frozen=True, kw_only=True):
    """What stands in the way of fewer queues."""

    unread: dict[str, int]
    """Unread messages in the queues to remove, by group."""
    text: str


class SpreadPlan(NamedTopic, frozen=True, kw_only=True):
    """Which backlog is moved where."""

    group: str
    to: str
    """The topic with more queues; created if it is missing."""
    queues: QueueCount
    """Its queues on each broker."""
    rate: Annotated[float, Meta(gt=0)] = RATE_DEFAULT
    """Messages a second, at most."""
    keyless: Literal["spread", "queue", "keys"] | None = None
    """Where messages without a sharding key go: anywhere, where their queue goes, by first key."""
    force: bool = False
    """Also while members of the group read the topic."""


class QueueToSpread(Answer, frozen=True, kw_only=True):
    """The unread messages of one queue."""

    broker: str
    queue_id: int
    waiting: int


class SpreadPreview(Answer, frozen=True, kw_only=True):
    """What a spread would move."""

    queues: list[QueueToSpread]
    waiting: int


@TABLE.post("/clusters/{cluster}/topics/{topic}/messages")
async def send_message(ask: Ask, wanted: NewMessage) -> MessageSent:
    """Send a message, now or for later."""
    message = _message(wanted)
    admin = await ask.admin(wanted.cluster)
    async with Producer(group=PRODUCER_GROUP, client=admin.instance.options) as producer:
        result = await producer.send(message)
    queue = result.queue
    return MessageSent(
        text=f"message {result.msg_id} is in {queue}, offset {result.offset}",
        status=str(result.status),
        msg_id=result.msg_id,
        offset_msg_id=result.offset_msg_id,
        broker=queue.broker_name,
        queue_id=queue.queue_id,
        offset=result.offset,
        recall_handle=result.recall_handle,
    )


def _message(wanted: NewMessage) -> Message:
    try:
        body = wanted.body.encode()
        if wanted.body_base64 is not None:
            body = base64.b64decode(wanted.body_base64, validate=True)
        return Message(
            wanted.topic,
            body,
            tags=wanted.tags,
            keys=wanted.keys,
            properties=wanted.properties,
            delay_level=wanted.delay_level,
            delay=wanted.delay_seconds,
            deliver_at=wanted.deliver_at_ms,
            sharding_key=wanted.sharding_key,
        )
    except binascii.Error as error:
        raise BadInput(f"bodyBase64: {error}") from None
    except (ValueError, TypeError) as error:
        raise BadInput(str(error)) from None


@TABLE.get("/clusters/{cluster}/topics/{topic}/shrink")
async def preview_shrink(ask: Ask, wanted: ShrinkPlan) -> ShrinkPreview:
    """Who has unread messages in the queues that would be removed."""
    admin = await ask.admin(wanted.cluster)
    unread = await unread_beyond(admin, wanted.topic, wanted.queues)
    left = ", ".join(f"{group}: {count}" for group, count in unread.items())
    text = f"waits until these are read: {left}" if left else "nothing unread is in the way"
    return ShrinkPreview(unread=unread, text=text)


@TABLE.post("/clusters/{cluster}/topics/{topic}/shrink")
async def begin_shrink(ask: Ask, wanted: Shrinking) -> JobStarted:
    """Give a topic fewer queues without losing a message; a job.

    Write queues are reduced first, and read queues once every group has read the surplus ones.
    """
    admin = await ask.admin(wanted.cluster)

    async def work(job: ConsoleJob) -> str:
        await shrink_topic(
            admin, wanted.topic, wanted.queues, timeout=wanted.timeout_seconds, say=job.say
        )
        ask.parts.tables.forget(admin)
        return f"topic {wanted.topic} has {counted(wanted.queues, 'queue')} on each broker"

    title = f"shrink {wanted.topic} to {counted(wanted.queues, 'queue')}"
    return started(ask.begin_job(wanted.cluster, f"topic {wanted.topic}", title, work))


@TABLE.get("/clusters/{cluster}/topics/{topic}/spread")
async def preview_spread(ask: Ask, wanted: SpreadPlan) -> SpreadPreview:
    """What a spread of a group's backlog would move."""
    rows = await (await _spread(ask, wanted)).plan()
    queues = [
        QueueToSpread(
            broker=row.queue.broker_name, queue_id=row.queue.queue_id, waiting=row.waiting
        )
        for row in rows
    ]
    return SpreadPreview(queues=queues, waiting=sum(row.waiting for row in rows))


@TABLE.post("/clusters/{cluster}/topics/{topic}/spread")
async def begin_spread(ask: Ask, wanted: SpreadPlan) -> JobStarted:
    """Move a group's backlog into a topic with more queues; a job.

    The group's progress follows the copies: a spread that was stopped goes on when it is begun
    again.
    """

    async def work(job: ConsoleJob) -> str:
        def say(line: str) -> None:
            job.say(line)
            job.total = sum(row.waiting for row in spread.rows)
            job.done = sum(row.moved + row.skipped for row in spread.rows)

        spread = await _spread(ask, wanted, say)
        rows = await spread.run()
        ask.parts.tables.forget(await ask.admin(wanted.cluster))
        return _spread_text(rows, wanted)

    seen = await Seen.of(ask, wanted.cluster)
    seen.check_copy(ask, frozenset([wanted.topic]), wanted.to)
    waiting = sum(row.waiting for row in await (await _spread(ask, wanted)).plan())
    title = f"spread {counted(waiting, 'message')} of {wanted.topic} into {wanted.to}"
    return started(ask.begin_job(wanted.cluster, f"topic {wanted.topic}", title, work))


async def _spread(
    ask: Ask, wanted: SpreadPlan, say: Callable[[str], None] = lambda _: None
) -> Spread:
    return Spread(
        await ask.admin(wanted.cluster),
        wanted.topic,
        group=wanted.group,
        to=wanted.to,
        queues=wanted.queues,
        rate=wanted.rate,
        keyless=wanted.keyless,
        force=wanted.force,
        say=say,
    )


def _spread_text(rows: list[SpreadRow], wanted: SpreadPlan) -> str:
    moved, skipped = sum(row.moved for row in rows), sum(row.skipped for row in rows)
    return (
        f"{counted(moved, 'message')} moved to {wanted.to}, {skipped} had been before: let "
        f"{wanted.group} subscribe to {wanted.to}"
    )
