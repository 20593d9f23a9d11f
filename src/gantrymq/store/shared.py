"""What the parts of a store share: ports to the machine, and the files of an open store."""

from typing import NamedTuple

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.store.index.key_index import KeyIndex
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.syncer import Syncer
from gantrymq.store.queues.queue_table import QueueTable


class StorePorts(NamedTuple):
    """What a store needs of the machine it runs on."""

    disk: Disk
    clock: WallClock
    offload: Offload
    syncer: Syncer


class StoreFiles(NamedTuple):
    """The files of an open store: the log, and what is derived from it."""

    log: CommitLog
    queues: QueueTable
    key_index: KeyIndex | None
    """None if the store is configured to have no index."""
