"""Takes checkpoints; only this module decides in which order things become durable."""

import asyncio
from collections.abc import Awaitable, Callable

from gantrymq.store.config import StoreConfig
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.checkpoint import Checkpoint
from gantrymq.store.shared import StoreFiles, StorePorts
from gantrymq.store.writing.dispatch import Dispatcher


class Checkpointer:
    """Makes queues and index durable, then writes the checkpoint."""

    def __init__(
        self,
        config: StoreConfig,
        ports: StorePorts,
        files: StoreFiles,
        dispatcher: Dispatcher,
        last: Checkpoint,
    ) -> None:
        self._config, self._disk, self._offload = config, ports.disk, ports.offload
        self._queues, self._index, self._dispatcher = files.queues, files.key_index, dispatcher
        self.last = last
        self._derived_failed = False
        self._turn = asyncio.Lock()
        self.before: Callable[[], Awaitable[None]] = _nothing
        """Saves what records up to the checkpoint have changed elsewhere."""

    async def take(self, flush_log: Callable[[int], Awaitable[None]], *, final: bool) -> None:
        """Make everything durable that was dispatched when this began, then write the checkpoint.

        Entries that are added meanwhile may reach the disk, too; the next recovery cuts entries
        that no checkpoint covers. Raises OSError if the disk fails. One at a time: a broker that
        stops takes one while the periodic one may be under way.
        """
        async with self._turn:
            fresh = self._capture()
            assert fresh.dispatched is not None
            await self.before()
            if self._index is not None:
                self._index.write(slots=final)
            await self._queues.write_tails()
            await flush_log(fresh.dispatched)
            await self._offload.run(self._sync_derived)
            await self._offload.run(checkpoint.save, self._disk, self.path, fresh)
            self.last = fresh

    @property
    def path(self) -> str:
        """The checkpoint file."""
        return f"{self._config.directory}/checkpoint"

    def _capture(self) -> Checkpoint:
        """The next checkpoint, of one moment: nothing is awaited in here."""
        last_ms = self._dispatcher.last_store_ms
        index = self.last.index_name, self.last.index_next_entry
        sealed_ms = self.last.index_ms
        if self._index is not None:
            self._index.build()
            index, sealed_ms = self._index.position, self._index.sealed_ms
        return Checkpoint(
            log_ms=last_ms,
            queue_ms=last_ms,
            index_ms=sealed_ms,
            dispatched=self._dispatcher.dispatched.value,
            index_name=index[0],
            index_next_entry=index[1],
            last_store_ms=last_ms,
            sizes=self._config.sizes,
        )

    def _sync_derived(self) -> None:
        """Sync queues and index, in a worker.

        After one failure no checkpoint is taken until restart.

        The system reports a lost page only once, so a later success would prove nothing.
        """
        if self._derived_failed:
            raise OSError("an earlier sync of queues and index failed")
        self._derived_failed = True
        if self._index is not None:
            self._index.sync()
        self._disk.sync_all(self._config.directory)
        self._derived_failed = False


async def _nothing() -> None:
    """Records change queues and index only."""
