"""What clients and tools say to a broker about themselves, topics, groups and settings."""

from typing import Any

from player import Step
from steps import broker, consumer_heartbeat, create_topic, properties, queue, send

PICK = ["DialogueTopic", "TBW102", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "SCHEDULE_TOPIC_XXXX"]

TOPICS: list[Step] = [
    create_topic("create a topic", "DialogueTopic", queues=2),
    create_topic("create it again", "DialogueTopic", queues=3, perm=4, order="true"),
    broker("its settings", 351, {"topic": "DialogueTopic"}),
    broker("settings of an unknown topic", 351, {"topic": "DialogueNone"}),
    broker("the settings of all topics", 21, pick=PICK),
    broker("the system topics", 305, pick=PICK),
    create_topic("create a topic with a bad name", "Dialogue Topic!"),
    create_topic("create a system topic", "SCHEDULE_TOPIC_XXXX"),
    create_topic("create a topic with no name", ""),
    broker("state of the topic", 202, {"topic": "DialogueTopic"}),
    broker("state of an unknown topic", 202, {"topic": "DialogueNone"}),
    broker("who consumes the topic", 300, {"topic": "DialogueTopic"}),
    broker("who consumes an unknown topic", 300, {"topic": "DialogueNone"}),
    broker("delete the topic", 215, {"topic": "DialogueTopic"}),
    broker("it is gone", 202, {"topic": "DialogueTopic"}),
    broker("delete it again", 215, {"topic": "DialogueTopic"}),
    broker("delete a system topic", 215, {"topic": "SCHEDULE_TOPIC_XXXX"}),
    broker("delete a topic with no name", 215, {"topic": ""}),
]


def _group(name: str, **more: Any) -> dict[str, Any]:
    return {
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "groupName": name,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": 3,
        "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
        **more,
    }


GROUPS: list[Step] = [
    broker("create a group", 200, bodyJson=_group("DialogueGroup")),
    broker("change it", 200, bodyJson=_group("DialogueGroup", retryMaxTimes=5)),
    broker("its settings", 352, {"group": "DialogueGroup"}),
    broker(
        "settings of an unknown group",
        352,
        {"group": "DialogueNoGroup"},
        better={"codes": [26], "why": "asking for a group need not make it"},
    ),
    broker("the settings of all groups", 201, pick=["DialogueGroup", "TOOLS_CONSUMER"]),
    broker(
        "create a group with a bad name",
        200,
        bodyJson=_group("Dialogue Group!"),
        better={"codes": [1, 29], "why": "later releases refuse it, and so do clients"},
    ),
    broker("delete the group", 207, {"groupName": "DialogueGroup", "removeOffset": "true"}),
    broker("it is gone", 201, pick=["DialogueGroup"]),
    broker("delete it again", 207, {"groupName": "DialogueGroup"}),
]

ONE, TWO = "127.0.0.1@one", "127.0.0.1@two"
G = "DialogueMembers"
CLIENTS: list[Step] = [
    create_topic("create a topic", "DialogueClients"),
    broker("members of an unknown group", 38, {"consumerGroup": "DialogueNoGroup"}),
    broker("connections of an unknown group", 203, {"consumerGroup": "DialogueNoGroup"}),
    broker(
        "connections of an unknown producer group",
        204,
        {"producerGroup": "DialogueNoGroup"},
    ),
    broker(
        "a consumer appears",
        34,
        connection="one",
        bodyJson=consumer_heartbeat(ONE, G, "DialogueClients"),
    ),
    {"name": "it is told of itself", "target": "broker", "connection": "one", "pushed": 40},
    broker(
        "it appears again",
        34,
        connection="one",
        bodyJson=consumer_heartbeat(ONE, G, "DialogueClients"),
    ),
    broker(
        "a second consumer appears",
        34,
        connection="two",
        bodyJson=consumer_heartbeat(TWO, G, "DialogueClients"),
    ),
    {"name": "the first is told", "target": "broker", "connection": "one", "pushed": 40},
    {"name": "the second is told", "target": "broker", "connection": "two", "pushed": 40},
    broker("the members", 38, {"consumerGroup": G}),
    broker("the connections", 203, {"consumerGroup": G}),
    broker("who consumes the topic", 300, {"topic": "DialogueClients"}),
    broker("the retry topic was made", 351, {"topic": f"%RETRY%{G}"}),
    broker("the inner producers", 204, {"producerGroup": "CLIENT_INNER_PRODUCER"}),
    send("send", "DialogueClients"),
    broker(
        "it is in its queue",
        30,
        {"topic": "DialogueClients", "queueId": 0},
        until={"ext.offset": "1"},
    ),
    broker(
        "commit",
        15,
        {"consumerGroup": G, "topic": "DialogueClients", "queueId": 0, "commitOffset": 0},
    ),
    broker("what is left to consume", 208, {"consumerGroup": G, "topic": "DialogueClients"}),
    broker("what is left in all topics", 208, {"consumerGroup": G}),
    broker("what is left in an unknown topic", 208, {"consumerGroup": G, "topic": "DialogueNone"}),
    broker("what is left for an unknown group", 208, {"consumerGroup": "DialogueNoGroup"}),
    broker("the topic", 202, {"topic": "DialogueClients"}),
    broker("the second goes", 35, {"clientID": TWO, "consumerGroup": G}, connection="two"),
    {"name": "the first is told of it", "target": "broker", "connection": "one", "pushed": 40},
    broker("one member is left", 38, {"consumerGroup": G}),
    broker("an unknown client goes", 35, {"clientID": "nobody", "consumerGroup": G}),
    broker("the first goes", 35, {"clientID": ONE, "consumerGroup": G}, connection="one"),
    broker("no member is left", 38, {"consumerGroup": G}),
    broker("no connection is left", 203, {"consumerGroup": G}),
    broker(
        "a producer appears",
        34,
        connection="producer",
        bodyJson={"clientID": ONE, "producerDataSet": [{"groupName": "DialogueMakers"}]},
    ),
    broker("its connection", 204, {"producerGroup": "DialogueMakers"}),
    broker(
        "it goes", 35, {"clientID": ONE, "producerGroup": "DialogueMakers"}, connection="producer"
    ),
    broker("its connection is gone", 204, {"producerGroup": "DialogueMakers"}),
]


