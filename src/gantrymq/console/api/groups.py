"""Consumer groups: the list, one group with its members and lag, settings, create and delete."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.group_deletion import (
    check_group_deletable,
    delete_group_and_retries,
)
from gantrymq.client.admin.groups.group_settings import (
    CHANGEABLE,
    INTERNAL_GROUPS,
    change_settings,
)
from gantrymq.client.admin.groups.members import together
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.paging import LIMIT, Limit, Offset, begin_of_last, matches, part
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.model import GroupConfig, check_group_name, dead_topic, retry_topic
from gantrymq.protocol.bodies import ConsumerConnections
from gantrymq.protocol.versions import version_name

TABLE = EndpointTable("groups")

CONFIRMATION: Final = "type the name {name!r} to confirm: it says {given!r}"
Count = Annotated[int, Meta(ge=0, le=2_147_483_647)]
BrokerId = Annotated[int, Meta(ge=0, le=2_147_483_647)]


class WantedGroups(OfCluster, frozen=True, kw_only=True):
    """Which groups to list."""

    search: str = ""
    """Words that the name contains, in any order."""
    kind: Literal["own", "all", "system"] = "own"
    """`system` are those of brokers and tools."""
    sort: Literal["lag", "name"] = "lag"
    offset: Offset = 0
    limit: Limit = LIMIT


class GroupLine(Answer, frozen=True, kw_only=True):
    """A group in a list."""

    group: str
    lag: int | None
    """Unread messages; None for a group that has never read."""
    members: int | None
    """Connected members; None if nobody could be asked."""
    conflicts: int
    """Members that differ in their subscriptions: such a group loses messages."""
    consume_type: str | None
    message_model: str | None
    may_consume: bool
    brokers: list[str]


class GroupPage(Answer, frozen=True, kw_only=True):
    """A part of the groups."""

    groups: list[GroupLine]
    count: int
    """All that match."""
    offset: int
    lag: int
    """Unread messages of all groups that match."""
    counts: dict[str, int]
    """How many groups of users (`own`) and of brokers (`system`) match the search."""
    silent: dict[str, str]
    """Brokers that did not answer, and why."""


class NamedGroup(OfCluster, frozen=True, kw_only=True):
    """A question about one group."""

    group: str


class GroupMember(Answer, frozen=True, kw_only=True):
    """A connected consumer."""

    client_id: str
    address: str
    language: str
    version: int
    version_name: str
    """Of RocketMQ's release with that protocol."""


class SubscribedTopic(Answer, frozen=True, kw_only=True):
    """What a group is subscribed to."""

    topic: str
    expression: str
    kind: str
    """TAG or SQL92"""
    in_conflict: bool


class ConflictOfMembers(Answer, frozen=True, kw_only=True):
    """Two members that differ in a subscription."""

    topic: str
    older_client_id: str
    older_expression: str
    newer_client_id: str
    newer_expression: str
    refused: bool
    """Whether the newer one is kept out of the group."""


class GroupOnBroker(Answer, frozen=True, kw_only=True):
    """The settings of a group on one broker."""

    broker: str
    consume_enable: bool
    consume_from_min_enable: bool
    consume_broadcast_enable: bool
    consume_message_orderly: bool
    retry_queue_nums: int
    retry_max_times: int
    broker_id: int
    which_broker_when_consume_slowly: int
    notify_consumer_ids_changed_enable: bool


class GroupState(Answer, frozen=True, kw_only=True):
    """One group."""

    group: str
    members: list[GroupMember]
    message_model: str | None
    consume_type: str | None
    subscriptions: list[SubscribedTopic]
    conflicts: list[ConflictOfMembers]
    settings: list[GroupOnBroker]
    lag: int | None
    may_consume: bool


class GroupSettings(Answer, frozen=True, kw_only=True):
    """The settings of a group by broker, after a change."""

    text: str
    settings: list[GroupOnBroker]
    warnings: list[str]


class SettingChanges(OfCluster, frozen=True, kw_only=True):
    """What to change of a group; what is left out stays as each broker has it."""

    group: str
    consume_enable: bool | None = None
    """Whether the group may consume."""
    consume_from_min_enable: bool | None = None
    """Stored; brokers do not use it."""
    consume_broadcast_enable: bool | None = None
    """Whether members may consume in broadcasting mode."""
    consume_message_orderly: bool | None = None
    """Stored for clients of 5.x."""
    retry_queue_nums: Annotated[int, Meta(ge=0, le=65_536)] | None = None
    """Queues of its retry topic; the number only grows."""
    retry_max_times: Count | None = None
    """Retries before a message becomes a dead letter."""
    broker_id: BrokerId | None = None
    """The id of the broker to read from."""
    which_broker_when_consume_slowly: BrokerId | None = None
    """The id of the broker to suggest to a group with much lag."""
    notify_consumer_ids_changed_enable: bool | None = None
    """Whether members are told at once when one joins or leaves."""
    broker: str | None = None
    """Only on this broker."""


