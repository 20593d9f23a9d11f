"""What operators' tools ask a broker: progress, queue entries, cleaning, and what we refuse."""

from typing import Any

from player import Step
from steps import broker, consumer_heartbeat, create_topic, properties, send

T, G, COPY, ALONE = (
    "DialogueTools",
    "DialogueToolsReaders",
    "DialogueToolsCopy",
    "DialogueToolsAlone",
)
TAGGED = properties(TAGS="TagA", WAIT="true")
COUNTS = {"loose": ["totalDiff"], "without": ["totalInflightDiff", "pullOffset"]}
"""Totals count the groups of every dialogue before; RocketMQ takes every pull offset here for 0."""


def _commit(name: str, group: str, queue_id: int, offset: int) -> Step:
    place = {"consumerGroup": group, "topic": T, "queueId": queue_id, "commitOffset": offset}
    return broker(name, 15, place)


def _progress(name: str, group: str, queue_id: int = 0) -> Step:
    return broker(name, 14, {"consumerGroup": group, "topic": T, "queueId": queue_id})


def _stats(name: str, order: str, **more: Any) -> Step:
    return broker(name, 317, {"isOrder": order}, pick=[G], **COUNTS, **more)


def _entries(name: str, index: int, count: int, **more: Any) -> Step:
    place = {"topic": T, "queueId": 0, "index": index, "count": count, **more}
    return broker(name, 321, place, loose=["eval"])


PROGRESS: list[Step] = [
    create_topic("create a topic", T, queues=2),
    *(broker(f"create group {name}", 200, bodyJson={"groupName": name}) for name in (G, COPY)),
    broker("entries of a queue without a message", 321, {"topic": T, "queueId": 1, "index": 0}),
    send("send", T, properties=TAGGED),
    send("send a second", T),
    send("send a third", T, properties=TAGGED),
    broker("they are in their queue", 30, {"topic": T, "queueId": 0}, until={"ext.offset": "3"}),
    _commit("one was consumed", G, 0, 1),
    _stats("progress of all groups", "false"),
    _stats("progress of groups in order", "true"),
    broker(
        "without the flag",
        317,
        pick=[G],
        **COUNTS,
    ),
    _entries("entries", 0, 10),
    _entries("some entries", 1, 1),
    _entries("entries behind the end", 7, 1),
    _entries("entries before the beginning", -1, 2),
    _entries("no entries", 0, 0),
    _entries("entries for a group that is not online", 0, 10, consumerGroup=G),
    _entries("entries of a topic that nobody knows", 0, 1, topic="DialogueNoTopic"),
    _entries("entries of a queue that the topic has not", 0, 1, queueId=7),
    broker("time spans", 303, {"topic": T, "group": G}),
    broker("time spans of a group without progress", 303, {"topic": T, "group": ALONE}),
    broker("time spans of an unknown topic", 303, {"topic": "DialogueNoTopic", "group": G}),
    broker("topics of a group", 343, {"group": G}),
    broker("topics of a group without progress", 343, {"group": ALONE}),
    broker("subscription of a group that is not online", 345, {"group": G, "topic": T}),
    broker("may a group read", 353, {"group": G, "topic": T}),
    broker(
        "a consumer appears",
        34,
        connection="consumer",
        bodyJson=consumer_heartbeat("127.0.0.1@tools", G, T),
    ),
    broker("its subscription", 345, {"group": G, "topic": T}),
    broker("its subscription of another topic", 345, {"group": G, "topic": "DialogueNoTopic"}),
    _entries("entries for a group", 0, 10, consumerGroup=G),
    _stats("progress while it is online", "false"),
    broker(
        "the consumer goes",
        35,
        {"clientID": "127.0.0.1@tools", "consumerGroup": G},
        connection="consumer",
    ),
    _commit("another group is further", COPY, 0, 2),
    broker(
        "offsets for the slower one", 308, {"topic": T, "compareGroup": G, "filterGroups": ALONE}
    ),
    broker("offsets for the faster one", 308, {"topic": T, "compareGroup": COPY}),
    broker("offsets for a group without progress", 308, {"topic": T, "compareGroup": ALONE}),
    broker(
        "copy progress", 314, {"srcGroup": G, "destGroup": ALONE, "topic": T, "offline": "true"}
    ),
    _progress("it is copied", ALONE),
    broker(
        "copy progress in an unknown topic",
        314,
        {"srcGroup": G, "destGroup": ALONE, "topic": "DialogueNoTopic", "offline": "true"},
    ),
    broker("copy without a source", 314, {"destGroup": ALONE, "topic": T}),
]

