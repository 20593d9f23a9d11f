"""Commands about groups: their settings and connections."""

import json

import msgspec

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.commands.topics import attribute_changes
from gantrymq.cli.mqadmin.config_files import read_configs
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters
from gantrymq.cli.mqadmin.values import address, truth, whole
from gantrymq.client.admin.at_each import at_each
from gantrymq.client.core.errors import ClientError
from gantrymq.model import GroupConfig, dead_topic, retry_topic
from gantrymq.protocol.bodies import ConsumerConnections
from gantrymq.protocol.pop import RequestMode
from gantrymq.protocol.versions import version_name

GROUP = AdminOption("g", "groupName", "Name of the consumer group.", required=True)
CONSUMER_GROUP = AdminOption("g", "consumerGroup", "Name of the consumer group.", required=True)
SETTINGS = {
    "consumeEnable": "consume_enable",
    "consumeFromMinEnable": "consume_from_min_enable",
    "consumeBroadcastEnable": "consume_broadcast_enable",
    "consumeMessageOrderly": "consume_message_orderly",
    "retryQueueNums": "retry_queue_nums",
    "retryMaxTimes": "retry_max_times",
    "brokerId": "broker_id",
    "whichBrokerWhenConsumeSlowly": "which_broker_when_consume_slowly",
    "notifyConsumerIdsChanged": "notify_consumer_ids_changed_enable",
}
"""Options that are settings, by the name of the field."""


@command(
    "updateSubGroup",
    "Update or create subscription group.",
    GROUP,
    BROKER,
    CLUSTER,
    AdminOption("s", "consumeEnable", "Whether the group may consume.", read=truth),
    AdminOption(
        "m", "consumeFromMinEnable", "Whether it may begin at the first message.", read=truth
    ),
    AdminOption("d", "consumeBroadcastEnable", "Whether it may be broadcast to.", read=truth),
    AdminOption("o", "consumeMessageOrderly", "Whether POP keeps order.", read=truth),
    AdminOption("q", "retryQueueNums", "Queues of its retry topic.", read=whole),
    AdminOption("r", "retryMaxTimes", "Tries before a message is a dead letter.", read=whole),
    AdminOption("p", "groupRetryPolicy", "Times between tries, as JSON."),
    AdminOption("i", "brokerId", "Which broker id to read from.", read=whole),
    AdminOption(
        "w", "whichBrokerWhenConsumeSlowly", "Which broker id to read from when behind.", read=whole
    ),
    AdminOption(
        "a", "notifyConsumerIdsChanged", "Whether members are told of changes.", read=truth
    ),
    AdminOption(None, "attributes", "Changes of attributes, as +name=value,-name."),
    one_of=ONE_OF,
)
async def update_sub_group(call: Invocation) -> None:
    config = GroupConfig(
        group_name=call["groupName"],
        consume_broadcast_enable=False,
        consume_from_min_enable=False,
        **{field: call[name] for name, field in SETTINGS.items() if call[name] is not None},
    )
    changes = attribute_changes(call["attributes"])
    config.attributes = {
        f"-{name}" if value is None else f"+{name}": value or "" for name, value in changes.items()
    }
    if call["groupRetryPolicy"]:
        config.group_retry_policy = _policy(call["groupRetryPolicy"])

    async def put(place: str) -> None:
        await call.admin.put_group(place, config)
        call.out.done(f"create subscription group to {place} success.")

    await at_each(f"change group {config.group_name}", await masters(call), put)
    shown = msgspec.to_builtins(config)
    text = ", ".join(f"{name}={_text(value)}" for name, value in shown.items())
    call.out.field("subscriptionGroupConfig", shown, f"SubscriptionGroupConfig{{{text}}}")


