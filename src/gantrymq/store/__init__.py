"""The message store: a commit log, and queues and an index derived from it.

`engine` has `Store`, the face of all of it; `upkeep` is its periodic work. `log/` is the commit
log, `queues/` and `index/` are derived from it, `writing/` and `reading/` are the ways in and out,
`recovery/` opens a store after a crash, `retention` deletes old files, `files/` is for programs
that read a store without its broker, `audit/` checks one, `tools/` is what `gantry store` does.
Topics' settings and groups' offsets are in `broker/tables/`.
"""

from gantrymq.store.append import Append, PutStatus, QueryResult, ReadResult, ReadStatus
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.errors import LayoutError, StoreError
from gantrymq.store.log.syncer import HelperSyncer, InlineSyncer, Syncer
from gantrymq.store.shared import StorePorts

__all__ = [
    "Append",
    "HelperSyncer",
    "InlineSyncer",
    "LayoutError",
    "PutStatus",
    "QueryResult",
    "ReadResult",
    "ReadStatus",
    "Store",
    "StoreConfig",
    "StoreError",
    "StorePorts",
    "Syncer",
]
