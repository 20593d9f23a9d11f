"""Starts a broker's parts in the order in which they need each other.

Leaving the block stops them in the opposite order: the broker unregisters from name servers,
answers held pulls and accepted sends, flushes and closes the store, and saves its tables.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import msgspec

from gantrymq.base.background import Background
from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.network import Network, TcpNetwork
from gantrymq.base.offload import ThreadOffload
from gantrymq.broker.announce import Announcer
from gantrymq.broker.identity import check_identity
from gantrymq.broker.parts.broker import build_broker
from gantrymq.broker.parts.shared import Ports, Shared
from gantrymq.broker.policy import SYSTEM_GROUPS, Policy, boot_topics
from gantrymq.broker.routes import PULL_CODES, broker_routes
from gantrymq.broker.settings.config import OTHER_PORTS, BrokerConfig, local_address
from gantrymq.broker.settings.live_settings import warn_of_old_file, with_own_file
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.model import GroupConfig
from gantrymq.protocol.ids import encode_host
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import Server
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import best_syncer
from gantrymq.store.shared import StorePorts

__all__ = ["Broker", "Ports", "real_ports", "run_broker"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    address: str
    config: BrokerConfig
    store: Store
    registry: Registry
    delays: DelayService
    timers: TimerService
    announced: asyncio.Event
    """Set once a name server knows this broker; never, when none is configured."""


def real_ports() -> Ports:
    return Ports(
        TcpNetwork(), OsDisk(), SystemClock(), ThreadOffload(), random.Random(), best_syncer()
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
    address = f"{config.broker_ip1}:{config.listen_port}"
    host = encode_host(config.broker_ip1, config.listen_port)
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
        conditions.log_end = lambda: store.log_max
        stack.push_async_callback(conditions.save)
        registry = _open_registry(config, store, ports)
        stack.push_async_callback(registry.save)
        ha_address = f"{config.broker_ip2 or config.broker_ip1}:{config.ha_listen_port}"
        announcer = Announcer(config, address, ha_address, registry.topics, ports.network)
        policy = Policy(config, registry, announcer)
        stats = BrokerStats(ports.clock.now_ms(), store.written)
        parts = build_broker(
            Shared(config, ports, store, registry, announcer, policy, stats, conditions, host)
        )
        routes = broker_routes(parts.handlers)

        def forget(connection: Connection) -> None:
            for listener in parts.feature.on_lost:
                listener(connection)

        for ask in parts.feature.before_delete:
            store.upkeep.ask_before_delete(ask)
        stack.push_async_callback(policy.close)
        for prepare in parts.feature.opening:
            await prepare()
        for close in parts.feature.closing:
            stack.push_async_callback(close)
        for port, table in (
            (config.listen_port, routes),
            (config.fast_listen_port, routes.without(*PULL_CODES)),
        ):
            server = Server(table, ports.network, on_lost=forget)
            await server.start(config.bind_address, port)
            stack.push_async_callback(server.stop)
        for release in parts.feature.on_stop:
            stack.callback(release)
        announced = asyncio.Event()
        background = Background(f"broker {config.broker_name}")
        stack.push_async_callback(background.close)
        for work in parts.feature.background:
            background.keep_up(work)
        background.keep_up(lambda: _announce(announcer, announced))
        stack.push_async_callback(announcer.unregister)
        for seconds, save in parts.feature.saves:
            background.every(seconds, save, may_be_late=True)
        yield Broker(address, config, store, registry, parts.delays, parts.timers, announced)


def _open_registry(config: BrokerConfig, store: Store, ports: Ports) -> Registry:
    registry = Registry(ports.disk, ports.offload, ports.clock, config.store_path_root_dir)
    for topic in boot_topics(config):
        if registry.topics.get(topic.topic_name) is None:
            registry.topics.put(topic.topic_name, topic)
    for name in SYSTEM_GROUPS:
        if registry.groups.get(name) is None:
            registry.groups.put(name, GroupConfig(group_name=name))
    if config.is_slave:
        return registry  # its progress is the master's, whose queues may end behind these
    for said in registry.offsets.clamp(store.queues.max_offset):
        log.warning("progress beyond the recovered end of its queue, pulled back: %s", said)
    return registry


EAGER_SECONDS, EAGER_TRIES = 0.2, 100


async def _announce(announcer: Announcer, announced: asyncio.Event) -> None:
    """Register with the name servers. A broker starts without them and keeps trying."""
    for _ in range(EAGER_TRIES):
        if await announcer.register_all():
            announced.set()
            break
        await asyncio.sleep(EAGER_SECONDS)
    await announcer.run()
