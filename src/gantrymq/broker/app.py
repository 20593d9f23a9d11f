"""Starts a broker's parts in the order in which they need each other.

Leaving the block stops them in the opposite order: the broker unregisters from name servers,
answers held pulls and accepted sends, flushes and closes the store, and saves its tables.
"""

import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import msgspec

from gantrymq.access.rights import BROKER_RIGHTS
from gantrymq.access.server_access import ServerAccess, guard_by_users, open_access
from gantrymq.access.user_rules import UserRules
from gantrymq.access.user_table import FILE as USERS_FILE
from gantrymq.access.user_table import UserTable
from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network, TcpNetwork, local_address
from gantrymq.base.offload import ThreadOffload
from gantrymq.broker.copies.group_changes import GroupChanges
from gantrymq.broker.identity import check_identity, check_kind_of_store
from gantrymq.broker.leadership import serve_by_leadership
from gantrymq.broker.parts.shared import Ports
from gantrymq.broker.serving import OpenBroker, Serving, serve
from gantrymq.broker.settings.access_settings import codes_of, users_of_settings
from gantrymq.broker.settings.config import OTHER_PORTS, BrokerConfig
from gantrymq.broker.settings.live_settings import warn_of_old_file, with_own_file
from gantrymq.broker.settings.own_key import own_credentials
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.metrics.exporter import MetricsServer, check_exporter, export_metrics
from gantrymq.metrics.metric import Collector
from gantrymq.metrics.process import ProcessMetrics
from gantrymq.protocol.ids import encode_host
from gantrymq.replication.group.group_key import GroupKey
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.group.node_settings import NodeSettings
from gantrymq.replication.group.opening import open_node
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import best_syncer
from gantrymq.store.shared import StorePorts

__all__ = ["Broker", "Ports", "real_ports", "run_broker"]

ELECTION_TICKS = 10
"""Into how many ticks of a raft member its election time-out is divided."""


class Broker:
    """A running broker."""

    def __init__(self, address: str, opened: OpenBroker) -> None:
        self.address, self.store, self.registry = address, opened.store, opened.registry
        self.announced = opened.announced
        """Set once a name server knows this broker; never, when none is configured."""
        self.node = opened.node
        """The member of a raft group that it is."""
        self._serving: Serving | None = None
        self.metrics_address: str | None = None
        """Where Prometheus reads its metrics; None if it does not."""

    def serves(self, serving: Serving) -> None:
        """Note that the broker serves, in a role that may be a new one."""
        self._serving = serving

    @property
    def _role(self) -> Serving:
        assert self._serving is not None, "a broker is handed out when it serves"
        return self._serving

    @property
    def config(self) -> BrokerConfig:
        return self._role.config

    @property
    def delays(self) -> DelayService:
        return self._role.parts.delays

    @property
    def timers(self) -> TimerService:
        return self._role.parts.timers

    @property
    def collectors(self) -> Sequence[Collector]:
        """The metrics of the role that this broker has now."""
        return self._role.collectors

    @property
    def role_is_announced(self) -> bool:
        """Whether a name server knows the role that this broker has now."""
        return self._role.announced.is_set()

    async def unregister(self) -> None:
        """Tell the name servers that this broker stops."""
        if self._serving is not None:
            await self._serving.announcer.unregister()


def real_ports(network: Network | None = None) -> Ports:
    """The machine itself; `network` in place of plain TCP."""
    return Ports(
        network or TcpNetwork(),
        OsDisk(),
        SystemClock(),
        ThreadOffload(),
        random.Random(),
        best_syncer(),
    )


def _with_addresses(config: BrokerConfig, network: Network) -> BrokerConfig:
    """Fill in what the settings leave open: the broker's own address and free ports."""
    ip = config.broker_ip1 or local_address()
    port = config.listen_port or network.free_port(config.bind_address, OTHER_PORTS)
    fast, ha = OTHER_PORTS

    def other(wanted: int, distance: int) -> int:
        return wanted if wanted >= 0 else port + distance

    return msgspec.structs.replace(
        config,
        broker_ip1=ip,
        listen_port=port,
        fast_listen_port=other(config.fast_listen_port, fast),
        ha_listen_port=other(config.ha_listen_port, ha),
    )


