"""The settings of a push consumer: options, overridden by the constructor's arguments."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gantrymq.base import arguments
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.queue_offsets import timestamp_of
from gantrymq.client.consume.membership.retry_log import NO_LIMIT
from gantrymq.client.consume.membership.setup import (
    BROADCASTING,
    RETRIES_MAX_DEFAULT,
    strategy_named,
)
from gantrymq.client.consume.membership.start_position import Start, moment_of
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.once.guard import Once
from gantrymq.client.spans import Spans
from gantrymq.protocol.assignment import Strategy

CLOSE_GRACE_SECONDS: Final = 5.0
FROM_OPTIONS: Final = -1


def with_arguments(
    options: ConsumerOptions, broadcast: bool, concurrency: int | None, max_retries: int | None
) -> ConsumerOptions:
    """The options, overridden by arguments that were given."""
    changes: dict[str, Any] = {}
    if arguments.yes_or_no("broadcast", broadcast):
        changes["message_model"] = BROADCASTING
    if concurrency is not None:
        changes["consume_thread_max"] = concurrency
    if max_retries is not None and max_retries != FROM_OPTIONS:
        changes["max_reconsume_times"] = max_retries
    return msgspec.structs.replace(options, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What a push consumer was made with, checked."""

    group: str
    options: ConsumerOptions
    ordered: bool
    start: Start | None
    max_retries: int | None
    """None: messages are retried for ever; FROM_OPTIONS: as often as the group's settings say."""
    strategy: Strategy | None
    offsets: OffsetStore | None
    once: Once | None
    trace: str | bool
    spans: Spans | None
    close_grace: float
    start_timeout: float | None

    def __post_init__(self) -> None:
        arguments.yes_or_no("ordered", self.ordered)
        arguments.seconds("close_grace", self.close_grace)
        if self.start_timeout is not None:
            arguments.seconds("start_timeout", self.start_timeout, more_than_none=True)
        if self.once is not None:
            arguments.one_of("once", self.once, Once, "an Once, as in Once(SqliteStore(path))")
        if self.strategy is not None and not callable(self.strategy):
            raise arguments.wrong_type(
                "strategy",
                "a function from gantrymq.client (by name: the option allocate_strategy)",
                self.strategy,
            )

    @property
    def broadcast(self) -> bool:
        """Whether every member reads all queues."""
        return self.options.message_model == BROADCASTING

    @property
    def chosen_strategy(self) -> Strategy:
        """The caller's strategy, or the one that the options name."""
        return self.strategy or strategy_named(self.options.allocate_strategy)

    @property
    def one_host(self) -> bool:
        """Whether all members must run on this machine, because the store of `once` does."""
        return self.once is not None and self.once.store.one_host

    @property
    def retries_max(self) -> int | None:
        """After how many retries an ordered consumer sends a message to the dead letters."""
        limit = self._chosen_retries
        return RETRIES_MAX_DEFAULT if limit == FROM_OPTIONS else limit

    @property
    def retries_max_for_brokers(self) -> int | None:
        """The limit sent to brokers; None unless the caller chose one: the group's limit counts."""
        limit = self._chosen_retries
        if limit == FROM_OPTIONS:
            return None
        return NO_LIMIT if limit is None else limit

    @property
    def _chosen_retries(self) -> int | None:
        return None if self.max_retries is None else self.options.max_reconsume_times

    def begin_ms(self, now_ms: int) -> int:
        """The time at which a group without progress begins, if it begins at a time."""
        if self.start is None or self.start in ("first", "last"):
            return timestamp_of(self.options.consume_timestamp, now_ms)
        return moment_of(self.start, now_ms)
