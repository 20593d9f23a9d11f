"""Opens a member of a raft group from what its files have."""

from collections.abc import Callable

from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network
from gantrymq.base.offload import Offload
from gantrymq.replication.group.files import MemberFiles, stored_state
from gantrymq.replication.group.identity import GroupIdentity
from gantrymq.replication.group.log_reads import LogReads
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.group.node_settings import NodeSettings
from gantrymq.replication.raft import RaftConfig, RaftCore
from gantrymq.store.engine import Store


def open_node(
    identity: GroupIdentity,
    settings: NodeSettings,
    store: Store,
    *,
    disk: Disk,
    network: Network,
    offload: Offload,
    draw: Callable[[int], int],
) -> RaftNode:
    """The member as its files left it; ConfigError if they are not those of this member."""
    files = MemberFiles(disk, store.config.directory)
    state = files.load_state()
    if state is not None and (state.group, state.me) != (identity.group, identity.me):
        raise ConfigError(
            f"the store in {store.config.directory} is that of {state.me} of raft group "
            f"{state.group}, the settings say {identity.me} of {identity.group}: name its own "
            "folder in storePathRootDir, or move this one away"
        )
    view = store.group_log
    if state is None and view.end > 0:
        raise ConfigError(
            f"the store in {store.config.directory} has messages and belongs to no raft group: "
            "start the group with empty stores and send the messages to it, or run this broker "
            "without enableDLegerCommitLog"
        )
    boot_id, reads = disk.boot_id(), LogReads(view)
    config = RaftConfig(
        group=identity.group,
        me=identity.me,
        members=identity.members,
        append_bytes_max=settings.append_bytes_max,
    )
    core = RaftCore(
        config,
        stored_state(state, boot_id, damaged=store.damage.at is not None),
        files.load_log(view.first, view.end),
        draw,
        reads.boundary,
    )
    core.holds_registry = state is None or state.has_registry
    return RaftNode(
        identity,
        settings,
        core,
        store,
        files,
        reads,
        network=network,
        offload=offload,
        boot_id=boot_id,
        draw=draw,
    )
