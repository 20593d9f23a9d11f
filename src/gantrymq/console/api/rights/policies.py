"""What a user of RocketMQ 5.3 may do: an entry of its policies is put, or removed."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from gantrymq.access.policies import SUBJECT_PREFIX, Resource, is_source
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Done, EndpointTable
from gantrymq.console.api.rights.changes import change_each
from gantrymq.console.api.rights.members import MemberRules, PolicyRule, rules_of_members
from gantrymq.console.api.rights.user_changes import holders, policy_infos, untouched
from gantrymq.console.api.rights.users import NamedUser
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.protocol.bodies import AclInfo

TABLE = EndpointTable("rights")

PolicyChoice = Literal["Custom", "Default"]
ActionChoice = Literal["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]
ACTIONS: Final = ("All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")


class NewPolicy(NamedUser, frozen=True, kw_only=True):
    """An entry of a user's policies, instead of the one of its resource if there is one."""

    resource: Annotated[str, Meta(min_length=1, max_length=300)]
    """`Topic:orders`, `Topic:ord*`, `Group:*`, `Cluster:DefaultCluster`, or `*` for everything."""
    actions: Annotated[tuple[ActionChoice, ...], Meta(min_length=1)]
    decision: Literal["Allow", "Deny"] = "Allow"
    sources: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    """Addresses or networks from which it counts, as `10.0.0.0/8`; everywhere without any."""
    policy_type: PolicyChoice = "Custom"
    """Default counts where no entry of Custom fits."""


class PolicyDeletion(NamedUser, frozen=True, kw_only=True):
    """An entry to remove."""

    resource: Annotated[str, Meta(min_length=1)]
    policy_type: PolicyChoice = "Custom"


@TABLE.put("/clusters/{cluster}/rights/users/{user}/policies")
async def put_policy(ask: Ask, wanted: NewPolicy) -> Done:
    """Allow or deny a user something, on every broker that has it."""
    rule = PolicyRule(
        wanted.policy_type,
        _resource(wanted.resource),
        tuple(dict.fromkeys(wanted.actions)),
        tuple(dict.fromkeys(each.strip() for each in wanted.sources)),
        wanted.decision,
    )
    wrong = [each for each in rule.sources if not is_source(each)]
    if wrong:
        raise BadInput(f"{wrong[0]!r} is neither an address nor a network such as 10.0.0.0/8")
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    acl = AclInfo(subject=SUBJECT_PREFIX + wanted.user, policies=policy_infos([rule]))
    done = await change_each(
        f"a policy of user {wanted.user} is to be put",
        holders(wanted.user, members),
        lambda each: admin.update_acl(each.address, acl),
    )
    return Done(text=f"{wanted.user}: {rule}, on {done}{untouched(wanted.user, members)}")


def _resource(text: str) -> str:
    """The resource as brokers write it; BadInput for one that means something else or nothing."""
    text = text.strip()
    found = Resource.parse(text)
    if (
        found is None
        or "*" in found.name
        or str(found).partition(":")[2] != text.partition(":")[2]
        or str(found).endswith(":")
    ):
        raise BadInput(
            f"{text!r} is no resource: write Topic:orders, Topic:ord*, Group:billing, "
            "Cluster:DefaultCluster, or * for everything"
        )
    return str(found)


@TABLE.delete("/clusters/{cluster}/rights/users/{user}/policies")
async def delete_policy(ask: Ask, wanted: PolicyDeletion) -> Done:
    """Remove the entry of a resource from a user's policies, wherever it stands."""
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    known = holders(wanted.user, members)

    def has_it(member: MemberRules) -> bool:
        return any(
            (rule.policy_type, rule.resource) == (wanted.policy_type, wanted.resource)
            for rule in member.policies.get(wanted.user, ())
        )

    if not any(map(has_it, known)):
        raise NotThere(
            f"{wanted.user} has no entry about {wanted.resource} in its policy {wanted.policy_type}"
        )
    subject = SUBJECT_PREFIX + wanted.user
    done = await change_each(
        f"a policy of user {wanted.user} is to be removed",
        [each for each in known if each.users is None or has_it(each)],
        lambda each: admin.delete_acl(each.address, subject, wanted.resource, wanted.policy_type),
    )
    return Done(text=f"{wanted.user}: the entry about {wanted.resource} is removed on {done}")
