"""The collectors of a broker's metrics, put together from its parts."""

from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.metrics.lag import LagMetrics
from gantrymq.broker.metrics.state import ClientMetrics, StateMetrics
from gantrymq.broker.metrics.stored import CopyMetrics, StoreMetrics, TimerMetrics
from gantrymq.broker.metrics.traffic import TrafficMetrics
from gantrymq.broker.metrics.unsettled import PopMetrics, TransactionMetrics
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.pop.pop_state import PopState
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.metrics.metric import Collector
from gantrymq.replication.ha.in_sync import InSyncSlaves


def build_collectors(
    shared: Shared,
    sessions: Sessions,
    send: SendHandler,
    pull: PullHandler,
    pop: PopState,
    timers: TimerService,
    half_messages: HalfMessageTable,
    slaves: InSyncSlaves,
) -> tuple[Collector, ...]:
    """All of one role; they cost nothing until they are asked."""
    config, store, registry = shared.config, shared.store, shared.registry
    stats, clock = shared.stats, shared.ports.clock
    held = {
        "pull": lambda: pull.held,
        "pop": lambda: len(pop.pops),
        "notification": lambda: len(pop.notifications),
    }
    return (
        StateMetrics(config, registry, stats, lambda: send.waiting, held).collect,
        ClientMetrics(sessions).collect,
        TrafficMetrics(stats, registry.topics.table, store).collect,
        LagMetrics(config, store, registry, pop.log.open, stats, clock).collect,
        StoreMetrics(store, clock).collect,
        TimerMetrics(timers, clock).collect,
        CopyMetrics(store, slaves, shared.node).collect,
        TransactionMetrics(half_messages, stats).collect,
        PopMetrics(pop.log, store, registry.offsets, stats, clock).collect,
    )
