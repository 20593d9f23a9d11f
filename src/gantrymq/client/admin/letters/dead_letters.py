"""The dead letters of a group: look at them, sort them by cause, send them again."""

import random
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.letters.resend import (
    RATE_DEFAULT,
    Resender,
    ResendSummary,
    Resent,
    Target,
)
from gantrymq.client.admin.messages import message_query
from gantrymq.client.admin.messages.message_query import MessageMissing, read_records
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import ClientError, NoRoute
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.messages.failures import Failure, failure_in
from gantrymq.client.messages.received import Received
from gantrymq.model import READ, Queue, check_group_name, dead_topic
from gantrymq.protocol import properties

PULL_COUNT: Final = 256
PAGE_SCAN_MAX: Final = 20_000
"""Letters a page looks at, at most: a filter that matches nothing must not read for ever."""
CAUSES_MAX: Final = 10_000
"""Different causes that statistics tell apart; the rest is counted together."""


class NotReadable(ClientError):
    """The topic of the dead letters has no read permission, as brokers before 4.9.2 made it."""


class Letter:
    """One dead letter: a message, the topic it came from, and why it failed."""

    __slots__ = ("failure", "message")

    def __init__(self, message: Received) -> None:
        self.message = message
        self.failure = failure_in(message.properties) or Failure()

    @property
    def dead_id(self) -> str:
        """The id of this letter: the offset message id of its record in the dead letter topic."""
        return self.message.offset_msg_id

    @property
    def topic(self) -> str:
        """The topic it was first sent to; empty when no property names it."""
        found = self.message.properties
        return found.get(properties.RETRY_TOPIC) or found.get(properties.DEAD_ORIGIN_TOPIC, "")

    def row(self) -> dict[str, Any]:
        """The letter as a row for tables and files; times in milliseconds."""
        message, failure = self.message, self.failure
        return {
            "deadId": self.dead_id,
            "msgId": message.msg_id,
            "topic": self.topic,
            "keys": list(message.keys),
            "tags": message.tags,
            "tries": message.reconsume_times,
            "diedTime": message.store_ms,
            "bornTime": message.born_ms,
            "fingerprint": failure.fingerprint or None,
            "error": failure.error or None,
            "text": failure.text or None,
            "reason": failure.reason or None,
            "resentFrom": message.properties.get(properties.RESENT_FROM),
        }

    def __repr__(self) -> str:
        return f"<Letter {self.dead_id} of {self.topic}: {self.failure.error or 'no reason'}>"


@dataclass(frozen=True)
class DeadLetterFilter:
    """Selects letters; a field that is None selects all. Times, in ms, are those of storing."""

    fingerprint: str | None = None
    topic: str | None = None
    key: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def lets_through(self, letter: Letter) -> bool:
        message = letter.message
        return (
            self.fingerprint in (None, letter.failure.fingerprint)
            and self.topic in (None, letter.topic)
            and (self.key is None or self.key in message.keys or self.key == message.msg_id)
            and (self.since_ms is None or message.store_ms >= self.since_ms)
            and (self.until_ms is None or message.store_ms <= self.until_ms)
        )


ALL: Final = DeadLetterFilter()


class Page(NamedTuple):
    """Some letters; pass `after` to get the next page. It is None on the last page."""

    letters: list[Letter]
    after: str | None


@dataclass
class Cause:
    """Letters with the same failure: the same fingerprint, or without one the same reason."""

    fingerprint: str
    error: str
    text: str
    reason: str
    count: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    first_ms: int = 0
    last_ms: int = 0
    sample: str = ""
    """The dead id of the newest one."""

    def add(self, letter: Letter) -> None:
        at = letter.message.store_ms
        self.count += 1
        self.topics[letter.topic] = self.topics.get(letter.topic, 0) + 1
        self.first_ms = min(self.first_ms, at) if self.first_ms else at
        if at >= self.last_ms:
            self.last_ms, self.sample = at, letter.dead_id
            self.text, self.reason = letter.failure.text, letter.failure.reason


class CauseTable:
    """Counts letters by cause."""

    def __init__(self) -> None:
        self._causes: dict[tuple[str, str], Cause] = {}

    def add(self, letter: Letter) -> None:
        """Count one more letter."""
        failure, causes = letter.failure, self._causes
        key = (failure.fingerprint, "" if failure.fingerprint else failure.reason)
        if key not in causes and len(causes) >= CAUSES_MAX:
            key, failure = ("", "(other causes)"), Failure(reason="(other causes)")
        if key not in causes:
            causes[key] = Cause(failure.fingerprint, failure.error, failure.text, failure.reason)
        causes[key].add(letter)

    def sorted(self) -> list[Cause]:
        """The causes, the most frequent first."""
        return sorted(self._causes.values(), key=lambda cause: -cause.count)


