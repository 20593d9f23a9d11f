"""Topics: the list, one topic with its queues and readers, create, change and delete."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.topics.topic_kinds import KINDS, MESSAGE_TYPE, OWN_KINDS, topic_kinds
from gantrymq.client.admin.topics.topic_settings import (
    PERMISSIONS,
    TopicConfigs,
    change_topic,
    permission_text,
    what_topic_deletion_loses,
)
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.paging import LIMIT, Limit, Offset, begin_of_last, matches, part
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.console.sampling.cluster_tables import TopicTableOfCluster
from gantrymq.model import TopicConfig

TABLE = EndpointTable("topics")

KindChoice = Literal["own", "all", "normal", "fifo", "delay", "transaction", "mixed", "retry",
                     "dead", "system"]  # fmt: skip
Permission = Literal["rw", "r", "w"]
QueueCount = Annotated[int, Meta(ge=1, le=65_536)]
READERS_MAX: Final = 200
CONFIRMATION: Final = "type the name {name!r} to confirm: it says {given!r}"


class WantedTopics(OfCluster, frozen=True, kw_only=True):
    """Which topics to list."""

    search: str = ""
    """Words that the name contains, in any order."""
    kind: KindChoice = "own"
    """`own` are those that users made."""
    offset: Offset = 0
    limit: Limit = LIMIT


class TopicLine(Answer, frozen=True, kw_only=True):
    """A topic in a list; where brokers differ, the figures of all."""

    topic: str
    kind: str
    read_queues: int
    """Over all brokers."""
    write_queues: int
    permission: str
    """`rw`, `r`, `w` or `-`; several with a slash where brokers differ."""
    order: bool
    brokers: list[str]


class TopicPage(Answer, frozen=True, kw_only=True):
    """A part of the topics."""

    topics: list[TopicLine]
    count: int
    """All that match."""
    offset: int
    counts: dict[str, int]
    """How many topics of each kind match the search."""
    silent: dict[str, str]
    """Brokers that did not answer, and why: their topics are missing."""


class NamedTopic(OfCluster, frozen=True, kw_only=True):
    """A question about one topic."""

    topic: str


class TopicOnBroker(Answer, frozen=True, kw_only=True):
    """The settings of a topic on one broker."""

    broker: str
    read_queues: int
    write_queues: int
    permission: str
    order: bool
    attributes: dict[str, str]


class QueueState(Answer, frozen=True, kw_only=True):
    """What one queue holds."""

    broker: str
    queue_id: int
    first: int
    """The offset of the oldest message that is still there."""
    next: int
    """The offset that the next message gets."""
    stored: int
    last_stored_ms: int | None


class RoutePlace(Answer, frozen=True, kw_only=True):
    """Where clients find a topic."""

    broker: str
    cluster: str
    read_queues: int
    write_queues: int
    permission: str
    addresses: dict[str, str]
    """By broker id."""


class TopicState(Answer, frozen=True, kw_only=True):
    """One topic."""

    topic: str
    kind: str
    settings: list[TopicOnBroker]
    route: list[RoutePlace]
    queues: list[QueueState]
    stored: int
    """Messages in all queues."""


class TopicReader(Answer, frozen=True, kw_only=True):
    """A group that reads a topic, or did."""

    group: str
    lag: int | None
    """Unread messages; None if brokers have no progress of it."""


class TopicReaders(Answer, frozen=True, kw_only=True):
    """The groups of a topic, those with the most unread messages first."""

    readers: list[TopicReader]
    count: int
    """All groups; at most 200 are listed."""


class NewTopic(OfCluster, frozen=True, kw_only=True):
    """A topic to create."""

    topic: str
    read_queues: QueueCount = 8
    write_queues: QueueCount = 8
    permission: Permission = "rw"
    order: bool = False
    """Its queue list stays fixed, so that a key always has the same queue."""
    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    """Such as `message.type`."""
    message_type: str | None = None
    """The attribute `message.type`: NORMAL, FIFO, DELAY, TRANSACTION or MIXED."""
    broker_cluster: str | None = None
    """Only on the brokers of this cluster, as the brokers call it."""
    brokers: tuple[str, ...] = ()
    """Only on these brokers."""


class TopicChanges(OfCluster, frozen=True, kw_only=True):
    """What to change of a topic; what is left out stays as each broker has it."""

    topic: str
    read_queues: QueueCount | None = None
    write_queues: QueueCount | None = None
    permission: Permission | None = None
    order: bool | None = None
    attributes: dict[str, str | None] = msgspec.field(default_factory=dict)
    """null removes one."""
    message_type: str | None = None
    brokers: tuple[str, ...] = ()
    force: bool = False
    """Also fewer read queues, which hides what lies in the others."""


class TopicDeletion(NamedTopic, frozen=True, kw_only=True):
    """A topic to delete."""

    confirm: str
    """The name once more."""
    broker_cluster: str | None = None


class DeletionLoss(Answer, frozen=True, kw_only=True):
    """What is lost with a topic."""

    text: str


@TABLE.get("/clusters/{cluster}/topics")
async def list_topics(ask: Ask, wanted: WantedTopics) -> TopicPage:
    """The topics of a cluster, by name and kind, in parts."""
    table = await ask.parts.tables.topics(await ask.admin(wanted.cluster))
    kinds = topic_kinds(table.topics)
    found = {name: kind for name, kind in kinds.items() if matches(name, wanted.search)}
    counts = dict.fromkeys(KINDS, 0)
    for kind in found.values():
        counts[kind] += 1
    names = [name for name, kind in found.items() if _is_wanted(kind, wanted.kind)]
    shown = part(names, wanted.offset, wanted.limit)
    return TopicPage(
        topics=[_line(name, kinds[name], table.topics[name]) for name in shown],
        count=len(names),
        offset=min(wanted.offset, begin_of_last(len(names), wanted.limit)),
        counts=counts,
        silent=dict(table.silent),
    )


def _is_wanted(kind: str, choice: str) -> bool:
    return choice in ("all", kind) or (choice == "own" and kind in OWN_KINDS)


def _line(name: str, kind: str, configs: TopicConfigs) -> TopicLine:
    each = list(configs.values())
    permissions = dict.fromkeys(permission_text(config.perm) for config in each)
    return TopicLine(
        topic=name,
        kind=kind,
        read_queues=sum(config.read_queue_nums for config in each),
        write_queues=sum(config.write_queue_nums for config in each),
        permission="/".join(permissions),
        order=any(config.order for config in each),
        brokers=list(configs),
    )


@TABLE.get("/clusters/{cluster}/topics/{topic}")
async def show_topic(ask: Ask, wanted: NamedTopic) -> TopicState:
    """A topic: its settings, its route and its queues."""
    admin = await ask.admin(wanted.cluster)
    table = await ask.parts.tables.topics(admin)
    if wanted.topic not in table.topics:  # it may have come since the table was asked for
        ask.parts.tables.forget(admin)
        table = await ask.parts.tables.topics(admin)
    configs = table.topics.get(wanted.topic)
    if configs is None and wanted.topic not in await admin.topics():
        raise NotThere(f"there is no topic {wanted.topic!r}")
    queues = [
        QueueState(
            broker=queue.broker_name, queue_id=queue.queue_id, first=row.min_offset,
            next=row.max_offset, stored=row.max_offset - row.min_offset,
            last_stored_ms=row.last_update_timestamp or None,
        )
        for queue, row in (await admin.topic_stats(wanted.topic)).items()
    ]  # fmt: skip
    return TopicState(
        topic=wanted.topic,
        kind=_kind_of(table, wanted.topic),
        settings=[_on_broker(broker, each) for broker, each in (configs or {}).items()],
        route=await _route(admin, wanted.topic),
        queues=queues,
        stored=sum(queue.stored for queue in queues),
    )


def _kind_of(table: TopicTableOfCluster, name: str) -> str:
    return topic_kinds(table.topics).get(name, "normal")


def _on_broker(broker: str, config: TopicConfig) -> TopicOnBroker:
    return TopicOnBroker(
        broker=broker,
        read_queues=config.read_queue_nums,
        write_queues=config.write_queue_nums,
        permission=permission_text(config.perm),
        order=config.order,
        attributes=config.attributes,
    )


async def _route(admin: Admin, name: str) -> list[RoutePlace]:
    route = await admin.topic_route(name)
    queues = {data.broker_name: data for data in route.queue_datas}
    return [
        RoutePlace(
            broker=each.broker_name,
            cluster=each.cluster,
            read_queues=queues[each.broker_name].read_queue_nums,
            write_queues=queues[each.broker_name].write_queue_nums,
            permission=permission_text(queues[each.broker_name].perm),
            addresses={str(key): value for key, value in each.broker_addrs.items()},
        )
        for each in route.broker_datas
        if each.broker_name in queues
    ]


@TABLE.get("/clusters/{cluster}/topics/{topic}/groups")
async def list_topic_groups(ask: Ask, wanted: NamedTopic) -> TopicReaders:
    """The groups that read a topic or did, with their lag in it."""
    admin = await ask.admin(wanted.cluster)
    found: dict[str, int | None] = dict.fromkeys(await admin.topic_groups(wanted.topic))
    for group, rows in (await ask.parts.tables.progress(admin)).progress.items():
        mine = [row for queue, row in rows.items() if queue.topic == wanted.topic]
        if mine:
            found[group] = sum(max(0, row.broker_offset - row.consumer_offset) for row in mine)
    readers = [TopicReader(group=group, lag=lag) for group, lag in found.items()]
    readers.sort(key=lambda each: (-(each.lag or 0), each.group))
    return TopicReaders(readers=readers[:READERS_MAX], count=len(readers))


@TABLE.post("/clusters/{cluster}/topics")
async def create_topic(ask: Ask, wanted: NewTopic) -> Done:
    """Create a topic on all brokers, on those of a cluster, or on chosen ones."""
    admin = await ask.admin(wanted.cluster)
    ask.parts.tables.forget(admin)  # a topic that has just come must not be changed by this
    known = (await ask.parts.tables.topics(admin)).topics.get(wanted.topic, {})
    chosen: list[str | None] = [*wanted.brokers] or [None]
    twice = sorted(known.keys() if chosen == [None] else known.keys() & set(wanted.brokers))
    if twice:
        raise BadInput(f"{', '.join(twice)} has topic {wanted.topic!r} already: change it instead")
    made: list[str] = []
    for broker in chosen:
        made += await admin.create_topic(
            wanted.topic,
            read_queues=wanted.read_queues,
            write_queues=wanted.write_queues,
            perm=PERMISSIONS[wanted.permission],
            order=wanted.order,
            attributes=_attributes(wanted.attributes, wanted.message_type),
            cluster=wanted.broker_cluster,
            broker=broker,
        )
    ask.parts.tables.forget(admin)
    return Done(text=f"topic {wanted.topic} is on {', '.join(made)}")


def _attributes(
    given: dict[str, str] | dict[str, str | None], message_type: str | None
) -> dict[str, str | None]:
    return {**given, **({MESSAGE_TYPE: message_type.upper()} if message_type else {})}


@TABLE.put("/clusters/{cluster}/topics/{topic}")
async def update_topic(ask: Ask, wanted: TopicChanges) -> Done:
    """Change queues, permission, order or attributes of a topic on all or chosen brokers."""
    admin = await ask.admin(wanted.cluster)
    given = msgspec.structs.asdict(wanted)
    attributes = _attributes(wanted.attributes, wanted.message_type)
    wishes = ("read_queues", "write_queues", "permission", "order")
    if not attributes and all(given[name] is None for name in wishes):
        raise BadInput("say what to change: queues, permission, order or attributes")
    chosen: list[str | None] = [*wanted.brokers] or [None]
    for broker in chosen:
        await change_topic(
            admin,
            wanted.topic,
            reads=wanted.read_queues,
            writes=wanted.write_queues,
            perm=PERMISSIONS[wanted.permission] if wanted.permission else None,
            order=wanted.order,
            attributes=attributes,
            broker=broker,
            force=wanted.force,
        )
    ask.parts.tables.forget(admin)
    return Done(text=f"topic {wanted.topic} is changed on {', '.join(wanted.brokers) or 'all'}")


@TABLE.get("/clusters/{cluster}/topics/{topic}/deletion")
async def preview_topic_deletion(ask: Ask, wanted: NamedTopic) -> DeletionLoss:
    """What would be lost with a topic."""
    admin = await ask.admin(wanted.cluster)
    return DeletionLoss(text=await what_topic_deletion_loses(admin, wanted.topic))


@TABLE.delete("/clusters/{cluster}/topics/{topic}")
async def delete_topic(ask: Ask, wanted: TopicDeletion) -> Done:
    """Delete a topic with all its messages; its name has to be given twice."""
    if wanted.confirm != wanted.topic:
        raise BadInput(CONFIRMATION.format(name=wanted.topic, given=wanted.confirm))
    admin = await ask.admin(wanted.cluster)
    if wanted.topic not in await admin.topics():
        raise NotThere(f"there is no topic {wanted.topic!r}")
    lost = await what_topic_deletion_loses(admin, wanted.topic)
    await admin.delete_topic(wanted.topic, cluster=wanted.broker_cluster)
    ask.parts.tables.forget(admin)
    return Done(text=f"topic {wanted.topic} is deleted with {lost}")
