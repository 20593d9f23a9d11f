"""One search over brokers and an archive; and the archived copy for a message history."""

from collections.abc import Awaitable, Callable

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.history_query import HistoryQuery
from gantrymq.client.admin.messages.message_search import Finder, Found
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.lookup import Lookup


class HotAndCold:
    """Searches brokers first, and the archive for what they may have deleted."""

    def __init__(self, admin: Admin, lookup: Lookup) -> None:
        self._admin, self._finder, self._lookup = admin, Finder(admin), lookup

    async def by_id(self, msg_id: str, *, topic: str) -> Found:
        hot = await self._hot(lambda: self._finder.by_id(msg_id, topic=topic))
        if hot.messages:
            return hot
        return await self._both(topic, hot, self._lookup.by_id(msg_id, topic=topic))

    async def at(self, queue: Queue, offset: int) -> Found:
        hot = await self._hot(lambda: self._finder.at(queue, offset))
        if hot.messages:
            return hot
        cold = self._lookup.at(queue, offset)
        if cold.messages or not hot.why:
            return cold
        return Found([], False, "; ".join(filter(None, (hot.why, cold.why))))

    async def by_key(
        self, topic: str, key: str, *, begin_ms: int, end_ms: int, limit: int
    ) -> Found:
        hot = await self._hot(
            lambda: self._finder.by_key(topic, key, begin_ms=begin_ms, end_ms=end_ms, limit=limit)
        )
        cold = self._lookup.by_key(topic, key, begin_ms=begin_ms, end_ms=end_ms, limit=limit)
        found = await self._both(topic, hot, cold)
        return _cut(found, slice(-limit, None), limit)

    async def by_time(
        self, topic: str, begin_ms: int, end_ms: int, *, tags: str, limit: int
    ) -> Found:
        hot = await self._hot(
            lambda: self._finder.by_time(topic, begin_ms, end_ms, tags=tags, limit=limit)
        )
        cold = self._lookup.by_time(topic, begin_ms, end_ms, tags=tags, limit=limit)
        found = await self._both(topic, hot, cold)
        return _cut(found, slice(limit), limit)

    async def _hot(self, search: Callable[[], Awaitable[Found]]) -> Found:
        """What brokers find. Nothing for a topic without a route: it may have been deleted.

        If brokers do not answer, the result is marked incomplete and the archive is searched alone.
        """
        try:
            return await search()
        except NoRoute:
            return Found([])
        except ConfigError:
            raise  # the query itself is wrong
        except GantryError as error:
            return Found([], False, f"brokers could not be asked: {error}")

    async def _both(self, topic: str, hot: Found, cold: Found) -> Found:
        """Both results, each message once; of two copies the broker's is taken."""
        held = {(each.queue, each.offset) for each in hot.messages}
        more = [each for each in cold.messages if (each.queue, each.offset) not in held]
        messages = sorted([*hot.messages, *more], key=_age)
        gaps = _open(hot)
        gaps += [cold.why] if cold.why else []
        gaps += self._lookup.gaps(topic, await self._lows(topic))
        return Found(messages, not gaps, "; ".join(gaps))

    async def _lows(self, topic: str) -> QueueOffsets:
        try:
            stats = await self._admin.topic_stats(topic)
        except GantryError:  # `_hot` has reported it
            return {}
        return {queue: max(0, row.min_offset) for queue, row in stats.items()}


class ArchivedCopies:
    """For `why`: adds the archived copy if no broker has the message in its topic."""

    def __init__(self, path: str) -> None:
        self._lookup = Lookup(open_table(path))

    async def look(self, hunt: HistoryQuery) -> None:
        if any(copy.queue.topic == hunt.topic for copy in hunt.copies):
            return
        found = self._lookup.by_id(hunt.msg_id, topic=hunt.topic)
        hunt.add(found.messages)
        if not found.messages:
            hunt.unknown(f"the {self._lookup.origin} does not have it")


def _open(hot: Found) -> list[str]:
    """What brokers could not answer, except deleted messages: those are in the archive."""
    return [text for text in hot.why.split("; ") if text and text not in hot.deleted]


def _cut(found: Found, part: slice, limit: int) -> Found:
    if len(found.messages) <= limit:
        return found
    gaps = [*([found.why] if found.why else []), f"stopped after {counted(limit, 'message')}"]
    return Found(found.messages[part], False, "; ".join(gaps))


def _age(message: Received) -> tuple[int, int]:
    """Sort key: store time, then log offset."""
    return message.store_ms, message.log_offset
