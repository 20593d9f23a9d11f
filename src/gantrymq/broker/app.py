"""The broker's parts, put together in the order in which they need each other.

Leaving the block takes them down in the opposite order: name servers are told, held pulls are
answered, what was accepted is answered, the store is flushed and closed, the tables are saved.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import msgspec

from gantrymq.base import upkeep
from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.network import Network, TcpNetwork
from gantrymq.base.offload import ThreadOffload
from gantrymq.broker.announce import Announcer
from gantrymq.broker.parts.broker import Ports, Shared, assemble
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
from gantrymq.store.syncer import best_syncer

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
    """Fill in what was left to be found: our own address and free ports."""
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
    """Serve until the block is left; `stronger` settings stand above what was changed by calls."""
    ports = ports or real_ports()
    config = _with_addresses(with_own_file(config, ports.disk, stronger), ports.network)
    warn_of_old_file(config, ports.disk)
    address = f"{config.broker_ip1}:{config.listen_port}"
    host = encode_host(config.broker_ip1, config.listen_port)
    conditions = FilterTable(config, ports.disk, ports.offload, ports.clock)
    marked = config.enable_consume_queue_ext and config.enable_calc_filter_bit_map
    async with AsyncExitStack() as stack:
        store = await Store.open(
            config.store,
            disk=ports.disk,
            clock=ports.clock,
            offload=ports.offload,
            syncer=ports.syncer,
            store_host=host,
            marker=conditions.marker if marked else None,
        )
        stack.push_async_callback(store.close)
        conditions.log_end = lambda: store.log_max
        stack.push_async_callback(conditions.save)
        registry = _open_registry(config, store, ports)
        stack.push_async_callback(registry.save)
        ha_address = f"{config.broker_ip1}:{config.ha_listen_port}"
        announcer = Announcer(config, address, ha_address, registry.topics, ports.network)
        policy = Policy(config, registry, announcer)
        stats = BrokerStats(ports.clock.now_ms(), store.written)
        parts = assemble(Shared(config, ports, store, registry, policy, stats, conditions, host))
        routes = broker_routes(parts.handlers)

        def forget(connection: Connection) -> None:
            for listener in parts.on_lost:
                listener(connection)

        stack.push_async_callback(policy.saved)
        for prepare in parts.opening:
            await prepare()
        for close in parts.closing:
            stack.push_async_callback(close)
        for port, table in (
            (config.listen_port, routes),
            (config.fast_listen_port, routes.without(*PULL_CODES)),
        ):
            server = Server(table, ports.network, on_lost=forget)
            await server.start(config.bind_address, port)
            stack.push_async_callback(server.stop)
        for release in parts.on_stop:
            stack.callback(release)
        announced = asyncio.Event()
        tasks = await stack.enter_async_context(_BackgroundTasks())
        for work in parts.background:
            tasks.start(_kept_up(work))
        tasks.start(_kept_up(lambda: _announce(announcer, announced)))
        stack.push_async_callback(announcer.unregister)
        for seconds, save in parts.saves:
            tasks.start(_every(seconds, save))
        yield Broker(address, config, store, registry, parts.delays, parts.timers, announced)


def _open_registry(config: BrokerConfig, store: Store, ports: Ports) -> Registry:
    registry = Registry(ports.disk, ports.offload, ports.clock, config.store_path_root_dir)
    for topic in boot_topics(config):
        if registry.topics.get(topic.topic_name) is None:
            registry.topics.put(topic.topic_name, topic)
    for name in SYSTEM_GROUPS:
        if registry.groups.get(name) is None:
            registry.groups.put(name, GroupConfig(group_name=name))
    for said in registry.offsets.clamp(store.max_offset):
        log.warning("progress beyond the recovered end of its queue, pulled back: %s", said)
    return registry


class _BackgroundTasks:
    """Work that goes on while the broker serves; cancelled when it stops."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(_say_failure)
        self._tasks.append(task)

    async def __aenter__(self) -> "_BackgroundTasks":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _say_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("background work ended", exc_info=task.exception())


AGAIN_SECONDS = 1.0
"""How long work that failed rests before it begins again."""


async def _kept_up(work: Callable[[], Awaitable[None]]) -> None:
    """No failure ends a service for good: messages would wait for it and nobody would know."""
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("background work failed, beginning again in %g s", AGAIN_SECONDS)
            await asyncio.sleep(AGAIN_SECONDS)


EAGER_SECONDS, EAGER_TRIES = 0.2, 100


async def _announce(announcer: Announcer, announced: asyncio.Event) -> None:
    """A broker whose name servers are not up yet starts all the same and keeps trying."""
    for _ in range(EAGER_TRIES):
        if await announcer.register_all():
            announced.set()
            break
        await asyncio.sleep(EAGER_SECONDS)
    await announcer.run()


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await upkeep.pause(seconds)
        try:
            await work()
        except Exception:
            log.exception("saving failed, trying again in %g s", seconds)
