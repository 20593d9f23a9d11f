"""What a broker is made of: every part, built complete, with what it needs handed to it."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from gantrymq.base import upkeep
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.network import Network
from gantrymq.base.offload import Offload
from gantrymq.broker.figures import Figures
from gantrymq.broker.handlers.admin import AdminHandler
from gantrymq.broker.handlers.clients import ClientHandler
from gantrymq.broker.handlers.groups import GroupHandler
from gantrymq.broker.handlers.offsets import OffsetHandler
from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.query import QueryHandler
from gantrymq.broker.handlers.relays import RelayHandler
from gantrymq.broker.handlers.reply import ReplyHandler
from gantrymq.broker.handlers.resets import ResetHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.handlers.sendback import SendBackHandler
from gantrymq.broker.handlers.stats import StatsHandler
from gantrymq.broker.handlers.topics import TopicHandler
from gantrymq.broker.locks import QueueLockTable
from gantrymq.broker.offset_moves import OffsetMoves
from gantrymq.broker.parts.pop import Popping, popping
from gantrymq.broker.parts.publishing import Publishing, publishing
from gantrymq.broker.parts.transactions import transacting
from gantrymq.broker.parts.waiting import Timing, timing
from gantrymq.broker.policy import Policy
from gantrymq.broker.publishing.journal import SAVE_SECONDS as JOURNAL_SECONDS
from gantrymq.broker.routes import Handlers
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.live_settings import BrokerSettings
from gantrymq.broker.stats import SAMPLE_SECONDS, BrokerStats
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.consumer_filters import SAVE_SECONDS, FilterTable
from gantrymq.broker.subscriptions.pull_filter import Filters
from gantrymq.broker.subscriptions.sessions import SCAN_SECONDS, Sessions
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.transactions.ledger import HalfMessageTable
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store
from gantrymq.store.syncer import Syncer


@dataclass(frozen=True)
class Ports:
    """How a broker reaches the world; tests put their own in."""

    network: Network
    disk: Disk
    clock: WallClock
    offload: Offload
    rng: random.Random
    syncer: Syncer


@dataclass(frozen=True)
class Shared:
    """What several parts need. Only this module sees all of it; a part gets what it uses."""

    config: BrokerConfig
    ports: Ports
    store: Store
    registry: Registry
    policy: Policy
    stats: BrokerStats
    conditions: FilterTable
    host: bytes
    """This broker's address as records carry it."""


