"""The settings of a member of a raft group."""

import msgspec

from gantrymq.replication.group.group_key import GroupKey
from gantrymq.replication.raft.config import APPEND_BYTES_MAX


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is told by its broker."""

    tick_seconds: float
    append_bytes_max: int = APPEND_BYTES_MAX
    commit_timeout_ms: int
    bind_address: str
    client_address: str
    """The broker's port for clients, which other members are told."""
    key: GroupKey | None = None
    """What members prove to each other; None: whoever knows the group is taken for a member."""
