"""Everything that popping is made of, put together."""

import random
from dataclasses import dataclass

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.network import Network
from gantrymq.base.offload import Offload
from gantrymq.broker.handlers.acks import AckHandler
from gantrymq.broker.handlers.assignment import AssignmentHandler
from gantrymq.broker.handlers.pop import PopHandler
from gantrymq.broker.policy import Policy
from gantrymq.broker.pop.checks import PopChecks
from gantrymq.broker.pop.order import OrderTable
from gantrymq.broker.pop.progress import SafeProgress
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.pop.reviving import Reviver
from gantrymq.broker.pop.taking import Taking
from gantrymq.broker.pop.topic_routes import TopicRoutes
from gantrymq.broker.pop.waiting import PollRooms
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.pull_filter import Filters
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.tables.request_modes import ModeTable
from gantrymq.model import RETRY_PREFIX
from gantrymq.protocol.pop import revive_topic
from gantrymq.store.engine import Store


@dataclass(frozen=True)
class Popping:
    """The handlers, and what the broker has to call at the turns of its life."""

    pop: PopHandler
    acks: AckHandler
    assignment: AssignmentHandler
    reviver: Reviver
    _log: ReviveLog
    _order: OrderTable
    _routes: TopicRoutes
    _store: Store
    _registry: Registry
    _policy: Policy
    _clock: WallClock

    async def open(self) -> None:
        """Find what is lent, before anybody pops."""
        await self._log.load()
        # A retry topic is made with its first message; a crash may have kept only the message.
        for topic in self._store.topics():
            if topic.startswith(RETRY_PREFIX) and self._registry.topics.get(topic) is None:
                self._policy.ensure_topic(topic, max(self._store.queues(topic)) + 1)

    def stop(self) -> None:
        self.pop.release_all()
        self._routes.close()

    async def save(self) -> None:
        await self._order.save(self._clock.now_ms())

    async def close(self) -> None:
        """Make everything durable first, so that all progress may be saved behind it."""
        self._log.advance()
        await self._store.checkpoint()
        await self.save()


def popping(
    config: BrokerConfig, store: Store, registry: Registry, policy: Policy, sessions: Sessions,
    filters: Filters, stats: BrokerStats, *, disk: Disk, offload: Offload, network: Network,
    clock: WallClock, rng: random.Random, host: bytes,
) -> Popping:  # fmt: skip
    """Build the parts in the order in which they need each other."""
    directory = f"{config.store_path_root_dir}/config"
    progress = SafeProgress(registry.offsets, store)
    name = revive_topic(config.broker_cluster_name)
    log = ReviveLog(store, registry.offsets, progress, name, config.revive_queue_num, host)
    order = OrderTable(disk, offload, directory)
    modes = ModeTable(config, disk, offload, directory)
    reviver = Reviver(config, log, store, registry, policy, stats, clock)
    checks = PopChecks(config, policy)
    taking = Taking(config, store, registry, progress, order, log, clock, rng)
    pops, notifications = PollRooms(config, store), PollRooms(config, store)
    routes = TopicRoutes(config, registry.topics, network)
    pop = PopHandler(
        config, checks, taking, log, reviver, pops, notifications, filters, stats, clock
    )
    return Popping(
        pop,
        AckHandler(config, store, registry, policy, log, reviver, order, pops, clock),
        AssignmentHandler(registry, sessions, policy, modes, routes),
        reviver, log, order, routes, store, registry, policy, clock,
    )  # fmt: skip
