"""Finding messages: by time, place and filters page by page, by id, by key, and as they arrive."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta

from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.history_query import HistoryQuery, IdSource, Stored
from gantrymq.client.admin.messages.message_query import FOREVER_MS
from gantrymq.client.admin.messages.message_search import Finder
from gantrymq.client.admin.messages.paged_search import (
    SearchPage,
    SearchPlace,
    Takes,
    begin_search,
    begin_tail,
    expression,
    search_on,
)
from gantrymq.client.messages.received import Received
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.cursors import cursor_of, place_of
from gantrymq.console.api.endpoint import Answer, Download, EndpointTable, OfCluster
from gantrymq.console.api.seen import MessageRow, Seen
from gantrymq.console.errors import BadInput, LoginNeeded, TooManyAttempts
from gantrymq.console.jobs import Jobs
from gantrymq.model import Queue, Subscription
from gantrymq.protocol.ids import parse_offset_msg_id

TABLE = EndpointTable("messages")

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500
TEXT_CHARACTERS_MAX: Final = 1000
TAIL_LIMIT: Final = 50
TAIL_SECONDS: Final = 1.0
"""Between two looks: a tail shows 50 messages a second at most, and says how many it left out."""
TAIL_BEHIND_MAX: Final = 500
TAIL_ROUNDS_MAX: Final = 3600
KEEP_ALIVE_ROUNDS: Final = 15
TAILS_MAX: Final = 50
"""At once, of all users: each asks the brokers once a second."""
_tails: WeakKeyDictionary[Jobs, int] = WeakKeyDictionary()
"""How many run in each console."""

Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX)]
Ms = Annotated[int, Meta(ge=0, le=FOREVER_MS)]
Place = Annotated[int, Meta(ge=0, lt=1 << 62)]
QueueNumber = Annotated[int, Meta(ge=0, lt=1 << 31)]
Text = Annotated[str, Meta(max_length=TEXT_CHARACTERS_MAX)]


class Filtered(OfCluster, frozen=True, kw_only=True):
    """A topic, and which of its messages."""

    topic: str
    tags: Text | None = None
    """One of these: `a || b`."""
    sql: Annotated[str, Meta(max_length=5000)] | None = None
    """A condition on properties: `amount > 10`. Instead of tags."""
    text: Text | None = None
    """This is in the body, a key or a property; as far as they are not masked."""


class WantedMessages(Filtered, frozen=True, kw_only=True):
    """A search, or its next page."""

    from_ms: Ms = 0
    """Stored then or later."""
    until_ms: Ms | None = None
    """Stored then or earlier."""
    order: Literal["newest", "oldest"] = "newest"
    broker: str | None = None
    queue_id: QueueNumber | None = None
    """Only this queue; with `broker`."""
    offset: Place | None = None
    """From this offset of the queue on, the oldest first."""
    limit: Limit = LIMIT_DEFAULT
    cursor: str | None = None
    """Where the last page ended."""


class QueueLooked(Answer, frozen=True, kw_only=True):
    """How far a search came in one queue."""

    broker: str
    queue_id: int
    first: int
    """It looks at offsets from here ..."""
    end: int
    """... up to, without, here."""
    left: int
    """Not looked at yet."""


class FoundMessages(Answer, frozen=True, kw_only=True):
    """A page of a search."""

    messages: list[MessageRow]
    is_complete: bool
    """Everything was looked at, on this page and those before it."""
    cursor: str | None
    """To go on with; null when there is nothing left."""
    looked_at: int
    """Messages that were looked at so far, on all pages."""
    in_all: int
    """Messages between the two times."""
    reached_ms: int | None
    """The store time at which this page ended."""
    queues: list[QueueLooked]
    gaps: list[str]
    """What could not be read, and why."""


class WantedId(OfCluster, frozen=True, kw_only=True):
    """The id of a message."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    topic: str | None = None
    """Its topic; without it all topics are searched, which may take a while."""


class WantedKey(OfCluster, frozen=True, kw_only=True):
    """A key of messages."""

    topic: str
    key: Annotated[str, Meta(min_length=1, max_length=1000)]
    from_ms: Ms = 0
    until_ms: Ms | None = None
    limit: Limit = LIMIT_DEFAULT


class FoundByIndex(Answer, frozen=True, kw_only=True):
    """What the indexes of the brokers found."""

    messages: list[MessageRow]
    is_complete: bool
    why: str
    """What is missing, when it is not complete."""
    go_on_until_ms: int | None
    """Ask again with this as `untilMs` for older ones; null if these are all."""


