"""The parts of the copy: a master's HA port, or what makes a broker a slave."""

from collections.abc import Callable
from dataclasses import dataclass

from gantrymq.access.server_access import ServerAccess
from gantrymq.base import upkeep
from gantrymq.broker.copies.known_slaves import watch_slaves
from gantrymq.broker.copies.log_comparison import LogComparison
from gantrymq.broker.copies.master_link import LogRefused, MasterLink, MasterRefused
from gantrymq.broker.copies.table_copy import COPY_SECONDS, TableCopy
from gantrymq.broker.handlers.copies import CopyHandler
from gantrymq.broker.parts.feature import Feature
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.tables.request_modes import ModeTable
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.ha.in_sync import InSyncSlaves
from gantrymq.replication.ha.master import HaMaster
from gantrymq.replication.ha.slave import HaSlave
from gantrymq.replication.ha.sync_copies import SyncCopies


@dataclass(frozen=True)
class ReplicationParts:
    handler: CopyHandler
    feature: Feature
    slaves: InSyncSlaves


def build_replication(shared: Shared, modes: ModeTable) -> ReplicationParts:
    """Build the parts of this broker's role."""
    slaves = InSyncSlaves(shared.config.ha_max_gap_not_in_sync)
    if shared.node is not None:
        return _build_member(shared, shared.node, modes, slaves)
    if shared.config.is_slave:
        slave = _build_slave(shared, modes)
        return ReplicationParts(_handler(shared, slaves, slave.role), slave.feature, slaves)
    store, config, ports = shared.store, shared.config, shared.ports
    copies = SyncCopies(slaves, store.log_bytes.end, config.slave_timeout)
    is_sync = config.broker_role == "SYNC_MASTER"
    if is_sync:
        store.wait_for(copies)
    changed = copies.slaves_changed if is_sync else _nothing
    master = HaMaster(store.log_bytes, slaves, changed, _trusts(shared.access))

    async def start() -> None:
        await master.start(ports.network, config.bind_address, config.ha_listen_port)

    feature = Feature(
        opening=(start,),
        background=(lambda: watch_slaves(master, shared.announcer),),
        closing=(master.stop,),
    )
    return ReplicationParts(_handler(shared, slaves, master), feature, slaves)


@dataclass(frozen=True)
class _Slave:
    role: HaSlave
    feature: Feature


def _build_slave(shared: Shared, modes: ModeTable) -> _Slave:
    config, ports, copy = shared.config, shared.ports, shared.store.log_copy
    link = MasterLink(config, shared.announcer, ports.network)
    file_bytes = shared.store.log_bytes.file_bytes

    comparison = LogComparison(config, link, shared.store.log_records)

    tables = _table_copy(shared, link, modes)

    async def introduce(ha_client: tuple[str, int]) -> float:
        """A slave takes the tables of a master of ours first: in sync, it can become the master."""
        try:
            promised = await link.introduce(copy, ha_client, file_bytes)
        except LogRefused as error:
            raise MasterRefused(f"{error}. {await comparison.advice()}") from error
        if promised:
            await tables.run(follows=True)
        return promised

    slave = HaSlave(copy, ports.network, lambda: link.ha_address, introduce, link.close)

    async def copy_tables() -> None:
        while True:
            await tables.run(follows=slave.connection is not None)
            await upkeep.pause(COPY_SECONDS)

    async def masters_first() -> int:
        """What a slave may delete its master has deleted: what waits in there was copied on."""
        return await link.log_min() if slave.connection is not None else 0

    async def adopt() -> None:
        """The next start may be one as the master, which lost the rest."""
        tables.adopt_stored_topics()

    shared.store.upkeep.cleaner.keeps_from = masters_first
    feature = Feature(background=(slave.run, copy_tables), on_stop=(link.close,), closing=(adopt,))
    return _Slave(slave, feature)


def _build_member(
    shared: Shared, node: RaftNode, modes: ModeTable, slaves: InSyncSlaves
) -> ReplicationParts:
    """A member of a raft group copies the log by itself; followers copy the leader's tables."""
    handler = _handler(shared, slaves, node)
    if not shared.config.is_slave:
        return ReplicationParts(handler, Feature(), slaves)
    ports = shared.ports
    link = MasterLink(shared.config, shared.announcer, ports.network, lambda: node.leader_address)
    tables = _table_copy(shared, link, modes)

    async def copy_tables() -> None:
        while True:
            cuts = node.core.cuts
            if await tables.run(follows=node.leader_address is not None):
                node.tables_copied(cuts)
            await upkeep.pause(COPY_SECONDS)

    feature = Feature(background=(copy_tables,), on_stop=(link.close,))
    return ReplicationParts(handler, feature, slaves)


def _table_copy(shared: Shared, link: MasterLink, modes: ModeTable) -> TableCopy:
    """What copies the master's tables, for as long as the broker is a slave."""
    config, ports, registry = shared.config, shared.ports, shared.registry
    timer_path = f"{config.store_path_root_dir}/config/timercheck"
    if registry.offsets.committed_here is None:
        registry.offsets.committed_here = {}
    return TableCopy(link, registry, shared.store, modes, ports.disk, ports.offload, timer_path)


def _handler(
    shared: Shared, slaves: InSyncSlaves, role: HaMaster | HaSlave | RaftNode
) -> CopyHandler:
    return CopyHandler(
        shared.config,
        shared.store,
        shared.registry,
        shared.ports.disk,
        shared.ports.clock,
        slaves,
        role,
        (shared.announcer.address, shared.announcer.ha_address),
    )


def _trusts(access: ServerAccess | None) -> Callable[[str], bool] | None:
    """Which hosts need no key; None without access control."""
    if access is None:
        return None
    guard = access.guard

    def trusts(host: str) -> bool:
        return guard.rules.trusts(host)  # those in force now

    return trusts


def _nothing() -> None:
    """ASYNC_MASTER: nobody waits for slaves."""
