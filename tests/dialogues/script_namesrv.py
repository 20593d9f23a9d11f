"""What is said to a name server."""

import json
import struct
import zlib
from typing import Any

from player import Step
from steps import namesrv

BROKER = {
    "brokerName": "dialogue-a",
    "brokerAddr": "10.9.8.7:10911",
    "clusterName": "DialogueCluster",
    "haServerAddr": "10.9.8.7:10912",
    "brokerId": "0",
    "compressed": "false",
    "bodyCrc32": "$crc",
}
SLAVE = {**BROKER, "brokerAddr": "10.9.8.8:10911", "haServerAddr": "10.9.8.8:10912", "brokerId": 1}
VERSION = {"counter": 1, "stateVersion": 0, "timestamp": 1700000000000}
LATER_VERSION = {"counter": 2, "stateVersion": 0, "timestamp": 1700000000001}
PICK = ["DialogueA", "DialogueB", "DialogueUnit", "DialogueCluster", "dialogue-a"]
NAME = {key: BROKER[key] for key in ("brokerName", "brokerAddr", "clusterName", "brokerId")}


def topic_config(name: str, sys_flag: int = 0) -> dict[str, Any]:
    return {
        "order": False,
        "perm": 6,
        "readQueueNums": 4,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": sys_flag,
        "writeQueueNums": 4,
    }


def registration(*topics: dict[str, Any]) -> dict[str, Any]:
    return {
        "filterServerList": [],
        "topicConfigSerializeWrapper": {
            "dataVersion": VERSION,
            "topicConfigTable": {topic["topicName"]: topic for topic in topics},
        },
    }


def compressed_registration(*topics: str) -> str:
    """The body of 4.9 with `compressed`: lengths and texts in one zlib stream."""
    texts = [f"{topic} 2 2 6 SINGLE_TAG" for topic in topics]
    version = json.dumps(VERSION, separators=(",", ":"))
    data = _text(version) + struct.pack(">i", len(texts)) + b"".join(map(_text, texts))
    return zlib.compress(data + _text("[]"), 9).hex()


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


KEY_VALUE: list[Step] = [
    namesrv("a key of an unknown namespace", 101, {"namespace": "DialogueNs", "key": "k"}),
    namesrv("put a key", 100, {"namespace": "DialogueNs", "key": "k", "value": "v"}),
    namesrv("get the key", 101, {"namespace": "DialogueNs", "key": "k"}),
    namesrv("put it again", 100, {"namespace": "DialogueNs", "key": "k", "value": "w"}),
    namesrv("get the new value", 101, {"namespace": "DialogueNs", "key": "k"}),
    namesrv("an unknown key", 101, {"namespace": "DialogueNs", "key": "other"}),
    namesrv("list a namespace", 219, {"namespace": "DialogueNs"}),
    namesrv("list an unknown namespace", 219, {"namespace": "DialogueNone"}),
    namesrv("delete the key", 102, {"namespace": "DialogueNs", "key": "k"}),
    namesrv("the key is gone", 101, {"namespace": "DialogueNs", "key": "k"}),
    namesrv("list the emptied namespace", 219, {"namespace": "DialogueNs"}),
    namesrv("delete an unknown key", 102, {"namespace": "DialogueNs", "key": "other"}),
    namesrv("delete in an unknown namespace", 102, {"namespace": "DialogueNone", "key": "k"}),
    namesrv("put without a key", 100, {"namespace": "DialogueNs", "value": "v"}),
    namesrv("put without a namespace", 100, {"key": "k", "value": "v"}),
]

