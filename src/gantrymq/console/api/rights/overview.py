"""Which kind of access control each broker of a cluster has."""

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.api.rights.members import (
    HOW_TO_TURN_ON,
    AccessKind,
    MemberRules,
    readable,
    rules_of_members,
)

TABLE = EndpointTable("rights")


class ShownAccessFile(Answer, frozen=True, kw_only=True):
    """An access file of a broker."""

    path: str
    changes: int
    """How often tools changed it."""
    changed_ms: int | None


class BrokerRights(Answer, frozen=True, kw_only=True):
    """The access control of one broker."""

    broker: str
    id: int
    name: str
    """Broker and id, as changes and differences name it."""
    address: str
    kind: str
    """users, accounts, none, or unknown if it does not tell"""
    checks_policies: bool
    """Whether policies of users count (authorizationEnabled)."""
    users: int | None
    """None if it keeps none, or does not tell."""
    accounts: int | None
    files: list[ShownAccessFile]
    trouble: str | None = None
    """Why it does not tell."""


class ClusterRights(Answer, frozen=True, kw_only=True):
    """The access control of all brokers."""

    brokers: list[BrokerRights]
    is_mixed: bool
    """Whether brokers have different kinds in force."""
    advice: str | None
    """How to turn it on, where a broker has none."""


@TABLE.get("/clusters/{cluster}/rights")
async def show_rights(ask: Ask, wanted: OfCluster) -> ClusterRights:
    """Which access control each broker has: users of 5.3, access files of 4.9, or none."""
    members = await rules_of_members(await readable(ask, wanted.cluster))
    kinds = {each.kind for each in members} - {AccessKind.UNKNOWN}
    return ClusterRights(
        brokers=[_broker(each) for each in members],
        is_mixed=len(kinds) > 1,
        advice=HOW_TO_TURN_ON if AccessKind.NONE in kinds else None,
    )


def _broker(member: MemberRules) -> BrokerRights:
    return BrokerRights(
        broker=member.broker,
        id=member.id,
        name=member.name,
        address=member.address,
        kind=member.kind.value,
        checks_policies=member.checks_policies,
        users=None if member.users is None else len(member.users),
        accounts=None if member.accounts is None else len(member.accounts),
        files=[
            ShownAccessFile(
                path=path,
                changes=version.get("counter", 0),
                changed_ms=version.get("timestamp") or None,
            )
            for path, version in sorted(member.files.items())
        ],
        trouble=None if member.trouble is None else str(member.trouble),
    )
