"""The parts of POP: the revive log, the reviver, ordered pops, and the handlers on them."""

from dataclasses import dataclass

from gantrymq.base.clock import WallClock
from gantrymq.broker.handlers.acks import AckHandler
from gantrymq.broker.handlers.assignment import AssignmentHandler
from gantrymq.broker.handlers.pop import PopHandler
from gantrymq.broker.parts.feature import Feature
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.pop.checks import PopChecks
from gantrymq.broker.pop.long_polling import PopLongPolling
from gantrymq.broker.pop.order import OrderTable
from gantrymq.broker.pop.pop_reader import PopReader
from gantrymq.broker.pop.pop_state import PopState
from gantrymq.broker.pop.progress import SafeProgress
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.pop.reviver import Reviver
from gantrymq.broker.pop.topic_routes import TopicRoutes
from gantrymq.broker.subscriptions.pull_filter import Filters
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.request_modes import ModeTable
from gantrymq.model import RETRY_PREFIX
from gantrymq.protocol.pop import revive_topic
from gantrymq.store.engine import Store


@dataclass(frozen=True)
class PopParts:
    pop: PopHandler
    acks: AckHandler
    assignment: AssignmentHandler
    modes: ModeTable
    state: PopState
    feature: Feature


def build_pop(shared: Shared, sessions: Sessions, filters: Filters) -> PopParts:
    """Build the parts in the order in which they need each other."""
    config, store, ports = shared.config, shared.store, shared.ports
    registry, policy, clock = shared.registry, shared.policy, ports.clock
    directory = f"{config.store_path_root_dir}/config"
    progress = SafeProgress(registry.offsets, store)
    name = revive_topic(config.broker_cluster_name)
    log = ReviveLog(store, registry.offsets, progress, name, config.revive_queue_num, shared.host)
    order = OrderTable(ports.disk, ports.offload, directory)
    modes = ModeTable(config, ports.disk, ports.offload, directory)
    reviver = Reviver(config, log, store, registry, policy, shared.stats, clock)
    reader = PopReader(config, store, registry, progress, order, log, clock, ports.rng)
    pops = PopLongPolling(config, store, shared.refusals)
    notifications = PopLongPolling(config, store, shared.refusals)
    state = PopState(log, reviver, order, reader, pops, notifications)
    routes = TopicRoutes(config, registry.topics, ports.network)
    pop = PopHandler(config, state, PopChecks(config, policy), filters, shared.stats, clock)
    feature = Feature(
        opening=(lambda: _open(log, shared),),
        background=(reviver.run,),
        saves=((config.flush_consumer_offset_interval / 1000, lambda: _save(order, clock)),),
        on_lost=(pop.forget,),
        on_stop=(pop.release_all, routes.close),
        closing=(lambda: _close(log, progress, store, order, clock), pop.close),
        on_settings=(reviver.settings_changed,),
    )
    return PopParts(
        pop,
        AckHandler(config, store, registry, policy, state, clock),
        AssignmentHandler(registry, sessions, policy, modes, routes),
        modes,
        state,
        feature,
    )


async def _open(log: ReviveLog, shared: Shared) -> None:
    """Load the open checkpoints before clients can pop."""
    await log.load()
    # A retry topic is created with its first message; a crash may have kept only the message.
    for topic in shared.store.queues.topics():
        if topic.startswith(RETRY_PREFIX) and shared.registry.topics.get(topic) is None:
            shared.policy.ensure_topic(topic, max(shared.store.queues.ids(topic)) + 1)


async def _save(order: OrderTable, clock: WallClock) -> None:
    await order.save(clock.now_ms())


async def _close(
    log: ReviveLog, progress: SafeProgress, store: Store, order: OrderTable, clock: WallClock
) -> None:
    """Make the log durable first, so that all progress may be saved."""
    log.advance()
    await store.upkeep.checkpoint()
    progress.withdraw()
    await _save(order, clock)
