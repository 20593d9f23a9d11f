"""The parts list of a broker: builds every part and hands it what it needs."""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass

from gantrymq.base import upkeep
from gantrymq.base.clock import WallClock
from gantrymq.base.telemetry import levels_changed
from gantrymq.broker.figures import Figures
from gantrymq.broker.handlers.access import AccessHandler
from gantrymq.broker.handlers.admin import AdminHandler
from gantrymq.broker.handlers.cleaning import CleaningHandler
from gantrymq.broker.handlers.clients import ClientHandler
from gantrymq.broker.handlers.groups import GroupHandler
from gantrymq.broker.handlers.offsets import OffsetHandler
from gantrymq.broker.handlers.progress import ProgressHandler
from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.query import QueryHandler
from gantrymq.broker.handlers.queue_entries import QueueEntryHandler
from gantrymq.broker.handlers.raft_group import RaftGroupHandler
from gantrymq.broker.handlers.relays import RelayHandler
from gantrymq.broker.handlers.reply import ReplyHandler
from gantrymq.broker.handlers.resets import ResetHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.handlers.sendback import SendBackHandler
from gantrymq.broker.handlers.stats import StatsHandler
from gantrymq.broker.handlers.topics import TopicHandler
from gantrymq.broker.handlers.users import UserHandler
from gantrymq.broker.locks import QueueLockTable
from gantrymq.broker.offset_moves import OffsetMoves
from gantrymq.broker.parts.feature import Feature, joined, without_work
from gantrymq.broker.parts.metrics import build_collectors
from gantrymq.broker.parts.pop import build_pop
from gantrymq.broker.parts.publishing import build_publishing
from gantrymq.broker.parts.replication import build_replication
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.parts.transactions import build_transactions
from gantrymq.broker.parts.waiting import build_waiting
from gantrymq.broker.routes import Handlers
from gantrymq.broker.settings.live_settings import BrokerSettings
from gantrymq.broker.stats import SAMPLE_SECONDS, BrokerStats
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.consumer_filters import SAVE_SECONDS
from gantrymq.broker.subscriptions.pull_filter import Filters
from gantrymq.broker.subscriptions.sessions import SCAN_SECONDS, Sessions
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.metrics.metric import Collector


@dataclass(frozen=True)
class BrokerParts:
    """All parts of a broker, not yet running."""

    handlers: Handlers
    delays: DelayService
    timers: TimerService
    feature: Feature
    """What its app calls, of all features together."""
    collectors: tuple[Collector, ...]
    """Its metrics."""


def build_broker(shared: Shared) -> BrokerParts:
    """Build the parts in the order in which they need each other."""
    config, ports, store, registry = shared.config, shared.ports, shared.store, shared.registry
    policy, stats, clock = shared.policy, shared.stats, ports.clock
    sessions, locks, redirect = Sessions(), QueueLockTable(), SystemTopicRedirect(config, clock)
    resets, windows = Resets(registry.offsets), StatsWindows(stats, config.broker_cluster_name)
    conditions, refusals = shared.conditions, shared.refusals
    filters = Filters(config, sessions, conditions, refusals)
    moves = OffsetMoves(config, store, clock, shared.host)
    pull = PullHandler(config, store, resets, policy, sessions, filters, stats, moves, refusals)
    clients = ClientHandler(policy, sessions, filters, conditions, locks, stats, config, refusals)
    settings = BrokerSettings(config, ports.disk, ports.offload)
    waiting = build_waiting(shared, redirect)
    transactions = build_transactions(shared, sessions, redirect)
    pop = build_pop(shared, sessions, filters)
    epochs = build_publishing(shared, redirect)
    replication = build_replication(shared, pop.modes)
    delays, timers = waiting.delays, waiting.timers
    figures = Figures(config, store, stats, lambda: pull.held, delays, timers, clock, refusals)
    send = _build_send(shared, redirect, transactions.half_messages)
    handlers = Handlers(
        send=send,
        transactions=transactions.handler,
        back=_build_send_back(shared, redirect),
        reply=ReplyHandler(config, store, policy, sessions, stats, clock, ports.rng, shared.host),
        pull=pull,
        pop=pop.pop,
        acks=pop.acks,
        assignment=pop.assignment,
        offsets=OffsetHandler(store, registry, policy, resets),
        clients=clients,
        query=QueryHandler(config, store, shared.require),
        topics=TopicHandler(config, store, registry, policy, sessions, windows),
        groups=GroupHandler(config, registry, policy, windows, [pull.release, pop.pop.release]),
        progress=ProgressHandler(
            config, store, registry, resets, sessions, windows, clock, shared.announcer.address
        ),
        entries=QueueEntryHandler(store, sessions, filters),
        cleaning=CleaningHandler(config, store, registry),
        resets=ResetHandler(config, store, registry, sessions, resets, pull.redirect),
        relays=RelayHandler(config, store, sessions),
        timers=waiting.handler,
        publishing=epochs.handler,
        stats=StatsHandler(windows, sessions, store, registry.offsets, clock),
        copies=replication.handler,
        raft_group=RaftGroupHandler(config, shared.node),
        admin=AdminHandler(settings, figures, clock),
        access=AccessHandler(config, shared.access, shared.announcer.address),
        users=UserHandler(shared.access),
    )
    own = _own_feature(shared, clients, windows, pull, send, redirect)
    active = joined(waiting.feature, transactions.feature, pop.feature, epochs.feature)
    if config.is_slave:
        active = without_work(active)
    feature = joined(replication.feature, active, own)
    _tell_of_changes(settings, shared, feature)
    collectors = build_collectors(
        shared, sessions, send, pull, pop, timers, transactions, replication
    )
    return BrokerParts(handlers, waiting.delays, waiting.timers, feature, collectors)


