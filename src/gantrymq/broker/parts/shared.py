"""Parts that several builders need. Only builders see all of it; a part gets what it uses."""

import random
from dataclasses import dataclass, field

from gantrymq.access.guard import Require, nothing_required
from gantrymq.access.server_access import ServerAccess
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.network import Network
from gantrymq.base.offload import Offload
from gantrymq.broker.announce import Announcer
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.tables.registry import Registry
from gantrymq.remoting.limits import BrokerLimits, Refusals
from gantrymq.replication.group.node import RaftNode
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import Syncer


@dataclass(frozen=True)
class Ports:
    """A broker's access to network, disk, time and chance; tests replace them."""

    network: Network
    disk: Disk
    clock: WallClock
    offload: Offload
    rng: random.Random
    syncer: Syncer


@dataclass(frozen=True)
class Shared:
    """Built by the broker's app, in the order in which these parts need each other."""

    config: BrokerConfig
    ports: Ports
    store: Store
    registry: Registry
    announcer: Announcer
    policy: Policy
    stats: BrokerStats
    conditions: FilterTable
    host: bytes
    """This broker's address as records carry it."""
    node: RaftNode | None = None
    """The member of a raft group that this broker is."""
    access: ServerAccess | None = None
    """Access control; None if it is off."""
    refusals: Refusals = field(default_factory=lambda: Refusals(BrokerLimits()))
    """What limits have refused."""

    @property
    def require(self) -> Require:
        """What handlers ask that learn late which topic a request is about."""
        return nothing_required if self.access is None else self.access.guard.require
