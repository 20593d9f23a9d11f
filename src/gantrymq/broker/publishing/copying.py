"""Copies staged messages into their queues, in order; after a crash it goes on with the rest.

All copies of one append carry the log offset of their first original, in the record field that else
holds a committed transaction's half message: clients cannot set it. A crash cuts an append at its
end, so the number of its copies in the log says which ones are missing.
"""

import asyncio
import logging
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.broker.publishing.ledger import Intent
from gantrymq.broker.publishing.staged import StagedGone, StagedMessages, read_slice
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.waiting.redirect import DELAY_MARK, TIMER_MARK, SystemTopicRedirect
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.publishing import Stretch
from gantrymq.protocol.record import BORN_V6, LAYOUTS, STORE_V6, TRANSACTION_MASK
from gantrymq.store.append import Append, BatchItem
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
_PREPARED = struct.Struct(">q")
_BEHIND_PREPARED = 12
"""The prepared offset is the last but one field of a record's head."""
_DELAY, _TIMER = DELAY_MARK.encode(), TIMER_MARK.encode()


async def copies_behind(store: Store, position: int) -> Counter[int]:
    """The number of copies in the log from `position` on, by their first original's offset."""
    found: Counter[int] = Counter()
    async for data, base, records in store.reads.scan(position):
        for record in records:
            sys_flag = record[5]
            if sys_flag & TRANSACTION_MASK:
                continue
            head = LAYOUTS[sys_flag & (BORN_V6 | STORE_V6)].size
            at = record[3] - base + head - _BEHIND_PREPARED
            (origin,) = _PREPARED.unpack_from(data, at)
            if origin:
                found[origin - 1] += 1
        await asyncio.sleep(0)
    return found


class Copying:
    """Copies one share. It retries until everything is copied."""

    def __init__(
        self,
        store: Store,
        redirect: SystemTopicRedirect,
        stats: BrokerStats,
        intent: Intent,
        lowest: int,
        already: Counter[int] | None = None,
    ) -> None:
        self._store, self._redirect, self._stats = store, redirect, stats
        self.intent, self.lowest = intent, lowest
        self._already = already or Counter()
        self.copied = 0
        self.trouble = ""
        """What keeps it from going on just now."""
        self.failure: GantryError | None = None
        """Why it will never be done."""

    async def run(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Copy everything, then call `finish`; failed steps are tried again."""
        for stretch in self.intent.share:
            await self._copy(stretch)
        while True:
            try:
                await finish()
                return
            except GantryError as error:
                await self._pause(str(error))

    async def _pause(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("publishing is held up: %s", trouble)
        self.trouble = trouble
        await asyncio.sleep(RETRY_SECONDS)

    async def _copy(self, stretch: Stretch) -> None:
        done = 0
        while done < stretch.count:
            try:
                part = await read_slice(self._store, stretch, done)
            except OSError as error:
                await self._pause(f"staged messages cannot be read: {error}")
                continue
            if part is None:
                raise StagedGone(
                    f"staged messages for {stretch.topic} vanished while they were published: "
                    f"{stretch.count - done} of one send are lost"
                )
            copies, behind = self._copies(part, stretch)
            for some in copies:
                await self._put(some)
            done += behind
            self.copied += behind

    async def _put(self, copies: list[Append]) -> None:
        left = copies
        while left := await put_all(self._store, left):
            await self._pause(left[0].error or left[0].status.name)
        self.trouble = ""
        for copy in copies:
            if copy.status.is_stored:
                count = 1 if copy.batch is None else len(copy.batch)
                self._stats.put(copy.topic, count, copy.size)

    def _copies(self, part: StagedMessages, stretch: Stretch) -> tuple[list[list[Append]], int]:
        """The appends, in lists to put one after the other, and how many messages they cover.

        Consecutive messages share one append. Delayed ones get an append each, redirected to a
        system topic.
        """
        groups: list[list[Append]] = []
        alone: list[Append] = []
        run: list[BatchItem] = []
        at = 0
        while at < len(part.items):
            place, item = part.items[at]
            there = self._already.pop(place, 0)
            timed = _DELAY in item[2] or _TIMER in item[2]
            if alone and (there or not timed):
                groups.append(alone)
                alone = []
            if there:
                run = []
                at += there
                continue
            at += 1
            if timed:
                run = []
                alone.append(self._delayed(part, stretch, place, item))
            elif run:
                run.append(item)
            else:
                run = [item]
                groups.append([self._append(part, stretch, place, run)])
        if alone:
            groups.append(alone)
        return groups, at

    def _append(
        self, part: StagedMessages, stretch: Stretch, origin: int, items: list[BatchItem]
    ) -> Append:
        first = part.first
        return Append(
            stretch.topic,
            stretch.queue_id,
            b"",
            batch=items,
            sys_flag=first.sys_flag,
            born_ms=first.born_ms,
            born_host=encode_host(*first.born_host),
            prepared_offset=origin + 1,  # 0 means none
            wait=False,
        )

    def _delayed(
        self, part: StagedMessages, stretch: Stretch, origin: int, item: BatchItem
    ) -> Append:
        copy = self._append(part, stretch, origin, [])
        copy.batch, copy.flag, copy.body, copy.properties = None, *item
        text = item[2].decode("utf-8", "replace")
        try:
            copy.properties = self._redirect.redirect(copy, text).encode()
        except GantryError as error:  # a delay that is not allowed: deliver it at once
            log.warning("a published message for %s does not wait: %s", stretch.topic, error)
        return copy
