"""The collectors of a broker's metrics, put together from its parts."""

from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.metrics.lag import LagMetrics
from gantrymq.broker.metrics.state import ClientMetrics, StateMetrics
from gantrymq.broker.metrics.stored import CopyMetrics, StoreMetrics, TimerMetrics
from gantrymq.broker.metrics.traffic import TrafficMetrics
from gantrymq.broker.metrics.unsettled import PopMetrics, TransactionMetrics
from gantrymq.broker.parts.pop import PopParts
from gantrymq.broker.parts.replication import ReplicationParts
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.parts.transactions import TransactionParts
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.metrics.metric import Collector


def build_collectors(
    shared: Shared,
    sessions: Sessions,
    send: SendHandler,
    pull: PullHandler,
    pop: PopParts,
    timers: TimerService,
    transactions: TransactionParts,
    replication: ReplicationParts,
) -> tuple[Collector, ...]:
    """All of one role; they cost nothing until they are asked."""
    config, store, registry = shared.config, shared.store, shared.registry
    stats, clock, lent = shared.stats, shared.ports.clock, pop.state
    held = {
        "pull": lambda: pull.held,
        "pop": lambda: len(lent.pops),
        "notification": lambda: len(lent.notifications),
    }
    return (
        StateMetrics(config, registry, stats, lambda: send.waiting, held).collect,
        ClientMetrics(sessions).collect,
        TrafficMetrics(stats, registry.topics.table, store).collect,
        LagMetrics(config, store, registry, lent.log.open, stats, clock).collect,
        StoreMetrics(store, clock).collect,
        TimerMetrics(timers, clock).collect,
        CopyMetrics(store, replication.slaves, shared.node).collect,
        TransactionMetrics(transactions.half_messages, stats).collect,
        PopMetrics(lent.log, store, registry, stats, clock).collect,
    )