def _lock(name: str, code: int, client: str, *ids: int) -> Step:
    body = {
        "clientId": client,
        "consumerGroup": "DialogueLockGroup",
        "mqSet": [queue("DialogueLock", number) for number in ids],
    }
    return broker(name, code, bodyJson=body)


LOCKS: list[Step] = [
    create_topic("create a topic", "DialogueLock", queues=2),
    _lock("lock both queues", 41, ONE, 0, 1),
    _lock("lock them again", 41, ONE, 0, 1),
    _lock("another may not", 41, TWO, 0, 1),
    _lock("another may not unlock", 42, TWO, 0),
    _lock("so it still may not lock", 41, TWO, 0),
    _lock("unlock one", 42, ONE, 0),
    _lock("now another may", 41, TWO, 0, 1),
    _lock("lock nothing", 41, ONE),
]

# What mqadmin's clusterList reads, and what the console shows beside it.
RUNTIME = [
    "brokerVersion",
    "brokerVersionDesc",
    "bootTimestamp",
    "commitLogDiskRatio",
    "commitLogMaxOffset",
    "commitLogMinOffset",
    "consumeQueueDiskRatio",
    "dispatchBehindBytes",
    "earliestMessageTimeStamp",
    "getTotalTps",
    "getTransferedTps",
    "getTransferredTps",
    "msgGetTotalTodayMorning",
    "msgGetTotalTodayNow",
    "msgGetTotalYesterdayMorning",
    "msgPutTotalTodayMorning",
    "msgPutTotalTodayNow",
    "msgPutTotalYesterdayMorning",
    "pageCacheLockTimeMills",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "pullThreadPoolQueueSize",
    "putMessageAverageSize",
    "putMessageTimesTotal",
    "putTps",
    "remainHowManyDataToFlush",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "sendThreadPoolQueueSize",
]

CONFIG: list[Step] = [
    broker(
        "the settings",
        26,
        pick=[
            "brokerName",
            "brokerClusterName",
            "brokerId",
            "brokerPermission",
            "fileReservedTime",
        ],
    ),
    broker("change a setting", 25, body="fileReservedTime=48\n"),
    broker("the new setting", 26, pick=["fileReservedTime"]),
    broker("change a forbidden setting", 25, body="rocketmqHome=/nowhere\n"),
    broker("change nothing", 25),
    broker("change a setting that nobody knows", 25, body="fileReservedTiem=1\n"),
    broker("it is not among the settings", 26, pick=["fileReservedTiem", "fileReservedTime"]),
    broker(
        "change a setting to what it cannot be",
        25,
        body="fileReservedTime=soon\n",
        better={"codes": [1], "why": "RocketMQ says success and changes nothing"},
    ),
    broker("it is as it was", 26, pick=["fileReservedTime"]),
    create_topic("create a topic", "DialogueChanged"),
    broker("refuse half messages", 25, body="rejectTransactionMessage=true\n"),
    send(
        "half a message, refused at once",
        "DialogueChanged",
        sysFlag=4,
        properties=properties(TRAN_MSG="true", PGROUP="DialogueProducer"),
    ),
    broker("take half messages again", 25, body="rejectTransactionMessage=false\n"),
    broker("what it is doing", 28, pick=RUNTIME, shape=True),
    broker("an unknown request code", 9999),
]

CHECKS: list[Step] = [
    broker(
        "would these tags work",
        46,
        bodyJson={
            "clientId": ONE,
            "group": G,
            "subscriptionData": {
                "codeSet": [2598919],
                "expressionType": "TAG",
                "subString": "TagA",
                "subVersion": 1,
                "tagsSet": ["TagA"],
                "topic": "DialogueClients",
            },
        },
    ),
    broker("would nothing work", 46, bodyJson={"clientId": ONE, "group": G}),
]

AREAS: dict[str, list[Step]] = {
    "broker-topics": TOPICS,
    "broker-groups": GROUPS,
    "broker-clients": CLIENTS,
    "broker-locks": LOCKS,
    "broker-config": CONFIG,
    "broker-checks": CHECKS,
}