class WantedTail(Filtered, frozen=True, kw_only=True):
    """Messages that are stored from now on, or since the last look."""

    cursor: str | None = None


class NewMessages(Answer, frozen=True, kw_only=True):
    """What arrived since the last look."""

    messages: list[MessageRow]
    cursor: str
    skipped: int
    """So many more were stored than this shows; they are in the topic."""
    gaps: list[str]


# search


@TABLE.get("/clusters/{cluster}/messages")
async def search_messages(ask: Ask, wanted: WantedMessages) -> FoundMessages:
    """Messages of a topic by time, queue, tags, condition and text; one page after the other.

    An answer comes after a second or two, also if it found nothing yet: `cursor` goes on, and who
    does not ask again has cancelled the search.
    """
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    subscription, takes = _wanted(seen, wanted)
    place = await _place(admin, wanted)
    page = await search_on(admin.instance, place, subscription, takes=takes, limit=wanted.limit)
    rows = await asyncio.to_thread(lambda: [seen.row(each) for each in page.messages])
    return _answer(page, rows, has_moved=page.place.spans != place.spans)


def _wanted(seen: Seen, wanted: Filtered) -> tuple[Subscription, Takes]:
    """What to ask brokers for, and what of their answers people may find."""
    seen.check_condition(wanted.topic, wanted.tags, wanted.sql)
    subscription = expression(wanted.topic, wanted.tags, wanted.sql)

    def takes(message: Received) -> bool:
        return seen.answers(message, wanted.tags, wanted.sql, wanted.text)

    return subscription, takes


async def _place(admin: Admin, wanted: WantedMessages) -> SearchPlace:
    if wanted.cursor:
        return place_of(wanted.cursor, wanted.topic)
    queue = None
    if wanted.broker is not None or wanted.queue_id is not None:
        if wanted.broker is None or wanted.queue_id is None:
            raise BadInput("a queue is a broker and a queueId")
        queue = Queue(wanted.topic, wanted.broker, wanted.queue_id)
    if wanted.offset is not None and queue is None:
        raise BadInput("an offset needs its queue: broker and queueId")
    return await begin_search(
        admin.instance,
        wanted.topic,
        begin_ms=wanted.from_ms,
        end_ms=FOREVER_MS if wanted.until_ms is None else wanted.until_ms,
        newest_first=wanted.order == "newest" and wanted.offset is None,
        queue=queue,
        offset=wanted.offset,
    )


def _answer(page: SearchPage, rows: list[MessageRow], *, has_moved: bool) -> FoundMessages:
    place = page.place
    # A queue that cannot be read would be asked for ever; the gap says so instead.
    is_stuck = bool(page.gaps) and not has_moved and not place.is_over
    return FoundMessages(
        messages=rows,
        is_complete=place.is_over and not page.gaps and not place.has_gaps,
        cursor=None if place.is_over or is_stuck else cursor_of(place),
        looked_at=place.looked_at,
        in_all=place.in_all,
        reached_ms=rows[-1].stored_ms if rows else None,
        queues=[
            QueueLooked(
                broker=span.broker,
                queue_id=span.queue_id,
                first=span.low,
                end=span.high,
                left=place.left(span),
            )
            for span in place.spans
        ],
        gaps=page.gaps,
    )


# by id and by key


@TABLE.get("/clusters/{cluster}/message-ids/{id}")
async def find_by_id(ask: Ask, wanted: WantedId) -> FoundByIndex:
    """All stored copies of a message by either kind of id: the producer's, or the broker's."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    found, why = await _copies(admin, wanted)
    rows = [seen.row(each) for each in sorted(found, key=lambda each: each.store_ms)]
    return FoundByIndex(messages=rows, is_complete=not why, why=why, go_on_until_ms=None)


async def _copies(admin: Admin, wanted: WantedId) -> tuple[list[Received], str]:
    """The copies, and what could not be found out."""
    query = HistoryQuery(admin, wanted.id, wanted.topic, lambda _: None)
    await IdSource().look(query)
    exact = query.copies
    if not exact or not _is_offset_id(wanted.id):
        await Stored().look(query)
    return query.copies, "; ".join(dict.fromkeys(query.facts.unknown))


def _is_offset_id(msg_id: str) -> bool:
    try:
        parse_offset_msg_id(msg_id)
    except ProtocolError:
        return False
    return True


@TABLE.get("/clusters/{cluster}/message-keys")
async def find_by_key(ask: Ask, wanted: WantedKey) -> FoundByIndex:
    """The newest messages of a topic with a key."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    seen.check_key(wanted.topic)
    end_ms = FOREVER_MS if wanted.until_ms is None else wanted.until_ms
    found = await Finder(admin).by_key(
        wanted.topic, wanted.key, begin_ms=wanted.from_ms, end_ms=end_ms, limit=wanted.limit
    )
    visible = [each for each in reversed(found.messages) if seen.has_key(each, wanted.key)]
    rows = [seen.row(each) for each in visible]
    has_more = not found.complete and len(found.messages) >= wanted.limit
    return FoundByIndex(
        messages=rows,
        is_complete=found.complete,
        why=found.why,
        go_on_until_ms=found.messages[0].store_ms if has_more else None,
    )