class NewGroup(SettingChanges, frozen=True, kw_only=True):
    """A group to create; settings that are left out have RocketMQ's defaults."""


class GroupDeletion(NamedGroup, frozen=True, kw_only=True):
    """A group to delete."""

    confirm: str
    """The name once more."""
    dead_letters: bool = False
    """Its dead letters, too."""
    force: bool = False
    """Also while members are connected."""


@TABLE.get("/clusters/{cluster}/groups")
async def list_groups(ask: Ask, wanted: WantedGroups) -> GroupPage:
    """The groups of a cluster with lag and members, the largest lag first, in parts."""
    admin = await ask.admin(wanted.cluster)
    table = await ask.parts.tables.groups(admin)
    progress = await ask.parts.tables.progress(admin)
    found = [name for name in table.groups if matches(name, wanted.search)]
    system = [name for name in found if name.startswith(INTERNAL_GROUPS)]
    chosen = found if wanted.kind == "all" else system
    if wanted.kind == "own":
        chosen = [name for name in found if not name.startswith(INTERNAL_GROUPS)]
    lags = progress.lags
    if wanted.sort == "lag":
        chosen = sorted(chosen, key=lambda name: (-lags.get(name, 0), name))
    shown = part(chosen, wanted.offset, wanted.limit)
    masters = await admin.masters()
    asked = await together(_connected(admin, name, masters) for name in shown)
    return GroupPage(
        groups=[
            _line(name, lags, table.groups[name], connected, bool(progress.progress.get(name)))
            for name, connected in zip(shown, asked, strict=True)
        ],
        count=len(chosen),
        offset=min(wanted.offset, begin_of_last(len(chosen), wanted.limit)),
        lag=sum(lags.get(name, 0) for name in chosen),
        counts={"own": len(found) - len(system), "system": len(system), "all": len(found)},
        silent={**table.silent, **progress.silent},
    )


async def _connected(
    admin: Admin, group: str, masters: dict[str, str]
) -> ConsumerConnections | None:
    """The members of a group: they are connected to all brokers, so the first that has any."""
    found: ConsumerConnections | None = None
    for address in masters.values():
        try:
            found = await admin.consumers(group, address=address)
        except GantryError:
            continue
        if found.connection_set:
            return found
    return found


def _line(
    name: str,
    lags: Any,
    configs: dict[str, GroupConfig],
    connected: ConsumerConnections | None,
    has_progress: bool,
) -> GroupLine:
    whole = connected or ConsumerConnections()
    return GroupLine(
        group=name,
        lag=lags.get(name, 0) if has_progress else None,
        members=None if connected is None else len(whole.connection_set),
        conflicts=len(whole.subscription_conflicts or ()),
        consume_type=whole.consume_type or None,
        message_model=whole.message_model or None,
        may_consume=all(config.consume_enable for config in configs.values()),
        brokers=list(configs),
    )


@TABLE.get("/clusters/{cluster}/groups/{group}")
async def show_group(ask: Ask, wanted: NamedGroup) -> GroupState:
    """A group: its members, subscriptions with conflicts, and settings."""
    admin = await ask.admin(wanted.cluster)
    configs = await known_group(ask, admin, wanted.group)
    connected = await admin.consumers(wanted.group)
    conflicts = await admin.subscription_conflicts(wanted.group)
    differing = {each.topic for each in conflicts}
    lags = (await ask.parts.tables.progress(admin)).lags
    return GroupState(
        group=wanted.group,
        members=[
            GroupMember(
                client_id=each.client_id, address=each.client_addr, language=each.language,
                version=each.version, version_name=version_name(each.version),
            )
            for each in sorted(connected.connection_set, key=lambda each: each.client_id)
        ],
        message_model=connected.message_model or None,
        consume_type=connected.consume_type or None,
        subscriptions=[
            SubscribedTopic(
                topic=topic, expression=each.sub_string, kind=each.expression_type,
                in_conflict=topic in differing,
            )
            for topic, each in sorted(connected.subscription_table.items())
        ],
        conflicts=[ConflictOfMembers(**msgspec.structs.asdict(each)) for each in conflicts],
        settings=[_on_broker(broker, each) for broker, each in configs.items()],
        lag=lags.get(wanted.group),
        may_consume=all(each.consume_enable for each in configs.values()),
    )  # fmt: skip


