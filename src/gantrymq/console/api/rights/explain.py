"""Which rule decides about a user or an access key, on each broker (`gantry acl explain`)."""

import asyncio
from typing import Annotated, Literal

from msgspec import Meta

from gantrymq.access.policies import Action, NamePattern, Resource
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.access_explain import explain_access
from gantrymq.client.admin.admin import Admin
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.api.rights.members import MemberRules, readable
from gantrymq.console.errors import BadInput

TABLE = EndpointTable("rights")


class WantedDecision(OfCluster, frozen=True, kw_only=True):
    """Who would do what."""

    user: Annotated[str, Meta(min_length=1)]
    """A user of 5.3, or an access key of 4.9."""
    action: Literal["Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]
    resource: str
    """`Topic:NAME`, `Group:NAME` or `Cluster:NAME`."""
    address: str = ""
    """Where the request comes from; rules for certain addresses count only with it."""


class RuleDecision(Answer, frozen=True, kw_only=True):
    """What one broker would say."""

    broker: str
    decision: str | None
    """Allow or Deny; None if the broker does not tell its rules."""
    rule: str
    why: str
    others: list[str]
    """Rules about the same that do not decide, each with the reason."""


class RuleDecisions(Answer, frozen=True, kw_only=True):
    decisions: list[RuleDecision]


@TABLE.get("/clusters/{cluster}/rights/decision")
async def explain_decision(ask: Ask, wanted: WantedDecision) -> RuleDecisions:
    """Whether somebody may do something, and which rule of each broker decides."""
    resource, action = Resource.parse(wanted.resource.strip()), Action.named(wanted.action)
    is_one = resource is not None and resource.pattern is NamePattern.LITERAL and resource.name
    if resource is None or action is None or not is_one:
        raise BadInput(f"{wanted.resource!r}: write Topic:NAME, Group:NAME or Cluster:NAME")
    admin = await readable(ask, wanted.cluster)
    members = [
        MemberRules(broker=broker, id=number, address=address)
        for broker, addresses in (await admin.members()).items()
        for number, address in sorted(addresses.items())
    ]
    asked = (_decision(admin, each, wanted, action, resource) for each in members)
    return RuleDecisions(decisions=list(await asyncio.gather(*asked)))


async def _decision(
    admin: Admin, member: MemberRules, wanted: WantedDecision, action: Action, resource: Resource
) -> RuleDecision:
    try:
        found = await explain_access(
            admin, member.address, wanted.user.strip(), action, resource, wanted.address.strip()
        )
    except GantryError as error:
        return RuleDecision(broker=member.name, decision=None, rule="", why=str(error), others=[])
    return RuleDecision(
        broker=member.name,
        decision="Allow" if found.allowed else "Deny",
        rule=found.rule,
        why=found.why,
        others=list(found.others),
    )
