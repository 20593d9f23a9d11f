"""Which policy entry decides."""

import pytest

from gantrymq.access.policies import (
    AclPolicy,
    Action,
    PolicyEntry,
    PolicyType,
    Resource,
    UserAcl,
    is_source,
    judge,
    username_of,
)
from gantrymq.access.users import User, UserType

HOME, AWAY = "10.0.0.1", "10.0.0.2"


def entry(text: str) -> PolicyEntry:
    """`Allow Pub,Sub Topic:orders 10.0.0.1` as an entry."""
    decision, actions, resource, *sources = text.split()
    found = Resource.parse(resource)
    assert found is not None
    named = tuple(Action.named(word) or Action.ANY for word in actions.split(","))
    return PolicyEntry(found, named, decision == "Allow", tuple(sources))


def decided(custom: list[str], default: list[str], asked: str, address: str = HOME) -> str:
    """The entry that decides about `Pub Topic:orders`, as it was written; "" if none does."""
    written = {entry(text): text for text in (*custom, *default)}
    acl = UserAcl(
        "shop",
        (
            AclPolicy(PolicyType.DEFAULT, tuple(map(entry, default))),
            AclPolicy(PolicyType.CUSTOM, tuple(map(entry, custom))),
        ),
    )
    actions, resource = asked.split()
    found = Resource.parse(resource)
    assert found is not None
    wanted = [Action.named(word) or Action.ANY for word in actions.split(",")]
    ruling = judge(acl, found, wanted, address)
    assert ruling.allowed == (ruling.entry is not None and ruling.entry.allows)
    return "" if ruling.entry is None else written[ruling.entry]


NAME, PREFIX, LONG = "Allow Pub Topic:orders", "Deny Pub Topic:ord*", "Allow Pub Topic:order*"
STAR, EVERYTHING = "Deny Pub Topic:*", "Allow All *"


@pytest.mark.parametrize(
    "custom, default, asked, expected",
    [
        ([NAME], [], "Pub Topic:orders", NAME),
        ([NAME], [], "Sub Topic:orders", ""),
        ([NAME], [], "Pub Topic:orders2", ""),
        ([NAME], [], "Pub Group:orders", ""),
        ([NAME, PREFIX, LONG, STAR, EVERYTHING], [], "Pub Topic:orders", NAME),
        ([EVERYTHING, STAR, LONG, PREFIX, NAME], [], "Pub Topic:orders", NAME),
        ([EVERYTHING, STAR, LONG, PREFIX], [], "Pub Topic:orders", LONG),
        ([PREFIX, LONG, STAR], [], "Pub Topic:orders", LONG),
        ([EVERYTHING, STAR, PREFIX], [], "Pub Topic:orders", PREFIX),
        ([EVERYTHING, STAR], [], "Pub Topic:orders", STAR),
        ([EVERYTHING, STAR], [], "Pub Group:orders", EVERYTHING),
        ([EVERYTHING], [NAME], "Pub Topic:orders", EVERYTHING),
        ([PREFIX], [NAME], "Sub,Pub Topic:orders", PREFIX),
        ([PREFIX], [NAME], "Pub Topic:orders", PREFIX),
        (["Allow Sub Topic:orders"], [STAR], "Pub Topic:orders", STAR),
        (["Allow Sub Topic:orders"], [], "Any Topic:orders", "Allow Sub Topic:orders"),
        ([f"Deny Pub Topic:orders {AWAY}", NAME.replace("orders", "or*")], [],
         "Pub Topic:orders", "Allow Pub Topic:or*"),
        (["Deny Pub Topic:orders 10.0.0.0/30"], [], "Pub Topic:orders",
         "Deny Pub Topic:orders 10.0.0.0/30"),
        (["Allow Pub Topic:orders ::1"], [], "Pub Topic:orders", ""),
        ([], [], "Pub Topic:orders", ""),
    ],
)  # fmt: skip
def test_the_most_exact_entry_decides(
    custom: list[str], default: list[str], asked: str, expected: str
) -> None:
    """
    Custom before Default, a name before a prefix, the longer prefix, `Topic:*` before `*`.
    """
    assert expected == decided(custom, default, asked)


def test_an_unknown_address_fits_no_entry_for_addresses() -> None:
    """
    Nothing is allowed by such an entry to a peer whose address is not known.
    """
    assert "" == decided(["Allow Pub Topic:orders 0.0.0.0/0"], [], "Pub Topic:orders", "")


def test_deny_comes_before_allow() -> None:
    """
    Two entries of the same rank: the one for a network denies what the one for an address allows.
    """
    texts = [f"Allow Pub Topic:orders {HOME}", "Deny Pub Topic:orders 10.0.0.0/8"]
    acl = UserAcl("shop", (AclPolicy(PolicyType.CUSTOM, tuple(map(entry, texts))),))
    wanted = entry(NAME).resource

    assert not judge(acl, wanted, [Action.PUB], HOME).allowed


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Topic:orders", "Topic:orders"), ("topic:orders*", "Topic:orders*"),
        ("GROUP:*", "Group:*"), ("*", "*"), ("Any:thing", "*"), ("Topic:a*b*", "Topic:a*"),
        ("Topic:a*b", "Topic:a*b"), ("orders", "None"), ("Unknown:x", "None"), ("", "None"),
        (None, "None"),
    ],
)  # fmt: skip
def test_resources_are_read_as_rocketmq_reads_them(text: str | None, shown: str) -> None:
    """
    Types in any spelling, a star at the end, and no guess about anything else.
    """
    assert shown == str(Resource.parse(text))


@pytest.mark.parametrize(
    "text, expected",
    [("10.0.0.1", True), ("10.0.0.7/8", True), ("::1", True), ("fe80::/10", True),
     ("10.0.0.*", False), ("10.0.0.1/33", False), ("localhost", False), ("", False)],
)  # fmt: skip
def test_sources_are_addresses_and_networks(text: str, expected: bool) -> None:
    """
    No names: they would be asked for while a request waits.
    """
    assert expected == is_source(text)


def test_subjects_are_users() -> None:
    """
    RocketMQ has no other kind of subject.
    """
    assert ["shop", "a:b", None, None] == [
        username_of(text) for text in ("User:shop", "user:a:b", "Role:x", None)
    ]


def test_a_user_does_not_show_its_password() -> None:
    """
    Neither the password nor the key that is made of it.
    """
    assert "pa55word" not in repr(User("root", "pa55word", UserType.SUPER))