# tail


@TABLE.get("/clusters/{cluster}/new-messages")
async def poll_messages(ask: Ask, wanted: WantedTail) -> NewMessages:
    """Messages that were stored since the last look; without a cursor a look begins now."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    subscription, takes = _wanted(seen, wanted)
    if wanted.cursor:
        place = place_of(wanted.cursor, wanted.topic)
    else:
        place = await begin_tail(admin.instance, wanted.topic)
    page = await search_on(
        admin.instance, place, subscription, takes=takes, limit=TAIL_LIMIT, seconds=TAIL_SECONDS
    )
    place, skipped = page.place, 0
    if len(page.messages) >= TAIL_LIMIT:
        place, skipped = await _caught_up(admin, place)
    rows = await asyncio.to_thread(lambda: [seen.row(each) for each in page.messages])
    return NewMessages(messages=rows, cursor=cursor_of(place), skipped=skipped, gaps=page.gaps)


async def _caught_up(admin: Admin, place: SearchPlace) -> tuple[SearchPlace, int]:
    """The place at the end of the topic, if the reader is too far behind to catch up."""
    now = await begin_tail(admin.instance, place.topic)
    before = {(span.broker, span.queue_id): span.at for span in place.spans}
    behind = sum(span.at - before.get((span.broker, span.queue_id), span.at) for span in now.spans)
    return (now, behind) if behind > TAIL_BEHIND_MAX else (place, 0)


@TABLE.get("/clusters/{cluster}/tail", "text/event-stream")
async def tail_messages(ask: Ask, wanted: WantedTail) -> Download:
    """The messages of a topic as they arrive, as server-sent events, until the reader leaves.

    Each event `message` is a message of a list; `skipped` says how many were too many to show.
    """
    _check_tails(ask)
    first = await poll_messages(ask, wanted)  # what is wrong with the question is said as an error
    return Download("text/event-stream", _events(ask, wanted, first))


def _check_tails(ask: Ask) -> None:
    if _tails.get(ask.parts.jobs, 0) >= TAILS_MAX:
        raise TooManyAttempts(f"{TAILS_MAX} tails run already: close one, or poll new-messages")


async def _events(ask: Ask, wanted: WantedTail, found: NewMessages) -> AsyncIterator[bytes]:
    jobs = ask.parts.jobs
    _tails[jobs] = _tails.get(jobs, 0) + 1
    try:
        async for event in _looks(ask, wanted, found):
            yield event
    finally:
        _tails[jobs] -= 1


async def _looks(ask: Ask, wanted: WantedTail, found: NewMessages) -> AsyncIterator[bytes]:
    yield b": tail\n\n"
    quiet = 0
    for _ in range(TAIL_ROUNDS_MAX):
        for row in found.messages:
            yield b"event: message\ndata: " + msgspec.json.encode(row) + b"\n\n"
        if found.skipped:
            yield b"event: skipped\ndata: %d\n\n" % found.skipped
        quiet = 0 if found.messages else quiet + 1
        if quiet and quiet % KEEP_ALIVE_ROUNDS == 0:
            yield b": still here\n\n"
        await asyncio.sleep(TAIL_SECONDS)
        try:
            if not ask.is_live():
                raise LoginNeeded("this login has ended")
            asked = msgspec.structs.replace(wanted, cursor=found.cursor)
            found = await poll_messages(ask, asked)
        except GantryError as error:
            yield b"event: trouble\ndata: " + msgspec.json.encode(str(error)) + b"\n\n"
            return
