"""The message store: a commit log, and queues and an index derived from it."""

from gantrymq.store.append import Append, PutStatus, QueryResult, ReadResult, ReadStatus
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.errors import LayoutError, StoreError
from gantrymq.store.syncer import HelperSyncer, InlineSyncer, Syncer

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
    "Syncer",
]
