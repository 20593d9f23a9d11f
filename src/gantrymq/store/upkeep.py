"""The periodic work of an open store: flushes, entries and checkpoints, retention.

Readers and writers do not wait for it. Entries of queues and index are written some time after the
record that they are derived from, because recovery can derive them again; a checkpoint says up to
where it need not.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.disk import delete_tree
from gantrymq.store.config import StoreConfig
from gantrymq.store.log.flush import Flusher
from gantrymq.store.recovery.recovery import RecoveredStore
from gantrymq.store.retention import Cleaner, MayDelete
from gantrymq.store.shared import StorePorts

log = logging.getLogger(__name__)

AT_ONCE: Final = float("-inf")


class StoreUpkeep:
    """Runs the periodic work of one store until `finish`."""

    def __init__(
        self, config: StoreConfig, ports: StorePorts, recovered: RecoveredStore, flusher: Flusher
    ) -> None:
        self._config, self._disk, self._offload = config, ports.disk, ports.offload
        self._log, self._queues, self._index = recovered.files
        self._dispatched, self._flusher = recovered.dispatcher.dispatched, flusher
        self.checkpointer = recovered.checkpointer
        self.cleaner = Cleaner(config, ports, recovered.files, self._checkpointed)
        self.failure = ""
        """Why queues and index cannot be written; empty if they can."""
        self._background = Background(f"the store in {config.directory}")
        self._flushed_at = self._checkpoint_at = asyncio.get_running_loop().time()
        self._deleted_folders: list[str] = []

    def start(self) -> None:
        """Begin the periodic work."""
        config, every = self._config, self._background.every
        every(lambda: config.queue_write_interval_ms / 1000, self.write_derived, may_be_late=True)
        every(lambda: config.clean_interval_ms / 1000, self.clean, may_be_late=True)
        every(lambda: config.flush_interval_ms / 1000, self._flush_some, may_be_late=True)

    def take_settings(self) -> None:
        """Let changed settings hold at once."""
        self.cleaner.judge()
        self._background.wake()

    def stop(self) -> None:
        """Begin no further round."""
        self._background.stop()

    async def finish(self) -> None:
        """Wait for the rounds under way; no others begin."""
        await self._background.finish()

    # Flushes

    async def _flush_some(self) -> None:
        if self._config.flush == "SYNC_FLUSH":
            return  # every write requests its own flush
        now = asyncio.get_running_loop().time()
        thorough = now - self._flushed_at >= self._config.flush_thorough_ms / 1000
        if thorough or self._flusher.is_worth_it(self._config.flush_least_pages):
            self._flushed_at = now
            self._flusher.request(self._log.end)

    # Entries and checkpoints

    async def write_derived(self) -> None:
        """Write queue and index entries, and take a checkpoint when it is due."""
        loop = asyncio.get_running_loop()
        try:
            if self._index is not None:
                self._index.build()
            await self._queues.write_tails(self._config.queues_written_max)
            due = self._checkpoint_at + self._config.checkpoint_interval_ms / 1000
            if not self._flusher.failure and loop.time() >= due:
                self._checkpoint_at = loop.time()
                await self.checkpoint()
        except OSError as error:
            self.failure = f"queues and index cannot be written: {error}"
            log.error("%s", self.failure)
        else:
            self.failure = ""
        folders, self._deleted_folders = self._deleted_folders, []
        for folder in folders:
            await self._offload.run(delete_tree, self._disk, folder)

    async def checkpoint(self) -> None:
        """Take a checkpoint now, unless nothing was dispatched since the last one."""
        if self.checkpointer.last.dispatched != self._dispatched.value:
            await self.checkpointer.take(self._flusher.reach, final=False)

    def request_checkpoint(self) -> None:
        """Request a checkpoint with the next round."""
        self._checkpoint_at = AT_ONCE

    def delete_folders(self, folders: list[str]) -> None:
        """Delete folders of queues that are renamed already, after the next checkpoint."""
        self._deleted_folders += folders
        self.request_checkpoint()

    # Retention

    async def clean(self) -> None:
        """Delete log files if it is their time."""
        await self.cleaner.run()

    async def delete_expired(self) -> int:
        """Delete expired files now, at any hour; returns how many."""
        return await self.cleaner.run(now=True)

    async def trim_queues(self) -> None:
        """Let queues and index begin where the log begins, and delete their files before that."""
        await self.cleaner.follow()

    def ask_before_delete(self, ask: MayDelete) -> Callable[[], None]:
        """Add a callback that saves what it needs before log files are deleted; see Cleaner.

        Returns what removes it again.
        """
        self.cleaner.asked_before.append(ask)
        return lambda: self.cleaner.asked_before.remove(ask)

    def _checkpointed(self) -> int:
        return self.checkpointer.last.dispatched or 0