@asynccontextmanager
async def run_broker(
    config: BrokerConfig, ports: Ports | None = None, *, stronger: Collection[str] = ()
) -> AsyncIterator[Broker]:
    """Serve until the block is left.

    Settings named in `stronger` win over the broker's own file.
    """
    ports = ports or real_ports()
    config = _with_addresses(with_own_file(config, ports.disk, stronger), ports.network)
    warn_of_old_file(config, ports.disk)
    check_exporter(config)
    address = f"{config.broker_ip1}:{config.listen_port}"
    host = encode_host(config.broker_ip1, config.listen_port)
    files = _open_access_files(config, ports)
    check_kind_of_store(config, ports.disk)
    if not config.enable_d_leger_commit_log:
        await check_identity(config, address, ports.network)
    conditions = FilterTable(config, ports.disk, ports.offload, ports.clock)
    marked = config.enable_consume_queue_ext and config.enable_calc_filter_bit_map
    async with AsyncExitStack() as stack:
        store = await Store.open(
            config.store,
            StorePorts(ports.disk, ports.clock, ports.offload, ports.syncer),
            store_host=host,
            marker=conditions.marker if marked else None,
        )
        stack.push_async_callback(store.close)
        access = _with_users(config, ports, files)  # behind the lock of the store
        conditions.log_end = lambda: store.log_max
        stack.push_async_callback(conditions.save)
        registry = Registry(ports.disk, ports.offload, ports.clock, config.store_path_root_dir)
        stack.push_async_callback(registry.save)
        node = _open_node(config, address, store, ports)
        changes = _changes_of(node, store, registry)
        opened = OpenBroker(
            ports, store, registry, conditions, address, host, node, changes, access
        )
        broker = Broker(address, opened)
        if node is None:
            broker.serves(await stack.enter_async_context(serve(opened, config)))
        else:
            await node.start()
            stack.push_async_callback(node.stop)
            roles = serve_by_leadership(opened, node, config, broker.serves)
            await stack.enter_async_context(roles)
        metrics = _metrics_of(broker, opened)
        broker.metrics_address = await stack.enter_async_context(export_metrics(metrics))
        stack.push_async_callback(broker.unregister)
        if node is not None:
            stack.push_async_callback(node.hand_over)
        yield broker


def _metrics_of(broker: Broker, opened: OpenBroker) -> MetricsServer:
    config = broker.config
    identity = {
        "cluster": config.broker_cluster_name,
        "node_type": "broker",
        "node_id": config.broker_name,
    }
    return MetricsServer(
        config,
        config.bind_address,
        identity,
        ProcessMetrics(lambda: broker.config.broker_role, opened.ports.clock.now_ms()),
        lambda: broker.collectors,
        opened.ports.network,
        opened.ports.clock,
        opened.access,
    )


def _open_access_files(config: BrokerConfig, ports: Ports) -> ServerAccess | None:
    users_of_settings(config)  # a setting that cannot be read stops the start, not a registration
    is_on = config.acl_enable or config.authentication_enabled
    if is_on and config.enable_d_leger_commit_log and own_credentials(config) is None:
        raise ConfigError(
            "access control is on, but the members of the raft group have no key for each other: "
            "give all of them the same innerClientAuthenticationCredentials, of an admin"
        )
    if not config.acl_enable:
        return None
    return open_access(
        BROKER_RIGHTS,
        file=config.acl_file,
        home=config.rocketmq_home,
        disk=ports.disk,
        offload=ports.offload,
        clock=ports.clock,
    )


def _with_users(
    config: BrokerConfig, ports: Ports, files: ServerAccess | None
) -> ServerAccess | None:
    """Access control with the users of the broker; None if it is off.

    With access files users are not in force. An admin can make them ready for the day they are.
    """
    if files is None and not config.authentication_enabled:
        return None
    rules = UserRules(
        config.broker_cluster_name,
        unsigned_codes=codes_of("authenticationWhitelist", config.authentication_whitelist),
        open_codes=codes_of("authorizationWhitelist", config.authorization_whitelist),
        authorizes=config.authorization_enabled,
    )
    path = f"{config.store_path_root_dir}/config/{USERS_FILE}"
    users = UserTable(ports.disk, ports.offload, path, rules)
    if files is not None:
        return replace(files, users=users)
    users.begin(users_of_settings(config))
    return guard_by_users(users)


def _changes_of(node: RaftNode | None, store: Store, registry: Registry) -> GroupChanges | None:
    if node is None:
        return None
    changes = GroupChanges(store, registry, lambda: node.position.leads)
    changes.begin()
    return changes


def _open_node(config: BrokerConfig, address: str, store: Store, ports: Ports) -> RaftNode | None:
    if not config.enable_d_leger_commit_log:
        return None
    own = own_credentials(config)
    settings = NodeSettings(
        tick_seconds=config.raft_election_timeout / 1000 / ELECTION_TICKS,
        append_bytes_max=config.raft_append_bytes_max,
        commit_timeout_ms=config.slave_timeout,
        bind_address=config.bind_address,
        client_address=address,
        key=None if own is None else GroupKey(f"{own.access_key}:{own.secret_key}".encode()),
    )
    return open_node(
        config.group_identity,
        settings,
        store,
        disk=ports.disk,
        network=ports.network,
        offload=ports.offload,
        draw=ports.rng.randrange,
    )
