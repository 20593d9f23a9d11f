"""Commands about topics."""

import json
from typing import Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.config_files import read_configs
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters
from gantrymq.cli.mqadmin.values import permission, shown_time, truth, whole
from gantrymq.client.admin.at_each import at_each
from gantrymq.client.admin.groups.members import together
from gantrymq.client.core.errors import ClientError
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, Route, TopicConfig
from gantrymq.protocol.assignment import averagely, in_java_order
from gantrymq.protocol.bodies import ClusterInfo

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
TOPIC: Final = AdminOption("t", "topic", "Name of the topic.", required=True)
UNIT_FLAG, UNIT_SUBSCRIBERS_FLAG = 1, 2
"""Bits of topicSysFlag."""


@command(
    "updateTopic",
    "Update or create topic.",
    TOPIC,
    BROKER,
    CLUSTER,
    AdminOption("r", "readQueueNums", "Read queues; 8 by default.", read=whole, default=8),
    AdminOption("w", "writeQueueNums", "Write queues; 8 by default.", read=whole, default=8),
    AdminOption("p", "perm", "2 (write), 4 (read) or 6 (both).", read=permission, default=6),
    AdminOption("o", "order", "Fix the queue list: true or false.", read=truth, default=False),
    AdminOption("u", "unit", "Whether it is a topic of a unit.", read=truth, default=False),
    AdminOption("s", "hasUnitSub", "Whether units subscribe to it.", read=truth, default=False),
    AdminOption("a", "attributes", "Changes of attributes, as +name=value,-name."),
    one_of=ONE_OF,
)
async def update_topic(call: Invocation) -> None:
    flag = call["unit"] * UNIT_FLAG + call["hasUnitSub"] * UNIT_SUBSCRIBERS_FLAG
    changes = attribute_changes(call["attributes"])
    made = await call.admin.create_topic(
        call["topic"],
        read_queues=call["readQueueNums"],
        write_queues=call["writeQueueNums"],
        perm=call["perm"],
        order=call["order"],
        attributes=changes,
        sys_flag=flag,
        cluster=call["clusterName"],
        address=call["brokerAddr"],
    )
    for address in made.values():
        call.out.done(f"create topic to {address} success.")
    if call["order"]:
        where = "broker" if call["brokerAddr"] else "cluster"
        fixed = await call.admin.kv(ORDER_NAMESPACE, call["topic"]) or ""
        call.out.done(f"set {where} orderConf. isOrder=true, orderConf=[{fixed}]")
    config = TopicConfig(
        topic_name=call["topic"],
        read_queue_nums=call["readQueueNums"],
        write_queue_nums=call["writeQueueNums"],
        perm=call["perm"],
        topic_sys_flag=flag,
        order=call["order"],
        attributes={
            f"+{name}" if v is not None else f"-{name}": v or "" for name, v in changes.items()
        },
    )
    call.out.field("topicConfig", msgspec.to_builtins(config), config_text(config))


def attribute_changes(text: str | None) -> dict[str, str | None]:
    """`+name=value,-name` as a table; None removes an attribute."""
    changes: dict[str, str | None] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = part[1:].partition("=")
        if part[0] not in "+-" or not name or (part[0] == "+") != bool(value):
            raise WrongOption(f"{part!r} is no change of an attribute: +name=value or -name")
        changes[name] = value if part[0] == "+" else None
    return changes


def config_text(config: TopicConfig) -> str:
    """A topic's settings in one line, as RocketMQ prints them."""
    perm = "".join(
        char if config.perm & bit else "-" for char, bit in zip("RWX", (4, 2, 1), strict=True)
    )
    attributes = ", ".join(f"{name}={value}" for name, value in config.attributes.items())
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={perm}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
        f"order={str(config.order).lower()}, attributes={{{attributes}}}]"
    )


@command(
    "updateTopicList",
    "Create or update topics in batch.",
    BROKER,
    CLUSTER,
    AdminOption("f", "filename", "A JSON file with a list of topic configurations.", required=True),
    one_of=ONE_OF,
)
async def update_topic_list(call: Invocation) -> None:
    configs = read_configs(call["filename"], TopicConfig, "topicName")

    async def put(address: str) -> None:
        await call.admin.put_topics(address, configs)
        call.out.done(
            f"submit batch of topic config to {address} success, please check the result later."
        )

    await at_each("create topics", await masters(call), put)


