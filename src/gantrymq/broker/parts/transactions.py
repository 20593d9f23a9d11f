"""Transactions, put together: half messages, decisions, and questions about what is undecided."""

import random
from dataclasses import dataclass

from gantrymq.base.clock import WallClock
from gantrymq.broker.handlers.transactions import TransactionHandler
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.registry import Offsets
from gantrymq.broker.transactions.checker import Checker
from gantrymq.broker.transactions.ending import Endings
from gantrymq.broker.transactions.ledger import HalfMessageTable
from gantrymq.broker.transactions.ops import Decisions
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.store.engine import Store


@dataclass(frozen=True)
class Transacting:
    """What the broker's parts list needs of it."""

    ledger: HalfMessageTable
    handler: TransactionHandler
    checker: Checker
    endings: Endings


def transacting(
    config: BrokerConfig,
    store: Store,
    offsets: Offsets,
    policy: Policy,
    sessions: Sessions,
    redirect: SystemTopicRedirect,
    stats: BrokerStats,
    *,
    clock: WallClock,
    rng: random.Random,
    host: bytes,
) -> Transacting:
    ledger = HalfMessageTable(config.transaction_time_out, config.transaction_check_interval)
    decisions = Decisions(store, clock, host)
    endings = Endings(store, ledger, decisions, redirect, stats)
    checker = Checker(config, store, offsets, policy, sessions, ledger, decisions, clock, rng, host)
    return Transacting(ledger, TransactionHandler(store, ledger, endings), checker, endings)
