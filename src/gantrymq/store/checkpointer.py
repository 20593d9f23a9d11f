"""Takes checkpoints: the order in which things become durable is written here and nowhere else."""

from collections.abc import Awaitable, Callable

from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.store import checkpoint
from gantrymq.store.checkpoint import Checkpoint
from gantrymq.store.config import StoreConfig
from gantrymq.store.dispatch import Dispatcher
from gantrymq.store.keyindex import KeyIndex
from gantrymq.store.queues import QueueTable


class Checkpointer:
    """Makes queues and index durable and then says so."""

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        offload: Offload,
        queues: QueueTable,
        index: KeyIndex | None,
        dispatcher: Dispatcher,
        last: Checkpoint,
    ) -> None:
        self._config, self._disk, self._offload = config, disk, offload
        self._queues, self._index, self._dispatcher = queues, index, dispatcher
        self.last = last
        self._derived_failed = False

    async def take(self, flush_log: Callable[[int], Awaitable[None]], *, final: bool) -> None:
        """Make everything durable that was dispatched when this began, then record it.

        Entries that are added meanwhile may reach the disk too; the next recovery cuts whatever
        is not vouched for, so they do no harm. Raises OSError when the disk does.
        """
        fresh = self._capture()
        assert fresh.dispatched is not None
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
        """What the checkpoint will vouch for; one moment, nothing awaited in between."""
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
        """Runs in a worker. After one failure nothing can be vouched for in this life any more.

        The system reports a lost page once; a later success would say nothing about it.
        """
        if self._derived_failed:
            raise OSError("an earlier sync of queues and index failed")
        self._derived_failed = True
        if self._index is not None:
            self._index.sync()
        self._disk.sync_all(self._config.directory)
        self._derived_failed = False
