"""Publishes shares, one at a time for each writer, and resumes them after a start."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest, Busy
from gantrymq.broker.publishing.journal import NoteJournal
from gantrymq.broker.publishing.notes import IntendedNote, PublishedNote
from gantrymq.broker.publishing.share_copy import ShareCopy, copies_behind
from gantrymq.broker.publishing.staged import StagedGone, check_share, lowest_place
from gantrymq.broker.publishing.writer_table import Intent, WriterTable
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.tables.registry import Topics
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.protocol.publishing import PublishProgress, Share
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 2.0
"""How long a request waits for the end before it is answered with the progress."""


class EpochPublisher:
    """Runs one task for each share that is being published."""

    def __init__(
        self,
        store: Store,
        topics: Topics,
        writers: WriterTable,
        journal: NoteJournal,
        redirect: SystemTopicRedirect,
        stats: BrokerStats,
        *,
        clock: WallClock,
        is_disk_full: Callable[[], bool],
    ) -> None:
        self._store, self._topics, self._writers, self._journal = store, topics, writers, journal
        self._redirect, self._stats = redirect, stats
        self._clock, self._is_disk_full = clock, is_disk_full
        self._running: dict[str, tuple[ShareCopy, asyncio.Task[None]]] = {}
        self._background = Background("publishing epochs")

    # after a start

    async def recover(self) -> None:
        """Resume the shares of an earlier run, after the last copy in the log."""
        intents = self._writers.intents
        if not intents:
            return
        already = await copies_behind(
            self._store, min(intent.position for intent in intents.values())
        )
        for writer, intent in intents.items():
            log.info("epoch %d of writer %s is published further", intent.epoch, writer)
            lowest = await lowest_place(self._store, intent.share)
            self._start(writer, intent, lowest, already)

    # while the broker runs

    async def publish(self, writer: str, epoch: int, share: Share) -> PublishProgress:
        """Publish a share, or join a running one; waits up to `WAIT_SECONDS` for its end."""
        give_up = asyncio.get_running_loop().time() + WAIT_SECONDS
        while self._writers.find(writer).published < epoch:
            running = self._running.get(writer)
            if running is None:
                intent = self._writers.find(writer).intent
                if intent is None:
                    await self._begin(writer, epoch, share)
                else:
                    await self._take_up(writer, intent)
                continue
            copy, task = running
            left = give_up - asyncio.get_running_loop().time()
            await asyncio.wait([task], timeout=max(0.0, left))
            if copy.failure is not None:
                raise copy.failure
            if task.cancelled():
                raise Busy("the broker stops; it goes on after its next start")
            if not task.done():
                return PublishProgress(done=False, copied=copy.copied, trouble=copy.trouble)
        await self._journal.durable()
        return PublishProgress(done=True)

    async def _begin(self, writer: str, epoch: int, share: Share) -> None:
        try:
            lowest = await check_share(self._store, self._topics, share)
        except StagedGone as error:
            raise StagedGone(
                f"epoch {epoch} of {writer} was decided, and its staged messages are gone since: "
                "other brokers may have published their part. It cannot be finished: go on with a "
                "new writer id"
            ) from error
        entry = self._writers.find(writer)
        if entry.intent is None and entry.published < epoch:
            await self._journal.write(IntendedNote(writer=writer, epoch=epoch, share=share))
            intent = self._writers.find(writer).intent
            if intent is not None:
                self._start(writer, intent, lowest)

    async def _take_up(self, writer: str, intent: Intent) -> None:
        """Start an intent that another request wrote and may not have started."""
        lowest = await lowest_place(self._store, intent.share)
        if self._writers.find(writer).intent is intent:
            self._start(writer, intent, lowest)

    def _start(
        self, writer: str, intent: Intent, lowest: int, already: Counter[int] | None = None
    ) -> None:
        if writer in self._running:
            return
        copy = ShareCopy(self._store, self._redirect, self._stats, intent, lowest, already)
        self._running[writer] = copy, self._background.spawn(self._run(writer, copy))

    async def _run(self, writer: str, copy: ShareCopy) -> None:
        note = PublishedNote(writer=writer, epoch=copy.intent.epoch)
        try:
            await copy.run(lambda: self._journal.write(note))
        except GantryError as error:
            # The next PUBLISH_EPOCH answers it; the next start of the broker tries once more.
            log.error("epoch %d of writer %s: %s", note.epoch, writer, error)
            copy.failure = error
            return
        except Exception as error:
            # Answered as well: without a failure the writer would repeat its request for ever.
            log.exception("epoch %d of writer %s cannot be published", note.epoch, writer)
            copy.failure = BadRequest(
                f"epoch {note.epoch} of {writer} cannot be published before the next start of the "
                f"broker: {type(error).__name__}: {error}"
            )
            return
        del self._running[writer]

    async def close(self) -> None:
        """Stop all copies; the next start resumes from the log."""
        await self._background.close()

    async def may_delete(self, upto: int) -> bool:
        """Whether retention may delete the log files below an offset.

        Not while shares are copied from them. Files with messages of prepared epochs stay, too,
        unless the disk is so full that retention takes young files.
        """
        if self._journal.needs_saving_below(upto):
            await self._journal.save()
        if any(copy.lowest < upto for copy, _ in self._running.values()):
            return False
        return self._is_disk_full() or not self._writers.is_held(upto, self._clock.now_ms())