@command(
    "updateTopicPerm",
    "Update topic perm.",
    TOPIC,
    AdminOption("p", "perm", "2 (write), 4 (read) or 6 (both).", required=True, read=permission),
    BROKER,
    CLUSTER,
    one_of=ONE_OF,
)
async def update_topic_perm(call: Invocation) -> None:
    topic, perm = call["topic"], call["perm"]
    await call.admin.topic_route(topic)

    async def change(address: str) -> None:
        config = (await call.admin.topic_configs(address)).get(topic)
        if config is None:
            raise ClientError(f"no topic {topic!r} on the broker at {address}")
        if config.perm == perm:
            call.out.done(f"new perm equals to the old one! ({address})")
            return
        await call.admin.put_topic(address, msgspec.structs.replace(config, perm=perm))
        call.out.done(f"update topic perm from {config.perm} to {perm} in {address} success.")

    await at_each(f"change the permission of {topic}", await masters(call), change)


@command(
    "deleteTopic",
    "Delete topic from broker and NameServer.",
    TOPIC,
    AdminOption("c", "clusterName", "Delete it from this cluster.", required=True),
)
async def delete_topic(call: Invocation) -> None:
    topic, cluster = call["topic"], call["clusterName"]
    await call.admin.delete_topic(topic, cluster=cluster)
    call.out.done(f"delete topic [{topic}] from cluster [{cluster}] success.")
    call.out.done(f"delete topic [{topic}] from NameServer success.")


LISTED = (
    Column("clusterName", "#Cluster Name", 20),
    Column("topic", "#Topic", 64),
    Column("consumerGroup", "#Consumer Group", 64),
)


@command(
    "topicList",
    "Fetch all topic list from name server.",
    AdminOption("c", "clusterModel", "Show cluster and groups of each topic.", is_flag=True),
)
async def topic_list(call: Invocation) -> None:
    topics = await call.admin.topics()
    if not call["clusterModel"]:
        row = call.out.table([Column("topic", "")])
        for topic in topics:
            row(topic)
        return
    row, info = call.out.table(LISTED), await call.admin.cluster()
    own = [name for name in topics if not name.startswith((RETRY_PREFIX, DEAD_PREFIX))]

    async def describe(topic: str) -> tuple[str, list[str]]:
        try:
            route = await call.admin.topic_route(topic)
            return ", ".join(clusters_of(route, info)), await call.admin.topic_groups(topic)
        except GantryError:  # deleted meanwhile, or its broker is down: the list goes on
            return "", []

    for topic, (cluster, groups) in zip(own, await together(map(describe, own)), strict=True):
        for group in groups or [""]:
            row(cluster, topic, group)


def clusters_of(route: Route, info: ClusterInfo) -> list[str]:
    """The clusters that a topic lies in."""
    brokers = {data.broker_name for data in route.broker_datas}
    return [name for name, members in info.cluster_addr_table.items() if brokers & set(members)]


@command("topicClusterList", "Get cluster info for topic.", TOPIC)
async def topic_cluster_list(call: Invocation) -> None:
    route = await call.admin.topic_route(call["topic"])
    row = call.out.table([Column("clusterName", "")])
    for name in clusters_of(route, await call.admin.cluster()):
        row(name)


ROUTE = (
    Column("clusterName", "#ClusterName", 45),
    Column("brokerName", "#BrokerName", 32),
    Column("brokerAddrs", "#BrokerAddrs", 50, show=json.dumps),
    Column("readQueues", "#ReadQueue", 10),
    Column("writeQueues", "#WriteQueue", 11),
    Column("perm", "#Perm", 5),
)