class DeadLetters:
    """The dead letters of one group, on all its brokers.

    async with DeadLetters("localhost:9876", group="billing") as letters:
        for cause in await letters.statistics():
            print(cause.count, cause.error, cause.text)
        await letters.resend_all(DeadLetterFilter(fingerprint="..."), rate=50)
    """

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        client: ClientOptions | None = None,
        hooks: Iterable[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        admin = Admin(namesrv, client=client, hooks=hooks, network=network, clock=clock, rng=rng)
        self._attach(admin, group)

    def _attach(self, admin: Admin, group: str) -> None:
        self.group = check_group_name(group)
        self._topic = dead_topic(group)
        self._admin = admin
        self._resender = Resender(self._admin, self.group)

    @classmethod
    def through(cls, admin: Admin, group: str) -> Self:
        """Those of a group, through an admin client that is open and stays open."""
        made = cls.__new__(cls)
        made._attach(admin, group)
        return made

    async def start(self) -> None:
        """Find the name servers; `async with` does the same."""
        await self._admin.start()

    async def close(self) -> None:
        """Close the connections."""
        await self._admin.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # reading

    async def page(
        self, wanted: DeadLetterFilter = ALL, *, limit: int = 100, after: str | None = None
    ) -> Page:
        """Up to `limit` letters, oldest first; go on with the page's `after`."""
        found: list[Letter] = []
        looked_at = 0
        async for letter in self._scan(wanted, after):
            looked_at += 1
            place = _cursor(letter.message.queue, letter.message.offset + 1)
            if wanted.lets_through(letter):
                found.append(letter)
            if len(found) >= limit or looked_at >= PAGE_SCAN_MAX:
                return Page(found, place)
        return Page(found, None)

    async def all(self, wanted: DeadLetterFilter = ALL) -> AsyncIterator[Letter]:
        """Every letter that is stored when a queue's scan begins; later ones are left out."""
        async for letter in self._scan(wanted, None):
            if wanted.lets_through(letter):
                yield letter

    async def one(self, any_id: str) -> Letter:
        """A letter by its dead id, or the newest one with this message id."""
        instance = self._admin.instance
        try:
            found = await message_query.by_key(instance, self._topic, any_id, unique=True)
        except NoRoute:
            found = []
        letter = found[-1] if found else await message_query.by_id(instance, any_id)
        if letter.stored_topic != self._topic:
            raise MessageMissing(f"{any_id} is no dead letter of {self.group!r}")
        return Letter(letter)

    async def statistics(self, wanted: DeadLetterFilter = ALL) -> list[Cause]:
        """The letters counted by cause, the most frequent first."""
        causes = CauseTable()
        async for letter in self.all(wanted):
            causes.add(letter)
        return causes.sorted()

    async def _scan(self, wanted: DeadLetterFilter, after: str | None) -> AsyncIterator[Letter]:
        instance = self._admin.instance
        place = _parse_cursor(self._topic, after) if after is not None else None
        for queue in await self._queues():
            if place is not None and queue < place[0]:
                continue
            end = await queue_offsets.max_offset(instance, queue)
            offset = await self._start(queue, wanted)
            if place is not None and queue == place[0]:
                offset = max(offset, place[1])
            while offset < end:
                pulled = await pull_raw(instance, self.group, queue, offset, max_count=PULL_COUNT)
                for message in read_records(pulled.body, queue.broker_name):
                    if message.offset < end:
                        yield Letter(message)
                if pulled.status is PullStatus.NO_NEW or pulled.next_offset <= offset:
                    break
                offset = pulled.next_offset

    async def _start(self, queue: Queue, wanted: DeadLetterFilter) -> int:
        instance = self._admin.instance
        if wanted.since_ms is not None:
            return await queue_offsets.search_offset(instance, queue, wanted.since_ms)
        return await queue_offsets.min_offset(instance, queue)

    async def _queues(self) -> list[Queue]:
        routes = self._admin.instance.routes
        try:
            route = await routes.refresh(self._topic)
        except NoRoute:
            return []  # no dead letter yet: the topic does not exist
        closed = [data.broker_name for data in route.queue_datas if not data.perm & READ]
        if closed:
            raise NotReadable(
                f"{self._topic} cannot be read on {', '.join(closed)}: brokers before 4.9.2 made "
                f"it write-only. `gantry dlq mend {self.group}` gives it read permission"
            )
        return sorted(routes.subscribe_queues(route, self._topic))

    async def mend(self) -> list[str]:
        """Give the topic read permission on brokers where it has none; returns those brokers."""
        route = await self._admin.topic_route(self._topic)
        mended = []
        for data in route.queue_datas:
            if not data.perm & READ:
                await self._admin.create_topic(
                    self._topic,
                    read_queues=data.read_queue_nums,
                    write_queues=data.write_queue_nums,
                    broker=data.broker_name,
                )
                mended.append(data.broker_name)
        return mended

    # sending again

    async def resend(
        self,
        letter: Letter,
        *,
        to: Target = "retry",
        again: bool = False,
        body: bytes | None = None,
        changes: Mapping[str, str | None] | None = None,
    ) -> Resent | None:
        """Send a letter again, with `body` if given; returns None if it was resent before.

        `changes` has new values of properties, and None for those to leave out.

        `retry` puts it into the group's retry topic, so that only this group gets it; `topic` puts
        it into the topic it came from, where every group reads it. `again` sends it even if
        it was resent before.
        """
        return await self._resender.one(
            letter.message, letter.topic, to=to, again=again, body=body, changes=changes
        )

    async def resend_all(
        self,
        wanted: DeadLetterFilter = ALL,
        *,
        to: Target = "retry",
        rate: float = RATE_DEFAULT,
        progress: Path | None = None,
        again: bool = False,
    ) -> ResendSummary:
        """Send the wanted letters again, at most `rate` a second; each of them once.

        After an interruption the same call continues: it skips a letter that the target topic
        already has, and one that the file `progress` names.
        """
        letters = ((letter.message, letter.topic) async for letter in self.all(wanted))
        return await self._resender.many(letters, to=to, rate=rate, progress=progress, again=again)


def _cursor(queue: Queue, offset: int) -> str:
    return f"{queue.broker_name}:{queue.queue_id}:{offset}"


def _parse_cursor(topic: str, text: str) -> tuple[Queue, int]:
    name, *numbers = text.rsplit(":", 2)
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise ClientError(f"{text!r} is no place in a list of dead letters: take it from a page")
    return Queue(topic, name, int(numbers[0])), int(numbers[1])
