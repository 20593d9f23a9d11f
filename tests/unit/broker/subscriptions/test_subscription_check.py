"""Who of a group wants something else, and who may stay."""

from typing import Any, cast

import pytest

from gantrymq.broker.subscriptions.subscription_check import (
    NOT_SUBSCRIBED,
    MemberConflict,
    MemberExpression,
    MemberSubscriptions,
    normal_form,
)
from gantrymq.model import Subscription
from gantrymq.protocol.subscription import subscription

GRACE = 60.0


def member(name: str) -> Any:
    """A stand-in for a connection: only identity counts."""
    return cast(Any, name)


def wants(**topics: str) -> list[Subscription]:
    return [subscription(topic, tags) for topic, tags in topics.items()]


def hear(member_subscriptions: MemberSubscriptions, name: str, **topics: str) -> None:
    member_subscriptions.hear(member(name), name, wants(**topics))


@pytest.mark.parametrize(
    "wanted, expected",
    [
        (subscription("T", "*"), "*"),
        (subscription("T", "b || a || b"), "a || b"),
        (Subscription(topic="T", sub_string="a||b"), "a || b"),
        (Subscription(topic="T", sub_string="||"), "||"),
        (subscription("T", " a > 1 ", "SQL92"), "SQL92: a > 1"),
        (Subscription(topic="T", sub_string="x.F", class_filter_mode=True), "class x.F"),
    ],
)
def test_an_expression_has_one_wording(wanted: Subscription, expected: str) -> None:
    """
    Order and repetition of tags do not matter, the kind of filter does.
    """
    assert expected == normal_form(wanted)


def test_every_other_wish_is_one_conflict_with_the_oldest() -> None:
    """
    However many members share it.
    """
    member_subscriptions = MemberSubscriptions()
    for name, tags in (("1", "a"), ("2", "b"), ("3", "b"), ("4", "c"), ("5", "a")):
        hear(member_subscriptions, name, T=tags)

    assert [
        MemberConflict("T", MemberExpression("1", "a"), MemberExpression("2", "b")),
        MemberConflict("T", MemberExpression("1", "a"), MemberExpression("4", "c")),
    ] == member_subscriptions.conflicts


def test_a_topic_that_not_all_read_is_a_conflict() -> None:
    """
    The newest heartbeat removes what it does not name from the group's table.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="*")
    hear(member_subscriptions, "2", T="*", U="*")

    assert [
        MemberConflict("U", MemberExpression("1", NOT_SUBSCRIBED), MemberExpression("2", "*"))
    ] == member_subscriptions.conflicts


def test_a_conflict_is_news_once_until_it_comes_back() -> None:
    """
    Heartbeats repeat it, news do not; after it was settled it is news again.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a")
    hear(member_subscriptions, "2", T="b")
    first = member_subscriptions.news()
    hear(member_subscriptions, "2", T="b")
    again = member_subscriptions.news()
    hear(member_subscriptions, "2", T="a")
    settled = member_subscriptions.news()
    hear(member_subscriptions, "2", T="b")

    assert [1, 0, 0, 1] == [
        len(news) for news in (first, again, settled, member_subscriptions.news())
    ]


def test_who_leaves_takes_its_wishes_along() -> None:
    """
    The other one is no conflict any more, and the oldest of its own.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a", U="*")
    hear(member_subscriptions, "2", T="b")
    member_subscriptions.leave(member("1"))

    assert [] == member_subscriptions.conflicts
    assert member_subscriptions.objection(member("2"), "2", wants(T="b"), 1000.0, 0.0) is None


def test_the_newer_wish_is_objected_to_after_the_grace() -> None:
    """
    From its first heartbeat on the grace runs; the older one never hears an objection.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a")

    def judge(name: str, tags: str, now: float) -> bool:
        objection = member_subscriptions.objection(member(name), name, wants(T=tags), now, GRACE)
        if objection is None:
            hear(member_subscriptions, name, T=tags)
        return objection is not None

    said = [(judge("1", "a", now), judge("2", "b", now)) for now in (0.0, 30.0, 60.0, 90.0)]
    assert [(False, False), (False, False), (False, True), (False, True)] == said


def test_a_member_that_changes_its_mind_is_the_newer_one() -> None:
    """
    Also when it was in the group first.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a")
    hear(member_subscriptions, "2", T="a")
    objection = member_subscriptions.objection(member("1"), "1", wants(T="b"), 5.0, 0.0)

    assert (
        MemberConflict("T", MemberExpression("2", "a"), MemberExpression("1", "b"), refused=True)
        == objection
    )


def test_alone_one_may_change_its_mind() -> None:
    """
    There is nobody to disagree with.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a")

    assert member_subscriptions.objection(member("1"), "1", wants(T="b", U="*"), 5.0, 0.0) is None


def test_who_was_silent_for_long_begins_a_new_grace() -> None:
    """
    A deployment that was rolled back and is tried again the next day.
    """
    member_subscriptions = MemberSubscriptions()
    hear(member_subscriptions, "1", T="a")
    times = (0.0, 60.0, 1000.0)
    said = [
        member_subscriptions.objection(member("2"), "2", wants(T="b"), now, GRACE) for now in times
    ]

    assert [False, True, False] == [objection is not None for objection in said]
