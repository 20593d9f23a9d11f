"""Searches for stored messages; each result says whether it is complete.

A broker's index answers with the newest 64 records at most, and a search by time may match very
many messages. A search therefore asks page by page up to a limit, and its result says whether it is
complete, and if not, why.
"""

from typing import Final, NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages import message_query
from gantrymq.client.admin.messages.message_query import (
    FOREVER_MS,
    QUERY_MESSAGES_MAX,
    MessageMissing,
)
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.subscription import subscription

FOUND_MAX: Final = 1000
PULL_MESSAGES: Final = 512
GROUP: Final = "TOOLS_CONSUMER"
"""The group that RocketMQ keeps for tools: it exists on every broker."""


class Found(NamedTuple):
    """The result of a search, oldest message first."""

    messages: list[Received]
    complete: bool = True
    why: str = ""
    """What is missing, when it is not complete."""
    deleted: tuple[str, ...] = ()
    """The parts of `why` that only say that brokers deleted messages."""


class Finder:
    """Searches of one cluster."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    @property
    def _instance(self) -> Instance:
        return self._admin.instance

    async def by_id(self, msg_id: str, *, topic: str | None = None) -> Found:
        """The message with an id of either kind; an id that the producer gave needs the topic."""
        try:
            return Found([await message_query.by_id(self._instance, msg_id, topic)])
        except MessageMissing:
            return Found([])
        except GantryError as error:  # the broker that an offset message id names cannot be reached
            return Found([], False, str(error))

    async def by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        limit: int = FOUND_MAX,
        unique: bool = False,
    ) -> Found:
        """All messages of a topic with a key, stored between two times."""
        route = await self._instance.routes.get(topic)
        messages: list[Received] = []
        gaps: list[str] = []
        for data in route.broker_datas:
            try:
                part = await self._pages(
                    data.broker_name, topic, key, begin_ms, end_ms, limit, unique
                )
            except GantryError as error:
                gaps.append(f"{data.broker_name} did not answer: {error}")
                continue
            messages += part.messages
            if part.why:
                gaps.append(part.why)
        messages.sort(key=_age)
        if len(messages) > limit:
            gaps.append(f"stopped after {counted(limit, 'message')}")
            messages = messages[-limit:]
        return Found(messages, not gaps, "; ".join(gaps))

    async def _pages(
        self,
        broker_name: str,
        topic: str,
        key: str,
        begin_ms: int,
        end_ms: int,
        limit: int,
        unique: bool,
    ) -> Found:
        """Ask page by page, back in time, until a page is not full."""
        address = self._instance.routes.address_of(broker_name, any_id=True)
        found: dict[str, Received] = {}
        while True:
            page = await message_query.query_page(
                self._instance,
                address,
                broker_name,
                topic,
                key,
                count_max=QUERY_MESSAGES_MAX,
                begin_ms=begin_ms,
                end_ms=end_ms,
                unique=unique,
            )
            fresh = [message for message in page if message.offset_msg_id not in found]
            found |= {message.offset_msg_id: message for message in fresh}
            wanted = [m for m in found.values() if message_query.has_key(m, key, unique=unique)]
            if not page or len(page) < self._page_size(unique):
                return Found(wanted)
            if len(wanted) >= limit:
                return Found(wanted, False, f"{broker_name} has more than {limit} of them")
            oldest = min(message.store_ms for message in page)
            if not fresh:
                text = f"{broker_name} has more of them at {oldest} ms than one answer holds"
                return Found(wanted, False, text)
            end_ms = oldest

    def _page_size(self, unique: bool) -> int:
        """How many records a full answer has; for unique keys brokers choose 32 themselves."""
        return QUERY_MESSAGES_MAX // 2 if unique else QUERY_MESSAGES_MAX

    async def at(self, queue: Queue, offset: int) -> Found:
        """The message at a queue offset."""
        pulled = await pull_raw(self._instance, GROUP, queue, offset, max_count=1)
        if pulled.status is not PullStatus.FOUND:
            text = f"{queue} holds {pulled.min_offset} to {pulled.max_offset - 1}"
            return Found([], False, text)
        return Found(message_query.read_records(pulled.body, queue.broker_name)[:1])

    async def by_time(
        self, topic: str, begin_ms: int, end_ms: int, *, tags: str = "*", limit: int = FOUND_MAX
    ) -> Found:
        """The messages of a topic that were stored between two times."""
        instance = self._instance
        route = await instance.routes.get(topic)
        messages: list[Received] = []
        gaps: list[str] = []
        deleted: tuple[str, ...] = ()
        for queue in sorted(instance.routes.subscribe_queues(route, topic)):
            part = await self._queue_by_time(queue, begin_ms, end_ms, tags, limit)
            messages += part.messages
            deleted += part.deleted
            if part.why:
                gaps.append(part.why)
        messages.sort(key=_age)
        if len(messages) > limit:
            stopped = f"stopped after {counted(limit, 'message')}"
            gaps.append(f"{stopped}; go on from {messages[limit].store_ms} ms")
            messages = messages[:limit]
        return Found(messages, not gaps, "; ".join(gaps), deleted)

    async def _queue_by_time(
        self, queue: Queue, begin_ms: int, end_ms: int, tags: str, limit: int
    ) -> Found:
        instance, wanted = self._instance, subscription(queue.topic, tags)
        offset = await queue_offsets.search_offset(instance, queue, begin_ms)
        first = await queue_offsets.min_offset(instance, queue)
        found: list[Received] = []
        why = gone = ""
        while len(found) < limit:
            pulled = await pull_raw(
                instance, GROUP, queue, offset, max_count=PULL_MESSAGES, subscription=wanted
            )
            if pulled.status is PullStatus.NO_NEW or pulled.next_offset <= offset:
                break
            page = message_query.read_records(pulled.body, queue.broker_name)
            if first and offset == first and page and page[0].store_ms > begin_ms:
                why = gone = f"what {queue} held before {page[0].store_ms} ms is deleted"
            in_time = [message for message in page if message.store_ms <= end_ms]
            found += [m for m in in_time if not wanted.tags_set or m.tags in wanted.tags_set]
            if len(in_time) < len(page):
                break
            offset = pulled.next_offset
        else:
            why = f"{queue} has more than {limit} of them"
        return Found(found, not why, why, (gone,) if gone else ())


def _age(message: Received) -> tuple[int, int]:
    """Sort key: store time, then log offset."""
    return message.store_ms, message.log_offset
