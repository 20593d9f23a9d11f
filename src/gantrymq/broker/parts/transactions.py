"""The parts of transactions: half messages, decisions, and check-back."""

from dataclasses import dataclass

from gantrymq.broker.handlers.transactions import TransactionHandler
from gantrymq.broker.parts.feature import Feature
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.transactions.check_back import CheckBack
from gantrymq.broker.transactions.checker import Checker
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.broker.transactions.ops import Decisions
from gantrymq.broker.transactions.transaction_end import TransactionEnd
from gantrymq.broker.waiting.redirect import SystemTopicRedirect


@dataclass(frozen=True)
class TransactionParts:
    half_messages: HalfMessageTable
    handler: TransactionHandler
    feature: Feature


def build_transactions(
    shared: Shared, sessions: Sessions, redirect: SystemTopicRedirect
) -> TransactionParts:
    config, store, ports = shared.config, shared.store, shared.ports
    half_messages = HalfMessageTable(config.transaction_time_out, config.transaction_check_interval)
    decisions = Decisions(store, ports.clock, shared.host)
    end = TransactionEnd(store, half_messages, decisions, redirect, shared.stats)
    checker = Checker(
        config,
        store,
        shared.registry.offsets,
        shared.policy,
        CheckBack(sessions, ports.rng, shared.host),
        half_messages,
        decisions,
        ports.clock,
    )

    def take_times() -> None:
        half_messages.set_times(config.transaction_time_out, config.transaction_check_interval)

    feature = Feature(
        opening=(checker.recover,),
        background=(checker.run,),
        closing=(end.close,),
        on_settings=(take_times,),
    )
    return TransactionParts(
        half_messages, TransactionHandler(store, half_messages, end, shared.require), feature
    )