def _own_feature(
    shared: Shared,
    clients: ClientHandler,
    windows: StatsWindows,
    pull: PullHandler,
    send: SendHandler,
    redirect: SystemTopicRedirect,
) -> Feature:
    """What sends, pulls and the broker's tables need over time."""
    offsets, conditions, clock = shared.registry.offsets, shared.conditions, shared.ports.clock
    return Feature(
        background=(
            lambda: _expire_clients(clients),
            lambda: _sample(shared.stats, windows, clock),
        ),
        saves=(
            (shared.config.flush_consumer_offset_interval / 1000, offsets.save),
            (SAVE_SECONDS, conditions.save),
        ),
        on_lost=(pull.forget, clients.forget),
        on_stop=(pull.release_all,),
        closing=(pull.close,),
        on_settings=(send.take_settings, redirect.take_settings),
    )


def _build_send_back(shared: Shared, redirect: SystemTopicRedirect) -> SendBackHandler:
    return SendBackHandler(
        shared.config,
        shared.store,
        shared.policy,
        redirect,
        shared.stats,
        shared.ports.rng,
        shared.host,
        shared.require,
    )


def _build_send(
    shared: Shared, redirect: SystemTopicRedirect, half_messages: HalfMessageTable
) -> SendHandler:
    return SendHandler(
        shared.config,
        shared.store,
        shared.registry,
        shared.policy,
        redirect,
        half_messages,
        shared.stats,
        shared.ports.rng,
        shared.host,
        shared.refusals,
    )


def _tell_of_changes(settings: BrokerSettings, shared: Shared, feature: Feature) -> None:
    """Notify the parts that keep copies of settings, after a change; the store comes first."""

    def tell(keys: Collection[str]) -> None:
        levels_changed(shared.config, keys)
        shared.store.reconfigure(shared.config.store)
        for take_settings in feature.on_settings:
            take_settings()
        shared.policy.settings_changed(keys)

    settings.changed.append(tell)


async def _expire_clients(clients: ClientHandler) -> None:
    while True:
        await upkeep.pause(SCAN_SECONDS)
        clients.expire(asyncio.get_running_loop().time())


async def _sample(stats: BrokerStats, windows: StatsWindows, clock: WallClock) -> None:
    """Sample every 10 s, and keep the totals at each local midnight."""
    stats.begin_day()
    day, loop = _day(clock), asyncio.get_running_loop()
    due = loop.time()
    while True:
        if day != (today := _day(clock)):
            day = today
            stats.begin_day()
        now = loop.time()
        if now >= due:
            due = now + SAMPLE_SECONDS
            stats.sample(now)
            await windows.sample(now)
        await upkeep.pause(max(0.0, min(due - loop.time(), _seconds_to_midnight(clock))))


def _day(clock: WallClock) -> tuple[int, ...]:
    return time.localtime(clock.now_ms() / 1000)[:3]


def _seconds_to_midnight(clock: WallClock) -> float:
    """By the clock of today; on a day that the clocks change midnight is found by waiting again."""
    now_ms = clock.now_ms()
    today = time.localtime(now_ms / 1000)
    passed = today.tm_hour * 3600 + today.tm_min * 60 + today.tm_sec + now_ms % 1000 / 1000
    return max(0.05, 86_400 - passed)