def _policy(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise WrongOption(f"-p is no JSON: {error}") from None
    if not isinstance(value, dict) or value.get("type") not in ("CUSTOMIZED", "EXPONENTIAL"):
        raise WrongOption('-p needs a type, as {"type":"EXPONENTIAL", ...} or CUSTOMIZED')
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@command(
    "updateSubGroupList",
    "Update or create subscription group in batch.",
    BROKER,
    CLUSTER,
    AdminOption("f", "filename", "A JSON file with a list of group configurations.", required=True),
    one_of=ONE_OF,
)
async def update_sub_group_list(call: Invocation) -> None:
    configs = read_configs(call["filename"], GroupConfig, "groupName")

    async def put(place: str) -> None:
        await call.admin.put_groups(place, configs)
        what = "group config" if call["brokerAddr"] else "subscription group config"
        call.out.done(f"submit batch of {what} to {place} success, please check the result later.")

    await at_each("change groups", await masters(call), put)


@command(
    "deleteSubGroup",
    "Delete subscription group from broker.",
    GROUP,
    BROKER,
    CLUSTER,
    AdminOption("r", "removeOffset", "true: its progress, too.", read=truth, default=False),
    one_of=ONE_OF,
)
async def delete_sub_group(call: Invocation) -> None:
    """With a cluster its retry and dead-letter topics go as well, as in RocketMQ."""
    group, cluster, one = call["groupName"], call["clusterName"], call["brokerAddr"]
    places = await call.admin.delete_group(
        group, cluster=cluster, address=one, with_offsets=call["removeOffset"]
    )
    for place in places:
        where = f"broker [{place}]" + ("" if one else f" in cluster [{cluster}]")
        call.out.done(f"delete subscription group [{group}] from {where} success.")
    if one is None:
        known = await call.admin.topics(cluster=cluster)
        for topic in (dead_topic(group), retry_topic(group)):
            if topic in known:
                await call.admin.delete_topic(topic, cluster=cluster)


@command("getConsumerConfig", "Get consumer config by subscription group name.", GROUP)
async def get_consumer_config(call: Invocation) -> None:
    group, found = call["groupName"], False
    info = await call.admin.cluster()
    clusters = {b: name for name, brokers in info.cluster_addr_table.items() for b in brokers}
    for name, place in (await call.admin.masters()).items():
        config = (await call.admin.group_configs(place)).get(group)
        if config is None:
            continue
        found = True
        call.out.text(
            f"============================={clusters.get(name)}:{name}============================="
        )
        row = call.out.table(
            [
                Column("key", "", 40),
                Column("value", "", show=lambda value: f"= {_text(value)}"),
                Column("brokerName", "", show=lambda value: ""),
            ]
        )
        for key, value in msgspec.to_builtins(config).items():
            row(key, value, name)
    if not found:
        raise ClientError(f"no group {group!r} on any broker")


@command(
    "setConsumeMode",
    "Set consume message mode. pull/pop etc.",
    BROKER,
    CLUSTER,
    AdminOption("t", "topicName", "Name of the topic.", required=True),
    GROUP,
    AdminOption("m", "mode", "PULL or POP.", required=True),
    AdminOption(
        "q", "popShareQueueNum", "How many more queues each member may pop.", read=whole, default=0
    ),
    one_of=ONE_OF,
)
async def set_consume_mode(call: Invocation) -> None:
    mode = call["mode"].upper()
    if mode not in ("PULL", "POP"):
        raise WrongOption(f"-m is PULL or POP, not {call['mode']!r}")
    topic, group, shared = call["topicName"], call["groupName"], call["popShareQueueNum"]
    wanted = RequestMode(topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=shared)

    async def put(place: str) -> None:
        await call.admin.set_request_mode(place, wanted)
        call.out.done(f"set consume mode to {place} success.")

    await at_each(f"set the mode of {group}", await masters(call), put)
    call.out.text(f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{shared}]")


CONNECTED = (
    Column("clientId", "#ClientId", 36),
    Column("clientAddr", "#ClientAddr", 22),
    Column("language", "#Language", 10),
    Column("version", "#Version"),
)


async def connections(call: Invocation, group: str, place: str | None) -> ConsumerConnections:
    """The members of a group; an error if there are none."""
    found = await call.admin.consumers(group, address=place)
    if not found.connection_set:
        raise ClientError(f"no consumer of group {group!r} is online (CONSUMER_NOT_ONLINE)")
    return found


@command(
    "consumerConnection",
    "Query consumer's socket connection, client version and subscription.",
    CONSUMER_GROUP,
    AdminOption("b", "brokerAddr", "Only this broker, ip:port.", read=address),
)
async def consumer_connection(call: Invocation) -> None:
    found = await connections(call, call["consumerGroup"], call["brokerAddr"])
    row = call.out.table(CONNECTED)
    for each in found.connection_set:
        row(each.client_id, each.client_addr, each.language, version_name(each.version))
    call.out.text()
    call.out.text("Below is subscription:")
    wanted = {topic: about.sub_string for topic, about in found.subscription_table.items()}
    lines = "".join(f"\n{topic:<20} {text}" for topic, text in wanted.items())
    call.out.field("subscriptions", wanted, f"{'#Topic':<20} #SubExpression{lines}")
    call.out.text()
    for key, value in (
        ("ConsumeType", found.consume_type),
        ("MessageModel", found.message_model),
        ("ConsumeFromWhere", found.consume_from_where),
    ):
        shown = None if value is msgspec.UNSET else value
        call.out.field(key[0].lower() + key[1:], shown, f"{key}: {shown}")


@command(
    "producerConnection",
    "Query producer's socket connection and client version.",
    AdminOption("g", "producerGroup", "Name of the producer group.", required=True),
    AdminOption("t", "topic", "A topic that it sends to.", required=True),
)
async def producer_connection(call: Invocation) -> None:
    group = call["producerGroup"]
    found = await call.admin.producers(group, call["topic"])
    if not found.connection_set:
        raise ClientError(f"the producer group [{group}] not exist, or has no producer online")
    row = call.out.table([Column("index", "", 4, show=lambda at: f"{at:04d}"), *PRODUCERS])
    for at, each in enumerate(found.connection_set, 1):
        row(at, each.client_id, each.client_addr, each.language, version_name(each.version))


PRODUCERS = (
    Column("clientId", "", 32),
    Column("clientAddr", "", 22),
    Column("language", "", 8),
    Column("version", ""),
)

COMMANDS = (
    update_sub_group,
    update_sub_group_list,
    set_consume_mode,
    delete_sub_group,
    get_consumer_config,
    producer_connection,
    consumer_connection,
)
