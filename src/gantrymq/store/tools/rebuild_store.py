"""The rebuild of a store on this machine, its sizes taken from its files."""

import asyncio

from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.offload import ThreadOffload
from gantrymq.store.config import StoreConfig
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import ENTRIES_A_SLOT, JAVA_SLOTS, index_files
from gantrymq.store.index.index_file import ENTRY_BYTES, HEADER
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.rebuild import Rebuilt, rebuild


def config_of(directory: str, log_directory: str = "") -> StoreConfig:
    """The sizes that a store was made with, or RocketMQ's where its files do not show them."""
    folder = StoreFolder(directory, log_directory)
    known = checkpoint.load(OsDisk(), f"{folder.directory}/checkpoint")
    slots, entries = JAVA_SLOTS, JAVA_SLOTS * ENTRIES_A_SLOT
    if known is not None and known.sizes is not None:
        slots, entries = known.sizes[2:]
    else:
        for view in index_files(folder.directory)[:1]:
            slots = view.slots
            entries = (view.data.size - HEADER.size - 4 * slots) // ENTRY_BYTES
    return StoreConfig(
        directory=folder.directory,
        log_directory=log_directory,
        segment_bytes=folder.segment_bytes,
        queue_file_entries=folder.file_entries,
        index_slots=slots,
        index_entries=entries,
    )


def rebuild_store(directory: str) -> Rebuilt:
    """Rebuild queues and index; raises `StoreError` if the store does not allow it."""

    async def run() -> Rebuilt:
        offload = ThreadOffload()
        try:
            return await rebuild(
                config_of(directory), disk=OsDisk(), clock=SystemClock(), offload=offload
            )
        finally:
            offload.close()

    return asyncio.run(run())