REGISTRATION: list[Step] = [
    namesrv(
        "a wrong CRC is refused",
        103,
        {**BROKER, "bodyCrc32": 12345},
        bodyJson=registration(topic_config("DialogueA"), topic_config("DialogueB")),
    ),
    namesrv(
        "register a master",
        103,
        BROKER,
        bodyJson=registration(
            topic_config("DialogueA"), topic_config("DialogueB"), topic_config("DialogueUnit", 3)
        ),
    ),
    namesrv("its route", 105, {"topic": "DialogueA"}),
    namesrv(
        "its route in strict JSON", 105, {"topic": "DialogueA", "acceptStandardJsonOnly": "true"}
    ),
    namesrv("an unknown topic has no route", 105, {"topic": "DialogueNone"}),
    namesrv(
        "register a slave",
        103,
        SLAVE,
        connection="slave",
        bodyJson=registration(
            topic_config("DialogueA"), topic_config("DialogueB"), topic_config("DialogueUnit", 3)
        ),
    ),
    namesrv("the route has both", 105, {"topic": "DialogueA"}),
    namesrv("the cluster has both", 106, pick=PICK),
    namesrv("the same data version", 322, NAME, bodyJson=VERSION),
    namesrv("a later data version", 322, NAME, bodyJson=LATER_VERSION),
    namesrv(
        "the data version of an unknown broker",
        322,
        {**NAME, "brokerName": "dialogue-none", "brokerAddr": "10.9.8.9:10911"},
        bodyJson=VERSION,
    ),
    namesrv("all topics", 206, pick=PICK),
    namesrv("topics of a cluster", 224, {"cluster": "DialogueCluster"}),
    namesrv("topics of an unknown cluster", 224, {"cluster": "DialogueNone"}),
    namesrv("system topics", 304, pick=PICK),
    namesrv("unit topics", 311),
    namesrv("topics with unit subscriptions", 312),
    namesrv("topics with unit subscriptions that are not unit", 313),
    namesrv("wipe the write permission", 205, {"brokerName": "dialogue-a"}),
    namesrv("the route is read-only", 105, {"topic": "DialogueA"}),
    namesrv("add the write permission", 327, {"brokerName": "dialogue-a"}),
    namesrv("the route is writable", 105, {"topic": "DialogueA"}),
    namesrv("wipe an unknown broker", 205, {"brokerName": "dialogue-none"}),
    namesrv("add to an unknown broker", 327, {"brokerName": "dialogue-none"}),
    namesrv("delete a topic", 216, {"topic": "DialogueB"}),
    namesrv("its route is gone", 105, {"topic": "DialogueB"}),
    namesrv("delete an unknown topic", 216, {"topic": "DialogueNone"}),
    namesrv("a slave leaves", 104, {**NAME, "brokerAddr": SLAVE["brokerAddr"], "brokerId": 1}),
    namesrv("the master leaves", 104, NAME),
    namesrv("no route is left", 105, {"topic": "DialogueA"}, until={"code": 17}),
    namesrv("no cluster is left", 106, pick=PICK),
    namesrv("leave again", 104, NAME),
]

COMPRESSED_REGISTRATION: list[Step] = [
    namesrv(
        "register with a compressed body",
        103,
        {**BROKER, "brokerName": "dialogue-z", "compressed": "true"},
        bodyHex=compressed_registration("DialogueZ", "DialogueZz"),
    ),
    namesrv("its route", 105, {"topic": "DialogueZ"}),
    namesrv("leave", 104, {**NAME, "brokerName": "dialogue-z"}),
    namesrv("no route is left", 105, {"topic": "DialogueZ"}, until={"code": 17}),
    namesrv(
        "a first registration of one topic",
        103,
        {**BROKER, "brokerName": "dialogue-y"},
        bodyJson=registration(topic_config("DialogueY")),
    ),
    namesrv("its route", 105, {"topic": "DialogueY"}),
]

CONFIG: list[Step] = [
    namesrv("the settings", 319, pick=["orderMessageEnable"]),
    namesrv("change a setting", 318, body="orderMessageEnable=false\n"),
    namesrv("change a forbidden setting", 318, body="rocketmqHome=/nowhere\n"),
    namesrv("change nothing", 318),
    namesrv("change a setting that nobody knows", 318, body="orderMesageEnable=true\n"),
    namesrv("it is not among them", 319, pick=["orderMesageEnable", "orderMessageEnable"]),
    namesrv("an unknown request code", 9999),
    namesrv("a route without a topic", 105),
]

HAND_MADE = {
    "brokerName": "dialogue-a",
    "perm": 6,
    "readQueueNums": 2,
    "topicSysFlag": 0,
    "writeQueueNums": 2,
}

MEMBERS: list[Step] = [
    namesrv(
        "a broker appears",
        103,
        BROKER,
        bodyJson=registration(topic_config("DialogueA"), topic_config("DialogueB")),
    ),
    namesrv(
        "its members",
        901,
        {"clusterName": "DialogueCluster", "brokerName": "dialogue-a"},
    ),
    namesrv(
        "a sign of life",
        904,
        {key: BROKER[key] for key in ("clusterName", "brokerAddr", "brokerName", "brokerId")},
    ),
    namesrv(
        "a topic by hand",
        217,
        {"topic": "DialogueHand"},
        bodyJson={"queueDatas": [HAND_MADE]},
    ),
    namesrv("the broker goes", 104, NAME),
]

AREAS: dict[str, list[Step]] = {
    "namesrv-kv": KEY_VALUE,
    "namesrv-registration": REGISTRATION,
    "namesrv-compressed": COMPRESSED_REGISTRATION,
    "namesrv-config": CONFIG,
    "namesrv-members": MEMBERS,
}