@dataclass
class BrokerParts:
    """A broker put together, not yet running."""

    handlers: Handlers
    delays: DelayService
    timers: TimerService
    opening: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Awaited before the ports open."""
    on_lost: list[Callable[[Connection], None]] = field(default_factory=list)
    """Told of every connection that closed."""
    on_stop: list[Callable[[], None]] = field(default_factory=list)
    """Called before the ports close: whoever is held is let go."""
    background: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Work that goes on for as long as the broker serves; cancelled when it stops."""
    saves: list[tuple[float, Callable[[], Awaitable[None]]]] = field(default_factory=list)
    """What is written down every so many seconds."""
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Called once nobody is served any more, while the store still takes messages."""


def assemble(shared: Shared) -> BrokerParts:
    """Build the parts in the order in which they need each other."""
    config, ports, store, registry = shared.config, shared.ports, shared.store, shared.registry
    policy, stats, clock = shared.policy, shared.stats, ports.clock
    sessions, locks, redirect = Sessions(), QueueLockTable(), SystemTopicRedirect(config, clock)
    resets, windows = Resets(registry.offsets), StatsWindows(stats, config.broker_cluster_name)
    filters = Filters(config, sessions, shared.conditions)
    moves = OffsetMoves(config, store, clock, shared.host)
    pull = PullHandler(config, store, resets, policy, sessions, filters, stats, moves)
    clients = ClientHandler(policy, sessions, filters, shared.conditions, locks, stats, config)
    live = BrokerSettings(config, ports.disk, ports.offload)
    timers = _timing(shared, redirect)
    trade = transacting(
        config, store, registry.offsets, policy, sessions, redirect, stats, clock=clock,
        rng=ports.rng, host=shared.host,
    )  # fmt: skip
    pop = _popping(shared, sessions, filters)
    epochs = _publishing(shared, redirect)
    figures = Figures(config, store, stats, lambda: pull.held, timers.delays, timers.service, clock)
    send = _sending(shared, redirect, trade.ledger)
    parts = BrokerParts(
        Handlers(
            send=send,
            transactions=trade.handler,
            back=SendBackHandler(config, store, policy, redirect, stats, ports.rng, shared.host),
            reply=ReplyHandler(
                config, store, policy, sessions, stats, clock, ports.rng, shared.host
            ),
            pull=pull,
            pop=pop.pop,
            acks=pop.acks,
            assignment=pop.assignment,
            offsets=OffsetHandler(store, registry, policy, resets),
            clients=clients,
            query=QueryHandler(config, store),
            topics=TopicHandler(config, store, registry, policy, sessions, windows),
            groups=GroupHandler(
                config, store, registry, policy, sessions, windows, [pull.release, pop.pop.release]
            ),
            resets=ResetHandler(config, store, registry, sessions, resets, pull.redirect),
            relays=RelayHandler(config, store, sessions),
            timers=timers.handler,
            publishing=epochs.handler,
            stats=StatsHandler(windows, sessions, clock),
            admin=AdminHandler(live, figures, clock),
        ),
        timers.delays,
        timers.service,
    )
    _follow_changes(live, shared, trade.ledger, timers.delays)
    _tell_of_changes(live, send.take_settings, redirect.take_settings, pop.reviver.settings_changed)
    parts.opening.append(trade.checker.recover)
    parts.on_lost += [pull.forget, clients.forget]
    parts.on_stop.append(pull.release_all)
    parts.closing += [*timers.closing, trade.endings.close]
    parts.background += [
        *timers.background,
        trade.checker.run,
        lambda: _expire_clients(clients),
        lambda: _sample(stats, windows, clock),
    ]
    offsets_seconds = config.flush_consumer_offset_interval / 1000
    parts.saves += [
        (offsets_seconds, registry.offsets.save),
        (SAVE_SECONDS, shared.conditions.save),
        *timers.saves,
    ]
    _let_pop(parts, pop, offsets_seconds)
    _let_publish(parts, epochs)
    return parts


def _follow_changes(
    live: BrokerSettings, shared: Shared, ledger: HalfMessageTable, delays: DelayService
) -> None:
    """Tell those who keep copies of settings when one of them changed."""
    config = shared.config
    live.changed += [
        lambda keys: shared.store.reconfigure(config.store),
        lambda keys: ledger.set_times(
            config.transaction_time_out, config.transaction_check_interval
        ),
        lambda keys: delays.set_levels(config.delay_levels_ms),
        shared.policy.settings_changed,
    ]


def _tell_of_changes(live: BrokerSettings, *told: Callable[[], None]) -> None:
    def tell(keys: Collection[str]) -> None:
        for take_settings in told:
            take_settings()

    live.changed.append(tell)


def _sending(
    shared: Shared, redirect: SystemTopicRedirect, ledger: HalfMessageTable
) -> SendHandler:
    return SendHandler(
        shared.config, shared.store, shared.registry, shared.policy, redirect, ledger, shared.stats,
        shared.ports.rng, shared.host,
    )  # fmt: skip


def _timing(shared: Shared, redirect: SystemTopicRedirect) -> Timing:
    ports = shared.ports
    return timing(
        shared.config, shared.store, shared.registry, redirect, shared.stats, disk=ports.disk,
        offload=ports.offload, clock=ports.clock, host=shared.host,
    )  # fmt: skip


def _popping(shared: Shared, sessions: Sessions, filters: Filters) -> Popping:
    ports = shared.ports
    return popping(
        shared.config, shared.store, shared.registry, shared.policy, sessions, filters,
        shared.stats, disk=ports.disk, offload=ports.offload, network=ports.network,
        clock=ports.clock, rng=ports.rng, host=shared.host,
    )  # fmt: skip


def _publishing(shared: Shared, redirect: SystemTopicRedirect) -> Publishing:
    ports = shared.ports
    return publishing(
        shared.config, shared.store, shared.registry, redirect, shared.stats, disk=ports.disk,
        offload=ports.offload, clock=ports.clock, host=shared.host,
    )  # fmt: skip


def _let_publish(parts: BrokerParts, epochs: Publishing) -> None:
    parts.opening.append(epochs.open)
    parts.saves.append((JOURNAL_SECONDS, epochs.journal.save))
    parts.closing.append(epochs.close)


def _let_pop(parts: BrokerParts, pop: Popping, save_seconds: float) -> None:
    parts.opening.append(pop.open)
    parts.on_lost.append(pop.pop.forget)
    parts.on_stop.append(pop.stop)
    parts.background.append(pop.reviver.run)
    parts.saves.append((save_seconds, pop.save))
    parts.closing.append(pop.close)


async def _expire_clients(clients: ClientHandler) -> None:
    while True:
        await upkeep.pause(SCAN_SECONDS)
        clients.expire(asyncio.get_running_loop().time())


async def _sample(stats: BrokerStats, windows: StatsWindows, clock: WallClock) -> None:
    while True:
        day = time.localtime(clock.now_ms() / 1000).tm_yday
        now = asyncio.get_running_loop().time()
        stats.sample(now, day)
        windows.sample(now)
        await upkeep.pause(SAMPLE_SECONDS)
