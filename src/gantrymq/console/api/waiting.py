"""What waits: delayed messages and retries until their time, transactions for a decision."""

import asyncio
from typing import Annotated, Final

from msgspec import Meta

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages import waiting_messages
from gantrymq.client.admin.messages.delay_levels import waiting_levels
from gantrymq.client.admin.messages.undecided import check_now, resume_check, undecided
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.recall import recall_message
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.messages import Ms
from gantrymq.console.api.seen import MessageRow, Seen
from gantrymq.console.errors import BadInput
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.recall import RecallHandle
from gantrymq.protocol.waiting import WaitingTable

TABLE = EndpointTable("waiting")

GROUP: Final = "gantry-console"
TIMER: Final = "timer"
"""The room of messages that can be recalled; those in delay levels cannot."""
ONLY_LEVELS: Final = (
    "a RocketMQ broker tells what waits in its delay levels, and not its timer messages nor how "
    "late deliveries were"
)
SAME_TIME: Final = (
    "more messages than are shown may be due at this same time: ask for more of them at once"
)
PRODUCERS_ASKED_MAX: Final = 20
GAVE_UP_MAX: Final = 50


class WantedWaiting(OfCluster, frozen=True, kw_only=True):
    """Which waiting messages to list."""

    topic: str | None = None
    from_ms: Ms = 0
    """Due then or later."""
    count: Annotated[int, Meta(ge=1, le=1000)] = 50
    """Of each broker, at most; those due first."""


class DelayedMessage(Answer, frozen=True, kw_only=True):
    """A message that waits for its time."""

    broker: str
    topic: str
    msg_id: str
    keys: list[str]
    tags: str | None
    due_ms: int
    room: str
    """`timer`, or `level 3`."""
    can_be_recalled: bool


class DelayedTopic(Answer, frozen=True, kw_only=True):
    """How many messages of a topic wait in one room of a broker."""

    broker: str
    topic: str
    room: str
    count: int
    next_due_ms: int


class DelayRoom(Answer, frozen=True, kw_only=True):
    """A delay level or the timer of a broker, and how late its deliveries are."""

    broker: str
    room: str
    count: int
    next_due_ms: int
    overdue_ms: int
    """For how long the next one should have been delivered already."""
    delivered: int
    last_late_ms: int
    max_late_ms: int
    uncounted: int
    """Waiting messages beyond those whose topics were counted."""


class Waiting(Answer, frozen=True, kw_only=True):
    """What waits for its time."""

    messages: list[DelayedMessage]
    topics: list[DelayedTopic]
    rooms: list[DelayRoom]
    waiting: int
    overdue_ms: int
    """Of the message that is most overdue."""
    silent: dict[str, str]
    """Brokers that cannot tell everything, and why."""
    go_on_from_ms: int | None
    """Ask again with this as `fromMs` for more; null if these are all."""


class Recalled(OfCluster, frozen=True, kw_only=True):
    """A waiting message to recall."""

    broker: str
    topic: str
    msg_id: str
    due_ms: Ms