async def known_group(ask: Ask, admin: Admin, name: str) -> dict[str, GroupConfig]:
    """The settings of a group by broker; NotThere if it left no trace anywhere."""
    configs = (await ask.parts.tables.groups(admin)).groups.get(name, {})
    if not configs:  # it may have come since the table was asked for
        ask.parts.tables.forget(admin)
        configs = (await ask.parts.tables.groups(admin)).groups.get(name, {})
    if not configs:
        left = {retry_topic(name), dead_topic(name)}
        if left.isdisjoint(await admin.topics()):
            raise NotThere(f"there is no group {name!r}")
    return configs


def _on_broker(broker: str, config: GroupConfig) -> GroupOnBroker:
    return GroupOnBroker(broker=broker, **{name: getattr(config, name) for name in CHANGEABLE})


@TABLE.post("/clusters/{cluster}/groups")
async def create_group(ask: Ask, wanted: NewGroup) -> GroupSettings:
    """Create a group on all brokers or on one."""
    admin = await ask.admin(wanted.cluster)
    check_group_name(wanted.group)
    ask.parts.tables.forget(admin)  # a group that has just come must not be changed by this
    known = (await ask.parts.tables.groups(admin)).groups.get(wanted.group, {})
    if wanted.broker in known or (wanted.broker is None and known):
        raise BadInput(f"group {wanted.group!r} exists: change it instead")
    return await _changed(ask, admin, wanted, "created")


@TABLE.put("/clusters/{cluster}/groups/{group}")
async def update_group(ask: Ask, wanted: SettingChanges) -> GroupSettings:
    """Change settings of a group on all brokers or on one."""
    admin = await ask.admin(wanted.cluster)
    if not _changes(wanted):
        raise BadInput("say what to change, for instance retryMaxTimes")
    await known_group(ask, admin, wanted.group)
    return await _changed(ask, admin, wanted, "changed")


@TABLE.post("/clusters/{cluster}/groups/{group}/pause")
async def pause_group(ask: Ask, wanted: NamedGroup) -> GroupSettings:
    """Stop all members of a group from getting messages, until it is resumed."""
    return await _let_consume(ask, wanted, False, "paused")


@TABLE.post("/clusters/{cluster}/groups/{group}/resume")
async def resume_group(ask: Ask, wanted: NamedGroup) -> GroupSettings:
    """Let a group consume again."""
    return await _let_consume(ask, wanted, True, "resumed")


async def _let_consume(ask: Ask, wanted: NamedGroup, may: bool, done: str) -> GroupSettings:
    admin = await ask.admin(wanted.cluster)
    await known_group(ask, admin, wanted.group)
    changes = SettingChanges(cluster=wanted.cluster, group=wanted.group, consume_enable=may)
    return await _changed(ask, admin, changes, done)


def _changes(wanted: SettingChanges) -> dict[str, Any]:
    given = msgspec.structs.asdict(wanted)
    return {name: given[name] for name in sorted(CHANGEABLE) if given[name] is not None}


async def _changed(ask: Ask, admin: Admin, wanted: SettingChanges, done: str) -> GroupSettings:
    changes = _changes(wanted)
    found = await change_settings(admin, wanted.group, changes, broker=wanted.broker)
    ask.parts.tables.forget(admin)
    warnings = []
    if changes.get("retry_queue_nums") == 0:
        warnings.append(
            "no retry queues: what members give back is dropped, not even a dead letter"
        )
    if changes.get("consume_enable") is False:
        warnings.append("members keep running and ask in vain, until the group is resumed")
    return GroupSettings(
        text=f"group {wanted.group} is {done} on {', '.join(found)}",
        settings=[_on_broker(broker, each) for broker, each in found.items()],
        warnings=warnings,
    )


@TABLE.delete("/clusters/{cluster}/groups/{group}")
async def delete_group(ask: Ask, wanted: GroupDeletion) -> Done:
    """Delete a group with its progress and retries; its name has to be given twice."""
    if wanted.confirm != wanted.group:
        raise BadInput(CONFIRMATION.format(name=wanted.group, given=wanted.confirm))
    admin = await ask.admin(wanted.cluster)
    await known_group(ask, admin, wanted.group)
    await check_group_deletable(admin, wanted.group, force=wanted.force)
    await delete_group_and_retries(admin, wanted.group, with_dead_letters=wanted.dead_letters)
    ask.parts.tables.forget(admin)
    return Done(text=f"group {wanted.group} is deleted")
