"""Turns a subscription into the store's filter: hashes of tags, or an SQL condition."""

from collections.abc import Callable
from typing import NamedTuple

from gantrymq.base.java_hash import java_hash
from gantrymq.broker.errors import BadRequest, FilterMissing
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.filter import BadSql, Condition, condition
from gantrymq.kernel import find_property
from gantrymq.model import RETRY_PREFIX, Subscription
from gantrymq.protocol.subscription import (
    BadSubscription,
    parse_tags,
    tag_codes,
)
from gantrymq.remoting.limits import Refusals
from gantrymq.store.reading.entry_filter import EntryFilter

TAG, SQL = "TAG", "SQL92"
FILTER_ENTRIES_MAX, FILTER_ENTRIES_MIN = 800, 16
"""How many entries one filtered pull looks at; RocketMQ's 16,000 bytes are 800."""
FILTER_WEIGHT = 16_000
"""Entries times the size of the condition: about 4 ms."""

NO_CLASSES = (
    "filters written as Java classes are gone from RocketMQ, too: subscribe with SQL92, or filter "
    "in the consumer"
)


class PullFilter(NamedTuple):
    """Hashes of tags, or an SQL condition; if both are None, every message passes."""

    codes: frozenset[int] | None = None
    entry_filter: EntryFilter | None = None


EVERYTHING = PullFilter()


class Filters:
    """Parses subscriptions. One that cannot be parsed is refused and never matches everything."""

    def __init__(
        self, config: BrokerConfig, sessions: Sessions, table: FilterTable, refusals: Refusals
    ) -> None:
        self._config, self._refusals = config, refusals
        self._sessions, self._table = sessions, table

    def of_request(self, group: str, topic: str, kind: str | None, expression: str) -> PullFilter:
        """The filter of a request that has its own expression."""
        if kind and kind != TAG:
            return PullFilter(entry_filter=self._entry_filter(group, topic, kind, expression))
        self._check_tags(expression.count("||"), f"group {group}")
        tags = parse_tags(expression)
        return PullFilter(frozenset(java_hash(tag) for tag in tags) or None)

    def of_subscription(self, group: str, wanted: Subscription) -> PullFilter:
        """The filter of a subscription that came by heartbeat."""
        if wanted.class_filter_mode:
            raise BadRequest(NO_CLASSES)
        kind = wanted.expression_type
        if not kind or kind == TAG:
            return PullFilter(tag_codes(wanted))
        try:
            entry_filter = self._entry_filter(group, wanted.topic, kind, wanted.sub_string)
        except BadSubscription as error:
            raise FilterMissing(f"the group's filter for {wanted.topic} is bad: {error}") from None
        mark = self._table.mark(group, wanted.topic, wanted.sub_string)
        return PullFilter(
            entry_filter=entry_filter if mark is None else entry_filter._replace(mark=mark)
        )

    def check(self, wanted: Subscription) -> None:
        """Raise if this broker cannot filter by the subscription."""
        if wanted.class_filter_mode:
            raise BadRequest(NO_CLASSES)
        if not wanted.expression_type or wanted.expression_type == TAG:
            self.check_tags(wanted)
            parse_tags(wanted.sub_string)
        else:
            self._condition(wanted.expression_type, wanted.sub_string)

    def check_tags(self, wanted: Subscription) -> None:
        """Raise if a subscription has too many tags: each pull compares with all of them."""
        given = len(wanted.tags_set), len(wanted.code_set), wanted.sub_string.count("||")
        self._check_tags(max(given), f"topic {wanted.topic[:127]}")

    def _check_tags(self, count: int, who: str) -> None:
        if count > self._config.max_subscription_tags:
            raise self._refusals.reached("maxSubscriptionTags", "too many tags", who)

    def _condition(self, kind: str, expression: str) -> Condition:
        if not self._config.enable_property_filter:
            raise BadRequest(
                f"The broker does not support consumer to filter message by {kind} "
                "(enablePropertyFilter is off)"
            )
        if kind != SQL:
            raise BadSubscription(f"there are filters of type {TAG} and {SQL}, not {kind[:64]!r}")
        return condition(expression)

    def _entry_filter(self, group: str, topic: str, kind: str, expression: str) -> EntryFilter:
        made = self._condition(kind, expression)
        matches = made.matches
        if self._config.filter_support_retry and topic.startswith(RETRY_PREFIX):
            matches = self._by_origin(group)
        entries = FILTER_WEIGHT // made.weight
        return EntryFilter(matches, max(FILTER_ENTRIES_MIN, min(FILTER_ENTRIES_MAX, entries)))

    def _by_origin(self, group: str) -> Callable[[bytes], bool]:
        """The filter of a retry topic: a message is checked against its original topic's condition.

        This needs filterSupportRetry, and a retry topic that is subscribed with SQL. Otherwise the
        group gets every message that a member sent back.
        """

        def matches(raw: bytes) -> bool:
            origin = find_property(raw, b"RETRY_TOPIC") or b""
            members = self._sessions.consumers.get(group)
            known = members.subscriptions if members is not None else {}
            wanted = known.get(origin.decode("utf-8", "replace"))
            if wanted is None or wanted.expression_type != SQL:
                return True
            try:
                return condition(wanted.sub_string).matches(raw)
            except BadSql:
                return True

        return matches
