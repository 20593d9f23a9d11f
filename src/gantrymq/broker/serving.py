"""Serves clients in one role, on a store that is open: as a master, or as a slave.

`app` opens what stays (store, tables, raft member) and serves with it; a broker of a raft group
serves again, in its new role, whenever its group elects another leader. Nothing of one role is left
in the next one: parts are built anew and find what they need in store and tables, as after a
restart.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from gantrymq.access.rule_files import WATCH_SECONDS
from gantrymq.access.server_access import ServerAccess
from gantrymq.base.background import Background
from gantrymq.broker.announce import Announcer
from gantrymq.broker.copies.group_changes import GroupChanges
from gantrymq.broker.parts.broker import BrokerParts, build_broker
from gantrymq.broker.parts.shared import Ports, Shared
from gantrymq.broker.policy import SYSTEM_GROUPS, Policy, boot_topics
from gantrymq.broker.routes import PULL_CODES, broker_routes
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.tables.registry import Registry
from gantrymq.metrics.metric import Collector
from gantrymq.metrics.process import RequestMetrics
from gantrymq.model import GroupConfig
from gantrymq.remoting.admission import ServerAdmission
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import Server
from gantrymq.replication.group.node import RaftNode
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

EAGER_SECONDS, EAGER_TRIES = 0.2, 100


@dataclass(frozen=True)
class OpenBroker:
    """What stays open while roles change."""

    ports: Ports
    store: Store
    registry: Registry
    conditions: FilterTable
    address: str
    host: bytes
    """The address as records carry it."""
    node: RaftNode | None = None
    changes: GroupChanges | None = None
    """Of a raft group's member."""
    access: ServerAccess | None = None
    """None: everybody who reaches a port is served."""
    announced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a name server knows this broker, in whatever role; never without name servers."""


@dataclass(frozen=True)
class Serving:
    """A broker that serves in one role."""

    config: BrokerConfig
    parts: BrokerParts
    announcer: Announcer
    announced: asyncio.Event
    """Set once a name server knows it in this role."""
    collectors: tuple[Collector, ...]
    """Its metrics."""


@asynccontextmanager
async def serve(opened: OpenBroker, config: BrokerConfig) -> AsyncIterator[Serving]:
    """Serve until the block is left; the caller unregisters from name servers if it is the end."""
    ports, store, registry = opened.ports, opened.store, opened.registry
    _prepare_tables(registry, store, config)
    async with AsyncExitStack() as stack:
        if opened.changes is not None and not config.is_slave:
            opened.changes.lead()
            stack.callback(opened.changes.follow)
        ha_address = f"{config.broker_ip2 or config.broker_ip1}:{config.ha_listen_port}"
        announcer = Announcer(config, opened.address, ha_address, registry.topics, ports.network)
        stats = BrokerStats(ports.clock.now_ms(), store.written)
        admission = ServerAdmission(config)
        policy = Policy(config, registry, announcer, admission.refusals)
        parts = build_broker(
            Shared(
                config,
                ports,
                store,
                registry,
                announcer,
                policy,
                stats,
                opened.conditions,
                opened.host,
                opened.node,
                opened.access,
                admission.refusals,
            )
        )
        admission.is_congested = parts.handlers.send.is_congested
        access = opened.access
        routes = broker_routes(parts.handlers, None if access is None else access.guard)
        feature = parts.feature

        def forget(connection: Connection) -> None:
            for listener in feature.on_lost:
                listener(connection)

        for ask in feature.before_delete:
            stack.callback(store.upkeep.ask_before_delete(ask))
        stack.push_async_callback(policy.close)
        for prepare in feature.opening:
            await prepare()
        for close in feature.closing:
            stack.push_async_callback(close)
        for port, table in (
            (config.listen_port, routes),
            (config.fast_listen_port, routes.without(*PULL_CODES)),
        ):
            server = Server(table, ports.network, on_lost=forget, admission=admission)
            await server.start(config.bind_address, port)
            stack.push_async_callback(server.stop)
        for release in feature.on_stop:
            stack.callback(release)
        stack.callback(announcer.close)
        background = Background(f"broker {config.broker_name}")
        stack.push_async_callback(background.close)
        collectors = (*parts.collectors, RequestMetrics(admission).collect)
        serving = Serving(config, parts, announcer, asyncio.Event(), collectors)
        for work in feature.background:
            background.keep_up(work)
        background.keep_up(lambda: _announce(serving, opened.announced))
        if access is not None and access.files is not None:
            background.every(WATCH_SECONDS, access.files.refresh)
        for seconds, save in feature.saves:
            background.every(seconds, save, may_be_late=True)
        yield serving


def _prepare_tables(registry: Registry, store: Store, config: BrokerConfig) -> None:
    for topic in boot_topics(config):
        if registry.topics.get(topic.topic_name) is None:
            registry.topics.put(topic.topic_name, topic)
    for name in SYSTEM_GROUPS:
        if registry.groups.get(name) is None:
            registry.groups.put(name, GroupConfig(group_name=name))
    if config.is_slave:
        return  # its progress is the master's, whose queues may end behind these
    registry.offsets.committed_here = None
    for said in registry.offsets.clamp(store.queues.max_offset):
        log.warning("progress beyond the recovered end of its queue, pulled back: %s", said)


async def _announce(serving: Serving, announced: asyncio.Event) -> None:
    """Register with the name servers. A broker starts without them and keeps trying."""
    for _ in range(EAGER_TRIES):
        if await serving.announcer.register_all():
            serving.announced.set()
            announced.set()
            break
        await asyncio.sleep(EAGER_SECONDS)
    await serving.announcer.run()
