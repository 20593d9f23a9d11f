"""Finds subscription conflicts between members of a group. Pure: time comes in.

RocketMQ keeps one table of subscriptions for each group, and the newest heartbeat wins: members
with different subscriptions overwrite each other in turn, and messages are lost. This module also
keeps every member's own subscriptions, so that it can name a conflict.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gantrymq.model import Subscription
from gantrymq.protocol.subscription import BadSubscription, parse_tags
from gantrymq.remoting.connection import Connection

NOT_SUBSCRIBED = "(not subscribed)"
FORGET_SECONDS = 120.0
"""An expression that no heartbeat had for so long counts as new when it comes again."""


class MemberExpression(NamedTuple):
    """One member and its expression for the topic."""

    client_id: str
    expression: str


class MemberConflict(NamedTuple):
    """Two members of a group with different subscriptions to one topic."""

    topic: str
    older: MemberExpression
    newer: MemberExpression
    refused: bool = False
    """Whether the newer one is kept out of the group for it."""

    def __str__(self) -> str:
        return (
            f"of topic {self.topic}, member {self.older.client_id} wants "
            f"{self.older.expression!r} but member {self.newer.client_id} wants "
            f"{self.newer.expression!r}"
        )


def normal_form(wanted: Subscription) -> str:
    """An expression in one normal form: the same tags in another order are equal."""
    if wanted.class_filter_mode:
        return f"class {wanted.sub_string}"
    if wanted.expression_type not in ("TAG", "", None):
        return f"{wanted.expression_type}: {wanted.sub_string.strip()}"
    try:
        tags = sorted(set(wanted.tags_set or parse_tags(wanted.sub_string)))
    except BadSubscription:
        return wanted.sub_string
    return " || ".join(tags) or "*"


class MemberSubscriptions:
    """The subscriptions of one group's members, topic by topic, the oldest expression first."""

    def __init__(self) -> None:
        self._members: dict[Connection, tuple[str, dict[str, str]]] = {}
        self._topics: dict[str, dict[str, dict[Connection, None]]] = {}
        self._disputed: dict[tuple[str, str], tuple[float, float]] = {}
        """Topic and expression: since when, and when last, somebody disagreed with an older one."""
        self._kept_out: dict[tuple[str, str], tuple[MemberConflict, float]] = {}
        self._reported: set[tuple[str, str, str]] = set()

    # Members

    def hear(
        self, member: Connection, client_id: str, subscriptions: Iterable[Subscription]
    ) -> bool:
        """Remember a member's subscriptions; True if they changed."""
        expressions = {wanted.topic: normal_form(wanted) for wanted in subscriptions}
        if self._members.get(member) == (client_id, expressions):
            return False
        before = self._members.get(member, ("", {}))[1]
        for topic in expressions:
            if topic not in self._topics:
                others = dict.fromkeys(self._members)
                others.pop(member, None)
                self._topics[topic] = {NOT_SUBSCRIBED: others} if others else {}
        known = member in self._members
        self._members[member] = (client_id, expressions)
        for topic in list(self._topics):
            old = before.get(topic, NOT_SUBSCRIBED) if known else None
            new = expressions.get(topic, NOT_SUBSCRIBED)
            if old != new:
                if old is not None:
                    self._retract(topic, old, member)
                self._topics.setdefault(topic, {}).setdefault(new, {})[member] = None
                self._drop_if_unwanted(topic)
        return True

    def leave(self, member: Connection) -> None:
        known = self._members.pop(member, None)
        if known is None:
            return
        for topic in list(self._topics):
            self._retract(topic, known[1].get(topic, NOT_SUBSCRIBED), member)
            self._drop_if_unwanted(topic)

    def _retract(self, topic: str, expression: str, member: Connection) -> None:
        expressions = self._topics.get(topic, {})
        holders = expressions.get(expression)
        if holders is not None:
            holders.pop(member, None)
            if not holders:
                del expressions[expression]

    def _drop_if_unwanted(self, topic: str) -> None:
        if not self._topics[topic].keys() - {NOT_SUBSCRIBED}:
            del self._topics[topic]

    # Differences

    def objection(
        self,
        member: Connection,
        client_id: str,
        subscriptions: Iterable[Subscription],
        now: float,
        grace: float,
    ) -> MemberConflict | None:
        """The conflict for which a member may not join or stay; None if there is none.

        A member is refused when its expression has differed from that of older members for `grace`
        seconds.
        """
        expressions = {wanted.topic: normal_form(wanted) for wanted in subscriptions}
        self._forget_old(now)
        for topic in dict.fromkeys([*self._topics, *expressions]):
            mine = expressions.get(topic, NOT_SUBSCRIBED)
            older = self._older(topic, mine, member)
            if older is None:
                self._disputed.pop((topic, mine), None)
                self._kept_out.pop((topic, mine), None)
                continue
            first, _ = self._disputed.get((topic, mine), (now, now))
            self._disputed[topic, mine] = (first, now)
            if now - first >= grace:
                conflict = MemberConflict(
                    topic, older, MemberExpression(client_id, mine), refused=True
                )
                self._kept_out[topic, mine] = (conflict, now)
                return conflict
        return None

    def _older(self, topic: str, mine: str, member: Connection) -> MemberExpression | None:
        """Another member with an older and different expression; None if there is none."""
        expressions = self._topics.get(topic)
        if expressions is None:
            others = (other for other in self._members if other is not member)
            other = next(others, None)
            if other is None or mine == NOT_SUBSCRIBED:
                return None
            return MemberExpression(self._members[other][0], NOT_SUBSCRIBED)
        for expression, holders in expressions.items():
            if expression == mine:
                return None
            for holder in holders:
                if holder is not member:
                    return MemberExpression(self._members[holder][0], expression)
        return None

    def _forget_old(self, now: float) -> None:
        for key in [k for k, (_, last) in self._disputed.items() if now - last > FORGET_SECONDS]:
            del self._disputed[key]
            self._kept_out.pop(key, None)

    @property
    def conflicts(self) -> list[MemberConflict]:
        """The conflicts of members and those of refused clients; one for each newer expression."""
        found = [conflict for conflict, _ in self._kept_out.values()]
        for topic, expressions in self._topics.items():
            if len(expressions) > 1:
                (first, holders), *others = expressions.items()
                older = MemberExpression(self._members[next(iter(holders))][0], first)
                for expression, those in others:
                    newer = MemberExpression(self._members[next(iter(those))][0], expression)
                    found.append(MemberConflict(topic, older, newer))
        return found

    def news(self) -> list[MemberConflict]:
        """Conflicts that are new since the last call."""
        now = {(c.topic, c.older.expression, c.newer.expression): c for c in self.conflicts}
        fresh = [conflict for key, conflict in now.items() if key not in self._reported]
        self._reported = set(now)
        return fresh