class WantedTransactions(OfCluster, frozen=True, kw_only=True):
    """Half messages of all brokers."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    """Of each broker, at most; the oldest first."""


class HalfRow(Answer, frozen=True, kw_only=True):
    """A half message without a decision."""

    row: MessageRow
    topic: str
    """Where it goes when it is committed."""
    group: str
    """The producer group that has to decide."""
    checks: int
    """How often the group was asked."""
    age_ms: int
    producers: int | None
    """Members of the group that are online; null if nobody could tell."""


class Transactions(Answer, frozen=True, kw_only=True):
    """Transactions without a decision."""

    halves: list[HalfRow]
    gave_up: list[HalfRow]
    """The newest of those that brokers no longer ask about; a check can be resumed."""
    undecided: int
    is_complete: bool
    silent: dict[str, str]
    """Brokers that cannot tell, and why."""


class NamedHalf(OfCluster, frozen=True, kw_only=True):
    """A half message, and the topic that it goes to."""

    broker: str
    topic: str
    offset_msg_id: Annotated[str, Meta(min_length=1, max_length=64)]


@TABLE.get("/clusters/{cluster}/waiting")
async def list_waiting(ask: Ask, wanted: WantedWaiting) -> Waiting:
    """Delayed messages, retries and timers: what waits, until when, and how late deliveries are."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    tables, silent = await _tables(admin, wanted)
    messages = [
        DelayedMessage(
            broker=broker,
            topic=row.topic,
            msg_id=row.msg_id,
            keys=seen.masker_of_topic(row.topic).keys(row.keys),
            tags=seen.masker_of_topic(row.topic).tags(row.tags),
            due_ms=row.due_ms,
            room=row.room,
            can_be_recalled=row.room == TIMER,
        )
        for broker, table in tables.items()
        for row in table.messages
    ]
    full = {name: each for name, each in tables.items() if len(each.messages) >= wanted.count}
    # A broker that filled its part may have more that are due with its last message, or later.
    cut_ms = min((table.messages[-1].due_ms for table in full.values()), default=None)
    go_on_ms = cut_ms
    shown = [each for each in messages if cut_ms is None or each.due_ms < cut_ms]
    if cut_ms is not None and not shown:
        shown, go_on_ms = [each for each in messages if each.due_ms <= cut_ms], cut_ms + 1
        silent |= dict.fromkeys(full, SAME_TIME)
    rooms = [
        DelayRoom(
            broker=broker,
            room=row.room,
            count=row.count,
            next_due_ms=row.next_due_ms,
            overdue_ms=row.overdue_ms,
            delivered=row.delivered,
            last_late_ms=row.last_late_ms,
            max_late_ms=row.max_late_ms,
            uncounted=row.uncounted,
        )
        for broker, table in tables.items()
        for row in table.rooms
    ]
    return Waiting(
        messages=sorted(shown, key=lambda each: each.due_ms),
        topics=_topics(tables),
        rooms=rooms,
        waiting=sum(room.count for room in rooms),
        overdue_ms=max((room.overdue_ms for room in rooms), default=0),
        silent=silent,
        go_on_from_ms=go_on_ms,
    )


def _topics(tables: dict[str, WaitingTable]) -> list[DelayedTopic]:
    rows = [
        DelayedTopic(
            broker=broker,
            topic=row.topic,
            room=row.room,
            count=row.count,
            next_due_ms=row.next_due_ms,
        )
        for broker, table in tables.items()
        for row in table.topics
    ]
    return sorted(rows, key=lambda row: -row.count)


async def _tables(
    admin: Admin, wanted: WantedWaiting
) -> tuple[dict[str, WaitingTable], dict[str, str]]:
    """The tables by broker; one that does not know the request does not hide the others."""
    found: dict[str, WaitingTable] = {}
    silent: dict[str, str] = {}

    async def ask_one(broker: str, address: str) -> None:
        try:
            found.update(
                await waiting_messages.waiting(
                    admin.instance, {broker: address}, wanted.topic, wanted.count, wanted.from_ms
                )
            )
        except waiting_messages.CannotTell:
            await ask_rocketmq(broker, address)
        except GantryError as error:
            silent[broker] = str(error)

    async def ask_rocketmq(broker: str, address: str) -> None:
        try:
            found[broker] = await waiting_levels(
                admin, broker, address, wanted.topic, wanted.count, wanted.from_ms
            )
            silent[broker] = ONLY_LEVELS
        except GantryError as error:
            silent[broker] = str(error)

    masters = await admin.masters()
    await asyncio.gather(*(ask_one(*each) for each in masters.items()))
    return dict(sorted(found.items())), dict(sorted(silent.items()))


