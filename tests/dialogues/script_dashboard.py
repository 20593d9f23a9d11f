"""What RocketMQ's dashboard and its Prometheus exporter ask, in the order of their pages."""

from typing import Any

from player import Step
from steps import broker, consumer_heartbeat, create_topic, namesrv, properties, pull, send

T, FIFO, G = "DialogueBoard", "DialogueBoardFifo", "DialogueBoardReaders"
RETRY = f"%RETRY%{G}"
CLIENT = "127.0.0.1@board"
KEYED = properties(UNIQ_KEY="7F000001000018B4AAC2000000000042", KEYS="board", WAIT="true")
TYPED = {
    "defaultTopic": "TBW102",
    "readQueueNums": 1,
    "writeQueueNums": 1,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "order": "false",
}


def _typed(topic: str, kind: str) -> Step:
    """A topic as the dashboard creates it: with the type of its messages."""
    fields = {**TYPED, "topic": topic, "attributes": f"+message.type={kind}"}
    return broker(f"create {topic}", 17, fields)


def _about(name: str, code: int, **more: Any) -> Step:
    return broker(name, code, {"topic": T}, **more)


TOPIC_PAGES: list[Step] = [
    namesrv("clusters", 106, pick=["<brokerName>", "<cluster>"]),
    _typed(T, "NORMAL"),
    _typed(FIFO, "FIFO"),
    create_topic("a topic without a type", f"{T}Plain"),
    namesrv("topics", 206, pick=[T, FIFO]),
    namesrv("system topics", 304, loose=["topicList"]),
    broker(
        "types of topics",
        21,
        pick=[T, FIFO, f"{T}Plain"],
        loose=["topicQueueMappingDetailMap", "topicQueueMappingInfoMap"],
    ),
    _about("settings of a topic", 351),
    namesrv("route of a topic", 105, {"topic": T}),
    send("send", T, properties=KEYED),
    broker("it is in its queue", 30, {"topic": T, "queueId": 0}, until={"ext.offset": "1"}),
    _about("state of a topic", 202, loose=["topicPutTps"]),
    _about("groups of a topic without one", 300, loose=["groupList"]),
    broker(
        "message by key",
        12,
        {
            "topic": T,
            "key": "board",
            "maxNum": 64,
            "beginTimestamp": 0,
            "endTimestamp": "$now",
            "_UNIQUE_KEY_QUERY": "false",
        },
    ),
]

GROUP_PAGES: list[Step] = [
    broker("create a group", 200, bodyJson={"groupName": G}),
    broker(
        "a consumer appears", 34, connection="consumer", bodyJson=consumer_heartbeat(CLIENT, G, T)
    ),
    broker("groups", 201, pick=[G]),
    broker("settings of a group", 352, {"group": G}),
    broker("members", 203, {"consumerGroup": G}),
    pull("the consumer pulls", T, 0, consumerGroup=G),
    broker("and commits", 15, {"consumerGroup": G, "topic": T, "queueId": 0, "commitOffset": 1}),
    broker("progress of a group", 208, {"consumerGroup": G}),
    broker("progress in a topic", 208, {"consumerGroup": G, "topic": T}),
    _about("groups of a topic", 300, pick=[G]),
    broker("time spans", 303, {"topic": T, "group": G}),
    broker("producers of a group that nobody knows", 204, {"producerGroup": "DialogueNobody"}),
    broker(
        "messages put into the broker",
        315,
        {"statsName": "BROKER_PUT_NUMS", "statsKey": "$cluster"},
        loose=["avgpt", "sum", "tps"],
    ),
    broker(
        "messages of a topic",
        315,
        {"statsName": "TOPIC_PUT_NUMS", "statsKey": T},
        loose=["avgpt", "sum", "tps"],
    ),
    broker(
        "messages of a group",
        315,
        {"statsName": "GROUP_GET_NUMS", "statsKey": f"{T}@{G}"},
        loose=["avgpt", "sum", "tps"],
    ),
    broker(
        "how long a group's reads take",
        315,
        {"statsName": "GROUP_GET_LATENCY", "statsKey": f"0@{T}@{G}"},
        loose=["avgpt", "sum", "tps"],
    ),
    broker(
        "send backs of a group without any",
        315,
        {"statsName": "SNDBCK_PUT_NUMS", "statsKey": f"{T}@{G}"},
    ),
    broker(
        "progress of all groups",
        317,
        {"isOrder": "false"},
        pick=[G],
        loose=["totalDiff"],
        without=["totalInflightDiff", "pullOffset"],
    ),
    broker(
        "the consumer goes", 35, {"clientID": CLIENT, "consumerGroup": G}, connection="consumer"
    ),
    broker("members of a group that is not online", 203, {"consumerGroup": G}),
    broker(
        "delete the group", 207, {"groupName": G, "cleanOffset": "true", "removeOffset": "true"}
    ),
    broker("delete the topic", 215, {"topic": T}),
]

AREAS = {"dashboard-topics": TOPIC_PAGES, "dashboard-groups": GROUP_PAGES}
