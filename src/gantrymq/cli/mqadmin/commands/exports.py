"""Commands that write what a cluster is made of into JSON files."""

import json
from pathlib import Path
from typing import Any

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.commands.clusters import first_rate
from gantrymq.cli.mqadmin.commands.progress import day_total
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters
from gantrymq.client.admin.admin import Admin
from gantrymq.model import (
    DEAD_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    GroupConfig,
    TopicConfig,
    is_system_topic,
)
from gantrymq.protocol.versions import version_name

FOLDER = AdminOption("f", "filePath", "Folder of the file.", default="/tmp/rocketmq/export")
IN_CLUSTER = AdminOption("c", "clusterName", "Name of the cluster.", required=True)
SYSTEM_GROUPS = ("TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_", "CID_ONS", "CID_RMQ_SYS_")
EXPORTED_KEYS = (
    "brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime",
    "filterServerNums", "flushDiskType", "maxMessageSize", "messageDelayLevel", "msgTraceTopicName",
    "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable",
    "autoCreateSubscriptionGroup",
)  # fmt: skip
"""Settings that RocketMQ exports."""


def _write(call: Invocation, name: str, value: Any) -> None:
    """Write a file whole or not at all."""
    place = Path(call["filePath"]) / name
    half = place.with_name(f"{name}.tmp")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        half.replace(place)
    except OSError as error:
        raise WrongOption(f"{place} cannot be written: {error.strerror}; see -f") from error
    call.out.done(f"export {place} success")


@command("exportConfigs", "Export configs.", IN_CLUSTER, FOLDER)
async def export_configs(call: Invocation) -> None:
    found = await call.admin.members(cluster=call["clusterName"])
    brokers = {}
    for name, by_id in found.items():
        if 0 in by_id:
            settings = await call.admin.broker_config(by_id[0])
            brokers[name] = {key: settings[key] for key in EXPORTED_KEYS if key in settings}
    scale = {
        "namesrvSize": len(call.admin.name_servers),
        "masterBrokerSize": sum(0 in by_id for by_id in found.values()),
        "slaveBrokerSize": sum(len(by_id) - (0 in by_id) for by_id in found.values()),
    }
    _write(call, "configs.json", {"brokerConfigs": brokers, "clusterScale": scale})


@command(
    "exportMetadata",
    "Export metadata.",
    BROKER,
    CLUSTER,
    FOLDER,
    AdminOption("t", "topic", "Only topics.", is_flag=True),
    AdminOption("g", "subscriptionGroup", "Only groups.", is_flag=True),
    AdminOption("s", "specialTopic", "Retry and dead-letter topics, too.", is_flag=True),
    one_of=ONE_OF,
)
async def export_metadata(call: Invocation) -> None:
    topics: dict[str, TopicConfig] = {}
    groups: dict[str, GroupConfig] = {}
    for place in await masters(call):
        for name, topic in (await user_topics(call.admin, place, call["specialTopic"])).items():
            known = topics.get(name)
            if known is not None:  # queues of all brokers together, as RocketMQ counts them
                topic.write_queue_nums += known.write_queue_nums
                topic.read_queue_nums += known.read_queue_nums
            topics[name] = topic
        groups |= await user_groups(call.admin, place)
    tables = {
        "topicConfigTable": msgspec.to_builtins(topics),
        "subscriptionGroupTable": msgspec.to_builtins(groups),
    }
    if call["topic"]:
        _write(call, "topic.json", {"topicConfigTable": tables["topicConfigTable"]})
    elif call["subscriptionGroup"]:
        only = {"subscriptionGroupTable": tables["subscriptionGroupTable"]}
        _write(call, "subscriptionGroup.json", only)
    else:
        _write(call, "metadata.json", tables)


async def user_topics(admin: Admin, place: str, special: bool) -> dict[str, TopicConfig]:
    """The topics that users made; `special`: with those of retries and dead letters."""
    return {
        name: topic
        for name, topic in (await admin.topic_configs(place)).items()
        if not is_system_topic(name)
        and (special or not name.startswith((RETRY_PREFIX, DEAD_PREFIX)))
    }


async def user_groups(admin: Admin, place: str) -> dict[str, GroupConfig]:
    """The groups that users made."""
    found = await admin.group_configs(place)
    return {name: group for name, group in found.items() if not name.startswith(SYSTEM_GROUPS)}


@command("exportMetrics", "Export metrics.", IN_CLUSTER, FOLDER)
async def export_metrics(call: Invocation) -> None:
    report: dict[str, Any] = {}
    for name, place in (await call.admin.masters(cluster=call["clusterName"])).items():
        report[name] = await _metrics(call.admin, place)
    rates = [broker["runtimeQuota"]["tps"] for broker in report.values()]
    days = [broker["runtimeQuota"]["oneDayNum"] for broker in report.values()]
    total = {
        "totalTps": {f"total{k[0].upper()}{k[1:]}": sum(r[k] for r in rates) for k in rates[0]},
        "totalOneDayNum": {key: sum(day[key] for day in days) for key in days[0]},
    }
    _write(call, "metrics.json", {"evaluateReport": report, "totalData": total})


async def _metrics(admin: Admin, place: str) -> dict[str, Any]:
    figures, settings = await admin.broker_runtime(place), await admin.broker_config(place)
    groups = await user_groups(admin, place)
    half = await admin.broker_stats(place, "TOPIC_PUT_NUMS", HALF_TOPIC)
    delayed = await admin.broker_stats(place, "TOPIC_PUT_NUMS", SCHEDULE_TOPIC)

    def yesterday(kind: str) -> int:
        first, last = f"msg{kind}TotalYesterdayMorning", f"msg{kind}TotalTodayMorning"
        return int(figures.get(last, 0)) - int(figures.get(first, 0))

    return {
        "runtimeEnv": {
            "cpuNum": settings.get("clientCallbackExecutorThreads"),
            "totalMemKBytes": figures.get("totalMemKBytes"),
        },
        "runtimeQuota": {
            "diskRatio": {
                key: figures.get(key) for key in ("commitLogDiskRatio", "consumeQueueDiskRatio")
            },
            "tps": {
                "normalInTps": first_rate(figures.get("putTps")),
                "normalOutTps": first_rate(figures.get("getTransferredTps")),
                "transInTps": half.stats_minute.tps if half else 0.0,
                "scheduleInTps": delayed.stats_minute.tps if delayed else 0.0,
            },
            "oneDayNum": {
                "normalOneDayInNum": yesterday("Put"),
                "normalOneDayOutNum": yesterday("Get"),
                "transOneDayInNum": day_total(half) if half else 0,
                "scheduleOneDayInNum": day_total(delayed) if delayed else 0,
            },
            "messageAverageSize": figures.get("putMessageAverageSize"),
            "topicSize": len(await user_topics(admin, place, special=False)),
            "groupSize": len(groups),
        },
        "runtimeVersion": {
            "rocketmqVersion": figures.get("brokerVersionDesc"),
            "clientInfo": await _clients(admin, list(groups)),
        },
    }


async def _clients(admin: Admin, groups: list[str]) -> list[str]:
    """Language and version of all consumers that are connected."""
    found: set[str] = set()
    for group in groups:
        try:
            members = (await admin.consumers(group)).connection_set
        except GantryError:
            continue
        found |= {f"{each.language}%{version_name(each.version)}" for each in members}
    return sorted(found)


COMMANDS = (export_configs, export_metadata, export_metrics)