@command(
    "topicRoute",
    "Examine topic route info.",
    TOPIC,
    AdminOption("l", "list", "Print a table.", is_flag=True),
)
async def topic_route(call: Invocation) -> None:
    route = await call.admin.topic_route(call["topic"])
    if not call["list"]:
        value = msgspec.to_builtins(route)
        for key, part in value.items():
            call.out.field(key, part)
        call.out.text(json.dumps(value, indent=2, ensure_ascii=False))
        return
    row = call.out.table(ROUTE)
    queues = {data.broker_name: data for data in route.queue_datas}
    for data in sorted(route.broker_datas, key=lambda each: each.broker_name):
        found = queues.get(data.broker_name)
        counts = (found.read_queue_nums, found.write_queue_nums, found.perm) if found else (0, 0, 0)
        row(data.cluster, data.broker_name, data.broker_addrs, *counts)
    reads = sum(data.read_queue_nums for data in route.queue_datas)
    writes = sum(data.write_queue_nums for data in route.queue_datas)
    call.out.text("-" * 158)
    call.out.text(f"{'Total:':<45} {len(queues):<32} {'':<50} {reads:<10} {writes:<11}".rstrip())


STATUS = (
    Column("brokerName", "#Broker Name", 32),
    Column("queueId", "#QID", 4),
    Column("minOffset", "#Min Offset", 20),
    Column("maxOffset", "#Max Offset", 20),
    Column("lastUpdated", "#Last Updated", show=shown_time),
)


@command(
    "topicStatus",
    "Examine topic Status info.",
    TOPIC,
    AdminOption("c", "cluster", "Only brokers of this cluster."),
)
async def topic_status(call: Invocation) -> None:
    found = await call.admin.topic_stats(call["topic"])
    if call["cluster"]:
        brokers = await call.admin.members(cluster=call["cluster"])
        found = {queue: row for queue, row in found.items() if queue.broker_name in brokers}
    row = call.out.table(STATUS)
    for queue, at in found.items():
        row(
            queue.broker_name,
            queue.queue_id,
            at.min_offset,
            at.max_offset,
            at.last_update_timestamp,
        )
    rate = await call.admin.topic_put_rate(call["topic"])
    call.out.text()
    call.out.field("topicPutTps", rate, f"Topic Put TPS: {rate}")


@command(
    "updateOrderConf",
    "Create or update or delete order conf.",
    TOPIC,
    AdminOption("m", "method", "get, put or delete.", required=True),
    AdminOption("v", "orderConf", "The queue list, as broker:queues;broker:queues."),
)
async def update_order_conf(call: Invocation) -> None:
    topic, method, wanted = call["topic"], call["method"], call["orderConf"]
    if method == "get":
        found = await call.admin.kv(ORDER_NAMESPACE, topic)
        if found is None:
            raise ClientError(f"topic {topic!r} has no fixed queue list")
        call.out.field(
            "orderConf", found, f"get orderConf success. topic=[{topic}], orderConf=[{found}]"
        )
    elif method == "put":
        if not wanted or not all(part.rpartition(":")[2].isdecimal() for part in wanted.split(";")):
            raise WrongOption("-v is needed, as broker-a:4;broker-b:4")
        await call.admin.put_kv(ORDER_NAMESPACE, topic, wanted)
        call.out.done(f"update orderConf success. topic=[{topic}], orderConf=[{wanted}]")
    elif method == "delete":
        await call.admin.delete_kv(ORDER_NAMESPACE, topic)
        call.out.done(f"delete orderConf success. topic=[{topic}]")
    else:
        raise WrongOption(f"-m is get, put or delete, not {method!r}")


@command(
    "allocateMQ",
    "Allocate MQ.",
    TOPIC,
    AdminOption(
        "i", "ipList", "Addresses or client ids of consumers, commas between.", required=True
    ),
)
async def allocate_mq(call: Invocation) -> None:
    """Which queues each consumer would get by the default strategy."""
    topic, members = call["topic"], in_java_order(filter(None, call["ipList"].split(",")))
    route = await call.admin.topic_route(topic)
    queues = sorted(call.admin.instance.routes.subscribe_queues(route, topic))
    if not queues:
        raise ClientError(f"topic {topic!r} has no queue that can be read")
    result = {
        member: [msgspec.to_builtins(queue) for queue in averagely(member, queues, members)]
        for member in members
    }
    call.out.field("result", result, json.dumps({"result": result}, ensure_ascii=False))


COMMANDS = (
    update_topic,
    update_topic_list,
    delete_topic,
    update_topic_perm,
    topic_route,
    topic_status,
    topic_cluster_list,
    topic_list,
    update_order_conf,
    allocate_mq,
)
