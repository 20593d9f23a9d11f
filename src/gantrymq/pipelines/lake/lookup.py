"""Searches in an archive, without Spark: by id, by key, by time and by place.

A search first reads only the columns it needs, of the files that may hold a match, and then the
whole rows of the matches. The result says whether it is complete.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc
import pyarrow.dataset as ds

from gantrymq.base.plurals import counted
from gantrymq.client.admin.messages.message_query import FOREVER_MS
from gantrymq.client.admin.messages.message_search import FOUND_MAX, Found
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.lake.file_rows import in_time, matching
from gantrymq.pipelines.lake.files import DataFile, pruned, spans
from gantrymq.pipelines.lake.messages import Archived, message_of
from gantrymq.pipelines.lake.schema import MESSAGE
from gantrymq.pipelines.lake.table import Table
from gantrymq.protocol.subscription import parse_tags

PLACE: Final = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp")
GAPS_MAX: Final = 5
"""So many gaps are named; the others are counted."""


class Spot(NamedTuple):
    """Where a message lies, and when it was stored."""

    store_us: int
    queue: Queue
    offset: int


class Lookup:
    """Searches in one table, in its state at that moment."""

    def __init__(self, table: Table) -> None:
        self._table, self._files = table, table.files()
        self.origin = f"archive {table.root}"

    def by_id(self, msg_id: str, *, topic: str | None = None) -> Found:
        """The message with a message id or offset message id; all its copies."""
        word = msg_id.strip().upper()
        where = (ds.field("msgId") == msg_id) | (ds.field("msgId") == word)
        where |= ds.field("offsetMsgId") == word
        topics = None if topic is None else [topic]
        return Found(self._fetched(self._spots(pruned(self._files, topics=topics), where)))

    def by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        limit: int = FOUND_MAX,
    ) -> Found:
        """Messages that carry a key, stored in a period; the newest ones, up to `limit`."""
        word = pc.match_substring_regex(ds.field("keys"), f"(^| ){re.escape(key)}( |$)")
        where = word & in_time(begin_ms, end_ms + 1)
        spots = self._spots(self._timed(topic, begin_ms, end_ms), where, slice(-limit - 1, None))
        return self._limited(spots[-limit:], f"more than {limit} of them" * (len(spots) > limit))

    def by_time(
        self, topic: str, begin_ms: int, end_ms: int, *, tags: str = "*", limit: int = FOUND_MAX
    ) -> Found:
        """Messages stored from `begin_ms` to `end_ms`, both included; the first `limit` of them."""
        where, names = in_time(begin_ms, end_ms + 1), tuple(parse_tags(tags))
        if names:
            where &= ds.field("tags").isin(names)
        spots = self._spots(self._timed(topic, begin_ms, end_ms), where, slice(limit + 1))
        return self._limited(spots[:limit], f"more than {limit} of them" * (len(spots) > limit))

    def at(self, queue: Queue, offset: int) -> Found:
        """The message at a queue offset."""
        found = self._fetched([Spot(0, queue, offset)])
        return Found(found) if found else Found([], False, f"{queue} at {offset} is not archived")

    def gaps(self, topic: str, lows: QueueOffsets) -> list[str]:
        """Gaps that neither archive nor brokers cover; `lows` are the brokers' first offsets."""
        files = pruned(self._files, topics=[topic])
        if any(each.queue is None for each in files):
            return [f"whether all of {topic} is there cannot be told: others wrote files of it"]
        have = spans(files)
        queues = {queue for queue in (*have, *lows) if queue.topic == topic}
        found = []
        for queue in sorted(queues):
            at = 0
            ends = [(span.start, span.end) for span in have.get(queue, [])]
            for start, end in [*ends, *([(lows[queue], lows[queue])] if queue in lows else [])]:
                if start > at:
                    found.append(f"{queue} {at} to {start - 1} is nowhere")
                at = max(at, end)
        more = f"and {counted(len(found) - GAPS_MAX, 'more gap')}"
        return found if len(found) <= GAPS_MAX else [*found[:GAPS_MAX], more]

    # the two steps of a search

    def _timed(self, topic: str, begin_ms: int, end_ms: int) -> list[DataFile]:
        return pruned(self._files, topics=[topic], since_ms=begin_ms, until_ms=end_ms + 1)

    def _spots(
        self, files: Sequence[DataFile], where: Any, part: slice = slice(None)
    ) -> list[Spot]:
        """The places of messages that meet a condition, in order of storing; a slice of them."""
        table = matching(self._table.root, files, where, PLACE)
        order = [(name, "ascending") for name in ("storeTimestamp", *PLACE[:4])]
        first, last, _ = part.indices(table.num_rows)
        return [
            Spot(
                round(row["storeTimestamp"].timestamp() * 1_000_000),
                Queue(row["topic"], row["brokerName"], row["queueId"]),
                row["queueOffset"],
            )
            for row in table.sort_by(order).slice(first, max(0, last - first)).to_pylist()
        ]

    def _fetched(self, spots: Iterable[Spot]) -> list[Received]:
        """The messages at some places, in their order."""
        by_queue: dict[Queue, list[int]] = defaultdict(list)
        for spot in spots:
            by_queue[spot.queue].append(spot.offset)
        found: list[Archived] = []
        for queue, offsets in by_queue.items():
            files = [
                each
                for each in self._files
                if each.topic == queue.topic
                and (each.queue is None or each.queue == queue)
                and (each.queue is None or any(each.first <= at <= each.last for at in offsets))
            ]
            where = (ds.field("queueId") == queue.queue_id) & (
                ds.field("brokerName") == queue.broker_name
            )
            where &= ds.field("queueOffset").isin(offsets)
            where &= (ds.field("queueOffset") >= min(offsets)) & (
                ds.field("queueOffset") <= max(offsets)
            )
            rows = matching(self._table.root, files, where, MESSAGE.names).to_pylist()
            found += [message_of(row, self.origin) for row in rows]
        return sorted(found, key=lambda each: (each.store_ms, each.log_offset, each.queue))

    def _limited(self, spots: list[Spot], more: str) -> Found:
        text = f"the {self.origin} has {more}" if more else ""
        return Found(self._fetched(spots), not more, text)