@TABLE.post("/clusters/{cluster}/waiting/recall")
async def recall_waiting(ask: Ask, wanted: Recalled) -> Done:
    """Recall a message that waits in the timer, so that it is not delivered."""
    admin = await ask.admin(wanted.cluster)
    handle = RecallHandle(wanted.topic, wanted.broker, wanted.due_ms, wanted.msg_id).encode()
    result = await recall_message(admin.instance, GROUP, wanted.topic, handle)
    if result.state == "NOT_WAITING":
        raise BadInput(f"message {wanted.msg_id} does not wait there any more")
    said = "is recalled" if result.state else "was asked for; the broker does not tell more"
    return Done(text=f"message {wanted.msg_id} {said}")


# transactions


@TABLE.get("/clusters/{cluster}/transactions")
async def list_transactions(ask: Ask, wanted: WantedTransactions) -> Transactions:
    """Half messages without a decision, who has to decide, and those that brokers gave up."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    halves: list[Received] = []
    gave_up: list[Received] = []
    silent: dict[str, str] = {}
    is_complete, count = True, 0
    for broker, address in sorted((await admin.masters()).items()):
        try:
            table = await undecided(admin, broker, address, count=GAVE_UP_MAX)
        except GantryError as error:
            silent[broker] = str(error)
            continue
        count += len(table.halves)
        halves += table.halves[: wanted.limit]
        gave_up += table.gave_up
        is_complete = is_complete and table.complete and len(table.halves) <= wanted.limit
    online = await _online(admin, halves)
    now_ms = ask.parts.clock.now_ms()
    halves.sort(key=lambda each: each.born_ms)
    return Transactions(
        halves=[_half(seen, each, online, now_ms) for each in halves],
        gave_up=[_half(seen, each, {}, now_ms) for each in gave_up],
        undecided=count,
        is_complete=is_complete,
        silent=silent,
    )


def _half(seen: Seen, half: Received, online: dict[tuple[str, str], int], now_ms: int) -> HalfRow:
    group, topic = _decider(half)
    checks = half.properties.get(properties.CHECK_TIMES, "0")
    return HalfRow(
        row=seen.row(half),
        topic=topic,
        group=group,
        checks=int(checks) if checks.isdecimal() and len(checks) < 9 else 0,
        age_ms=max(0, now_ms - half.born_ms),
        producers=online.get((group, topic)),
    )


def _decider(half: Received) -> tuple[str, str]:
    found = half.properties
    return found.get(properties.PRODUCER_GROUP, ""), found.get(properties.REAL_TOPIC, "")


async def _online(admin: Admin, halves: list[Received]) -> dict[tuple[str, str], int]:
    """How many members the producer groups have, as far as brokers tell."""
    found: dict[tuple[str, str], int] = {}
    for group, topic in dict.fromkeys(map(_decider, halves)):
        if len(found) >= PRODUCERS_ASKED_MAX or not group or not topic:
            continue
        try:
            connections = (await admin.producers(group, topic)).connection_set
            found[group, topic] = len({each.client_id for each in connections})
        except GantryError:
            found[group, topic] = 0  # brokers answer an error when nobody is connected
    return found


@TABLE.post("/clusters/{cluster}/transactions/resume")
async def resume_transaction_check(ask: Ask, wanted: NamedHalf) -> Done:
    """Let a broker ask the producers again about a half message that it gave up."""
    admin = await ask.admin(wanted.cluster)
    masters = await admin.masters(broker=wanted.broker)
    await resume_check(admin, masters[wanted.broker], wanted.topic, wanted.offset_msg_id)
    return Done(text="the broker asks again")


@TABLE.post("/clusters/{cluster}/transactions/check")
async def check_transaction_now(ask: Ask, wanted: NamedHalf) -> Done:
    """Let a broker ask now about a half message without a decision; RocketMQ's brokers cannot."""
    admin = await ask.admin(wanted.cluster)
    masters = await admin.masters(broker=wanted.broker)
    try:
        await check_now(admin, masters[wanted.broker], wanted.topic, wanted.offset_msg_id)
    except BrokerRefused as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise BadInput(f"{wanted.broker} asks at its own interval only") from error
    return Done(text="the broker asks now")
