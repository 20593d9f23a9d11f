"""Takes a snapshot of a cluster with few requests: some for each server, one for each group.

A server that does not answer is part of the snapshot. Members are asked about themselves only in
the groups with the largest backlogs.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.doctor.snapshot import (
    MASTER_ID,
    BrokerView,
    ClusterSnapshot,
    GroupView,
    NameServerView,
    behind,
)
from gantrymq.client.admin.groups.all_progress import AllProgress, progress_at
from gantrymq.client.admin.groups.group_settings import INTERNAL_GROUPS
from gantrymq.client.admin.groups.members import members_of, together
from gantrymq.client.core.errors import BrokerRefused, NoNameServer
from gantrymq.model import Queue, is_system_topic
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import (
    ClientConnection,
    ClusterInfo,
    ConsumerConnections,
    OffsetWrapper,
    TopicList,
)
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import GroupRequest

CLOSE_LOOKS_MAX: Final = 50
"""Groups whose members are asked, the largest backlogs first."""
TOPICS_ASKED_MAX: Final = 200
"""Topics with a backlog whose first offsets are asked."""

T = TypeVar("T")


async def take_snapshot(admin: Admin) -> ClusterSnapshot:
    """Ask all servers. Raises NoNameServer only if no name server answers at all."""
    servers = tuple(await together(_name_server(admin, each) for each in admin.name_servers))
    if all(server.trouble for server in servers):
        raise NoNameServer(
            "no name server answers: "
            + "; ".join(f"{each.address}: {each.trouble}" for each in servers)
        )
    places = {
        (name, number, address)
        for server in servers
        for name, members in server.brokers.items()
        for number, address in members.items()
    }
    brokers = tuple(await together(_broker(admin, *place) for place in sorted(places)))
    masters = [broker for broker in brokers if broker.is_master and broker.answers]
    left_out: list[str] = []
    groups = await _groups(admin, masters, left_out)
    first = await _first_offsets(admin, groups, left_out)
    now_ms = admin.instance.clock.now_ms()
    return ClusterSnapshot(now_ms, servers, brokers, groups, first, tuple(left_out))


async def _name_server(admin: Admin, address: str) -> NameServerView:
    instance = admin.instance
    try:
        _, answer = await instance.call(address, calls.GET_BROKER_CLUSTER_INFO, Nothing())
        info = fastjson.load_as(answer.body, ClusterInfo)
        code = calls.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        _, answer = await instance.call(address, code, Nothing())
        names = fastjson.load_as(answer.body, TopicList).topic_list if answer.body else []
    except GantryError as error:
        return NameServerView(address, trouble=str(error))
    brokers = {
        name: {int(key): value for key, value in data.broker_addrs.items()}
        for name, data in info.broker_addr_table.items()
    }
    return NameServerView(address, "", brokers, frozenset(names if isinstance(names, list) else ()))


async def _broker(admin: Admin, name: str, number: int, address: str) -> BrokerView:
    clock = admin.instance.clock
    view = BrokerView(name, number, address, asked_ms=clock.now_ms())
    try:
        figures = await admin.broker_runtime(address)
        answered = clock.now_ms()
        config = await admin.broker_config(address)
    except GantryError as error:
        return replace(view, trouble=str(error), refuses=isinstance(error, BrokerRefused))
    view = replace(view, figures=figures, answered_ms=answered, config=config)
    copies = await _or_none(admin.ha_status(address))
    raft = None
    if config.get("enableDLegerCommitLog") == "true":
        raft = await _or_none(admin.raft_status(address))  # DLedger of RocketMQ does not know it
    view = replace(view, copies=copies, raft=raft)
    if number != MASTER_ID:
        return view
    try:
        topics, groups = await admin.topic_configs(address), await admin.group_configs(address)
    except GantryError as error:
        return replace(view, trouble=str(error))
    table = await _or_none(admin.broker_producers(address))
    producers = tuple(
        ClientConnection(
            client_addr=row.remote_ip,
            client_id=row.client_id,
            language=row.language,
            version=row.version,
        )
        for rows in (table.data.values() if table else ())
        for row in rows
    )
    return replace(view, topics=topics, groups=groups, producers=producers)


async def _or_none(work: Awaitable[T]) -> T | None:
    """None if the server refuses: older ones do not know every question."""
    try:
        return await work
    except GantryError:
        return None


async def _groups(
    admin: Admin, masters: list[BrokerView], left_out: list[str]
) -> Mapping[str, GroupView]:
    at: dict[str, list[BrokerView]] = {}
    for broker in masters:
        for group in broker.groups:
            if not group.startswith(INTERNAL_GROUPS):
                at.setdefault(group, []).append(broker)
    progress: AllProgress = {group: {} for group in at}
    for broker in masters:
        try:
            rows = await progress_at(admin, broker.address, list(at))
        except GantryError as error:
            left_out.append(f"the progress of groups on {broker.name}: {error}")
            continue
        for group in at:
            progress[group] |= rows.get(group, {})
    found = await together(
        _group(admin, group, brokers, progress[group]) for group, brokers in sorted(at.items())
    )
    return await _looked_at(admin, {each.name: each for each in found}, masters, left_out)


async def _group(
    admin: Admin, name: str, brokers: list[BrokerView], progress: dict[Queue, OffsetWrapper]
) -> GroupView:
    known = (broker.groups[name].consume_enable for broker in brokers)
    view = GroupView(name, progress, may_consume=all(known))
    for broker in brokers:
        connected = await _or_none(_connected(admin, broker.address, name))
        if connected is not None and connected.connection_set:
            return replace(
                view,
                clients=tuple(connected.connection_set),
                topics=tuple(sorted(connected.subscription_table)),
                conflicts=tuple(connected.subscription_conflicts or ()),
                broadcast=connected.message_model == "BROADCASTING",
                pops=connected.consume_type == "CONSUME_POP",
            )
    return view


async def _connected(admin: Admin, address: str, group: str) -> ConsumerConnections | None:
    _, answer = await admin.instance.call(
        address,
        calls.GET_CONSUMER_CONNECTION_LIST,
        GroupRequest(consumer_group=group),
        expect=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
    )
    if answer.code != ResponseCode.SUCCESS:
        return None
    return fastjson.load_as(answer.body, ConsumerConnections)


async def _looked_at(
    admin: Admin, groups: dict[str, GroupView], masters: list[BrokerView], left_out: list[str]
) -> dict[str, GroupView]:
    """The groups, those with members and the largest backlogs with what their members say."""
    online = sorted((each for each in groups.values() if each.clients), key=lambda one: -one.lag)
    if len(online) > CLOSE_LOOKS_MAX:
        left_out.append(
            f"members of {len(online) - CLOSE_LOOKS_MAX} groups with smaller backlogs were not "
            f"asked about themselves; `gantry lag GROUP` does"
        )
    chosen = online[:CLOSE_LOOKS_MAX]
    addresses = [broker.address for broker in masters]
    asked = await together(
        _or_none(members_of(admin.instance, addresses, each.name)) for each in chosen
    )
    looked = {
        each.name: replace(each, members=members)
        for each, members in zip(chosen, asked, strict=True)
    }
    return groups | looked


async def _first_offsets(
    admin: Admin, groups: Mapping[str, GroupView], left_out: list[str]
) -> dict[Queue, int]:
    lags: dict[str, int] = {}
    for group in groups.values():
        for queue, row in group.progress.items():
            if behind(row) and not is_system_topic(queue.topic):
                lags[queue.topic] = lags.get(queue.topic, 0) + behind(row)
    topics = sorted(lags, key=lambda topic: -lags[topic])
    if len(topics) > TOPICS_ASKED_MAX:
        left_out.append(
            f"the first offsets of {len(topics) - TOPICS_ASKED_MAX} topics with smaller backlogs"
        )
    asked = await together(_or_none(admin.topic_stats(each)) for each in topics[:TOPICS_ASKED_MAX])
    return {queue: row.min_offset for part in asked for queue, row in (part or {}).items()}