CLEANING: list[Step] = [
    broker("clean expired queues", 306),
    broker("clean topics without settings", 316),
    broker("delete expired log files", 329),
]

COPIES: list[Step] = [
    broker(
        "the smallest id of a broker name",
        905,
        {"minBrokerId": 0, "brokerName": "broker-a"},
        better={"codes": [3], "why": "no slave acts as a master here"},
    ),
    broker("where is the HA port", 906, loose=["masterFlushOffset", "masterHaAddress"]),
    broker(
        "how far a master has flushed",
        908,
        {"masterFlushOffset": 0},
        better={"codes": [3], "why": "slaves compare logs"},
    ),
    broker("epochs of a broker without a controller", 1007),
    broker(
        "a controller names a master",
        1008,
        {"masterBrokerId": 0, "masterEpoch": 1},
        bodyJson={"syncStateSet": [0], "syncStateSetEpoch": 1},
        better={"codes": [3], "why": "no controller decides who is the master here"},
    ),
]


def _refused(name: str, code: int, ext: dict[str, Any] | None = None, **more: Any) -> Step:
    """We say why we do not answer; RocketMQ has what is asked for."""
    why = "we have nothing that the request could be about"
    return broker(name, code, ext, better={"codes": [3], "why": why}, **more)


ACCESS = {"accessKey": "dialogue", "secretKey": "12345678", "admin": "false"}
REFUSED: list[Step] = [
    _refused("change an access key", 50, ACCESS),
    _refused("delete an access key", 51, {"accessKey": "dialogue"}),
    _refused("version of the access files", 52),
    _refused("change the white list", 53, {"globalWhiteAddrs": "10.0.0.1"}),
    _refused("the access files", 54),
    _refused("progress of RocksDB", 354, {"topic": T, "checkStoreTime": 0}),
    _refused("export RocksDB", 355, {"configType": "topics;"}),
    _refused(
        "create a static topic",
        513,
        {
            "topic": "DialogueStatic",
            "defaultTopic": "TBW102",
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "order": "false",
        },
        bodyJson={"topic": "DialogueStatic", "bname": "$brokerName", "totalQueues": 1, "epoch": 1},
    ),
    _refused("add a broker to a container", 902),
    _refused("limit cold reads", 2001, body=f"{G}=1000\n"),
    _refused("do not limit cold reads", 2002, body=G),
    _refused("limits of cold reads", 2003),
    _refused("read ahead", 2004, {"readAheadMode": 1}),
    _refused("create a user", 3001, {"username": "dialogue"}, bodyJson={"password": "12345678"}),
    _refused("get a user", 3004, {"username": "dialogue"}),
    _refused("list users", 3005, {"filter": ""}),
    _refused("list rights", 3010, {"subjectFilter": "", "resourceFilter": ""}),
    _refused("elect a master", 1002, {"brokerName": "broker-a"}),
    _refused("state of a controller", 1005),
]

DUMPS: list[Step] = [
    broker("every figure", 28, names=True),
    broker("every setting", 26, names=True),
]

AREAS = {
    "tools-progress": PROGRESS,
    "tools-cleaning": CLEANING,
    "tools-copies": COPIES,
    "tools-refused": REFUSED,
    "tools-dumps": DUMPS,
}
