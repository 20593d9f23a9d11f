"""A guard looks up rights once for each connection and version of the rules."""

import dataclasses
from dataclasses import dataclass, field

import pytest

from gantrymq.access.credentials import Credentials
from gantrymq.access.denials import PolicyDenied
from gantrymq.access.guard import DECISIONS_MAX, AccessGuard
from gantrymq.access.policies import AclPolicy, Action, PolicyEntry, PolicyType, Resource, UserAcl
from gantrymq.access.policy_needs import BROKER_NEEDS, NOTHING, PolicyNeed
from gantrymq.access.signature import RequestSigner
from gantrymq.access.user_rules import UserRules
from gantrymq.access.users import User
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection


@dataclass(frozen=True)
class CountedRules(UserRules):
    """Rules that note what they are asked."""

    asked: list[int] = field(default_factory=list)

    def allow(self, who: User | None, need: PolicyNeed, command: Command, address: str) -> None:
        self.asked.append(command.code)
        super().allow(who, need, command, address)


def rules_for(*topics: str) -> CountedRules:
    entries = tuple(
        PolicyEntry(resource, (Action.PUB,), True)
        for topic in topics
        if (resource := Resource.parse(f"Topic:{topic}")) is not None
    )
    acl = UserAcl("shop", (AclPolicy(PolicyType.CUSTOM, entries),))
    return CountedRules("c", {"shop": User("shop", "secret")}, {"shop": acl})


SIGNER = RequestSigner(Credentials("shop", "secret"))


def send(topic: str) -> Command:
    command = Command(code=Code.SEND_MESSAGE_V2, ext={"b": topic}, body=b"x")
    SIGNER.sign(command)
    return command


def test_rights_are_looked_up_once() -> None:
    """
    Again for another topic, another connection and other rules; a refusal is not kept.
    """
    rules = rules_for("orders", "prices")
    guard = AccessGuard(BROKER_NEEDS, rules, NOTHING)
    first, second = Connection(), Connection()
    for _ in range(3):
        guard(first, send("orders"))
    assert 1 == len(rules.asked)
    guard(first, send("prices"))
    guard(second, send("orders"))
    assert 3 == len(rules.asked)
    for _ in range(2):
        with pytest.raises(PolicyDenied):
            guard(first, send("secrets"))
    assert 5 == len(rules.asked)
    guard.rules = dataclasses.replace(rules_for("orders"), asked=rules.asked)
    guard(first, send("orders"))
    with pytest.raises(PolicyDenied):
        guard(first, send("prices"))
    assert 7 == len(rules.asked)


def test_sends_are_let_through_when_they_were_allowed() -> None:
    """
    To the topics, and for the key, that the guard has seen; not any longer under other rules.
    """
    guard = AccessGuard(BROKER_NEEDS, rules_for("orders", "prices"), NOTHING)
    connection = Connection()
    assert (False, None) == guard.lets_through(connection)
    guard(connection, send("orders"))
    with pytest.raises(PolicyDenied):
        guard(connection, send("secrets"))
    passes, access = guard.lets_through(connection)
    assert passes
    assert access is not None
    assert (b"shop", {"orders"}) == (access.access_key, access.topics)
    assert access.is_signed(send("orders"))
    guard(connection, send("prices"))
    assert {"orders", "prices"} == access.topics
    guard.rules = rules_for("orders")
    assert (False, None) == guard.lets_through(connection)


def test_a_client_that_names_many_topics_costs_no_memory() -> None:
    """
    Beyond a number of decisions they are made each time, and are the same.
    """
    rules = rules_for("*")
    guard = AccessGuard(BROKER_NEEDS, rules, NOTHING)
    connection = Connection()
    for number in range(DECISIONS_MAX + 1):
        guard(connection, send(f"t{number}"))
    rules.asked.clear()
    guard(connection, send("t0"))
    guard(connection, send(f"t{DECISIONS_MAX}"))

    assert [Code.SEND_MESSAGE_V2] == rules.asked
