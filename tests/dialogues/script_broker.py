"""What producers, consumers and tools say to a broker about messages."""

from typing import Any

from player import Step
from steps import SEND, SEND_BATCH, batch, broker, create_topic, properties, pull, send

KEY_ONE, KEY_TWO = "7F000001000018B4AAC2000000000011", "7F000001000018B4AAC2000000000012"

SENDING: list[Step] = [
    create_topic("create a topic", "DialogueSend", queues=2),
    send("send", "DialogueSend"),
    send("send with long names", "DialogueSend", SEND),
    send("send to the other queue", "DialogueSend", queueId=1),
    send("send without properties", "DialogueSend", properties=""),
    send(
        "send a batch",
        "DialogueSend",
        SEND_BATCH,
        bodyHex=batch(
            [
                ("one", properties(UNIQ_KEY=KEY_ONE, TAGS="TagA")),
                ("two", properties(UNIQ_KEY=KEY_TWO, TAGS="TagA")),
            ]
        ),
        properties="",
    ),
    pull("what lies in the queue", "DialogueSend", 0, until={"ext.maxOffset": "5"}),
    send(
        "send to a queue chosen by the broker", "DialogueAuto", queueId=-1, defaultTopicQueueNums=1
    ),
    send("a topic is made from its template", "DialogueAuto2", defaultTopicQueueNums=3),
    broker("the topic that was made", 351, {"topic": "DialogueAuto2"}),
    send("no such topic, no such template", "DialogueNone", defaultTopic="DialogueNoTemplate"),
    send("no such queue", "DialogueSend", queueId=99),
    send("a name that is no topic", "Dialogue Send!"),
    send("a system topic", "SCHEDULE_TOPIC_XXXX"),
    send("a body that is too large", "DialogueSend", bodyBytes=4 * 1024 * 1024 + 1),
    send("properties that are too long", "DialogueSend", properties=properties(big="x" * 33000)),
    send(
        "no body",
        "DialogueSend",
        body="",
        better={"codes": [0], "why": "one release stores it, the other fails by accident"},
    ),
    create_topic("a topic for readers only", "DialogueReadOnly", perm=4),
    send("a topic without write permission", "DialogueReadOnly"),
    send(
        "a delayed message",
        "DialogueSend",
        properties=properties(UNIQ_KEY=KEY_ONE, DELAY="1", WAIT="true"),
    ),
    send(
        "half of a transaction",
        "DialogueSend",
        sysFlag=4,
        properties=properties(UNIQ_KEY=KEY_TWO, TRAN_MSG="true", PGROUP="DialogueProducer"),
    ),
]

PULLING: list[Step] = [
    create_topic("create a topic", "DialoguePull", queues=2),
    pull("an empty queue", "DialoguePull", 0),
    pull("an empty queue at a wrong offset", "DialoguePull", 7),
    send(
        "send one", "DialoguePull", properties=properties(UNIQ_KEY=KEY_ONE, TAGS="TagA", KEYS="k1")
    ),
    send(
        "send two", "DialoguePull", properties=properties(UNIQ_KEY=KEY_TWO, TAGS="TagB", KEYS="k2")
    ),
    pull("both messages", "DialoguePull", 0, until={"ext.maxOffset": "2"}),
    pull("one at most", "DialoguePull", 0, maxMsgNums=1),
    pull("from the middle", "DialoguePull", 1),
    pull("at the end", "DialoguePull", 2),
    pull("beyond the end", "DialoguePull", 3),
    pull("far beyond the end", "DialoguePull", 1000),
    pull("by tag", "DialoguePull", 0, subscription="TagB"),
    pull("by one of two tags", "DialoguePull", 0, subscription="TagA || TagC"),
    pull("by a tag that no message has", "DialoguePull", 0, subscription="TagC"),
    pull("by SQL", "DialoguePull", 0, subscription="TAGS = 'TagA'", expressionType="SQL92"),
    pull(
        "by broken SQL",
        "DialoguePull",
        0,
        subscription="TAGS ==",
        expressionType="SQL92",
        better={"codes": [23], "why": "a filter that cannot be read must not let all pass"},
    ),
    pull("an unknown topic", "DialogueNone", 0),
    pull("an unknown queue", "DialoguePull", 0, queueId=99),
    pull("without a subscription", "DialoguePull", 0, sysFlag=0, subscription=""),
    pull("lite", "DialoguePull", 0, code=361, sysFlag=20),
    pull("with a commit", "DialoguePull", 1, sysFlag=5, commitOffset=1),
    broker(
        "the commit is kept",
        14,
        {"consumerGroup": "DialogueConsumer", "topic": "DialoguePull", "queueId": 0},
    ),
    create_topic("a topic for writers only", "DialogueWriteOnly", perm=2),
    pull("a topic without read permission", "DialogueWriteOnly", 0),
    pull("a group that did not exist", "DialoguePull", 0, consumerGroup="DialogueNewGroup"),
    pull("wait at the end", "DialoguePull", 2, sysFlag=6, hold=True),
    send("send three", "DialoguePull", connection="other", body="woken"),
    {"name": "woken by the message", "target": "broker", "finishes": "wait at the end"},
    pull("wait in vain", "DialoguePull", 3, sysFlag=6, suspendTimeoutMillis=1000, hold=True),
    {"name": "the end of the wait", "target": "broker", "finishes": "wait in vain"},
]


def _offset(
    name: str, code: int, queue_id: int = 0, topic: str = "DialogueOffset", **more: object
) -> Step:
    until = more.pop("until", None)
    ext = {"topic": topic, "queueId": queue_id, **more}
    return broker(name, code, ext, until=until) if until else broker(name, code, ext)


GROUP: dict[str, Any] = {"consumerGroup": "DialogueOffsetGroup"}
OFFSETS: list[Step] = [
    create_topic("create a topic", "DialogueOffset", queues=2),
    _offset("commit for an unknown group", 15, consumerGroup="DialogueNoGroup", commitOffset=0),
    broker("create a group", 200, bodyJson={"groupName": "DialogueOffsetGroup"}),
    _offset("the end of an empty queue", 30),
    _offset("the start of an empty queue", 31),
    _offset("the first time in an empty queue", 32),
    _offset("an offset by time in an empty queue", 29, timestamp="$now"),
    _offset("progress in an empty queue", 14, **GROUP),
    send("send", "DialogueOffset"),
    send("send again", "DialogueOffset"),
    _offset("the end", 30, until={"ext.offset": "2"}),
    _offset("the start", 31),
    _offset("the first time", 32),
    _offset("an offset by time before all", 29, timestamp=0),
    _offset("an offset by the time of the start", 29, timestamp="$now"),
    _offset("an offset by time after all", 29, timestamp=4102444800000),
    _offset(
        "an offset by time after all, lower", 29, timestamp=4102444800000, boundaryType="LOWER"
    ),
    _offset(
        "an offset by time after all, upper", 29, timestamp=4102444800000, boundaryType="UPPER"
    ),
    _offset("the end in an unknown topic", 30, topic="DialogueNone"),
    _offset("the start in an unknown topic", 31, topic="DialogueNone"),
    _offset("the first time in an unknown topic", 32, topic="DialogueNone"),
    _offset("an offset by time in an unknown topic", 29, topic="DialogueNone", timestamp=0),
    _offset("the end of an unknown queue", 30, 99),
    _offset("progress of a new group", 14, **GROUP),
    _offset("progress of a new group, not zero", 14, **GROUP, setZeroIfNotFound="false"),
    _offset("commit", 15, **GROUP, commitOffset=1),
    _offset("progress", 14, **GROUP),
    _offset("commit backwards", 15, **GROUP, commitOffset=0),
    _offset("progress went back", 14, **GROUP),
    broker(
        "commit one-way",
        15,
        {**GROUP, "topic": "DialogueOffset", "queueId": 0, "commitOffset": 2},
        oneway=True,
    ),
    _offset("progress after it", 14, **GROUP, until={"ext.offset": "2"}),
    _offset("commit in an unknown topic", 15, topic="DialogueNone", **GROUP, commitOffset=1),
    _offset("progress in an unknown topic", 14, topic="DialogueNone", **GROUP),
    _offset("progress in an unknown queue", 14, 99, **GROUP),
]


def _query(
    name: str, key: str, unique: bool = False, topic: str = "DialogueFind", **more: object
) -> Step:
    ext = {
        "topic": topic,
        "key": key,
        "maxNum": 32,
        "beginTimestamp": 0,
        "endTimestamp": 9223372036854775807,
        "_UNIQUE_KEY_QUERY": "true" if unique else "false",
    }
    return broker(name, 12, ext, **more)


FINDING: list[Step] = [
    create_topic("create a topic", "DialogueFind"),
    send(
        "send",
        "DialogueFind",
        properties=properties(UNIQ_KEY=KEY_ONE, KEYS="k1 k2", TAGS="TagA"),
        keep={"first": "physical.msgId"},
    ),
    send(
        "send again", "DialogueFind", properties=properties(UNIQ_KEY=KEY_TWO, KEYS="k2"), body="bye"
    ),
    broker("by offset", 33, {"offset": "$first"}),
    broker("by an offset inside a message", 33, {"offset": "${first}1"}),
    broker("by an offset that is not there", 33, {"offset": 60_000_000}),
    _query("by a key of one message", "k1", until={"code": 0}),
    _query("by a key of two messages", "k2", until={"code": 0}),
    _query("by a unique key", KEY_TWO, unique=True, until={"code": 0}),
    _query("by a key that no message has", "k3"),
    _query("by a unique key that no message has", "7F00000100001", unique=True),
    _query("in an unknown topic", "k1", topic="DialogueNone"),
]

RETRY: list[Step] = [
    create_topic("create a topic", "DialogueRetry"),
    send(
        "send",
        "DialogueRetry",
        properties=properties(UNIQ_KEY=KEY_ONE, TAGS="TagA", KEYS="k1"),
        keep={"sent": "physical.msgId"},
    ),
    broker(
        "send back",
        36,
        {
            "offset": "$sent",
            "group": "DialogueRetryGroup",
            "delayLevel": 1,
            "originMsgId": KEY_ONE,
            "originTopic": "DialogueRetry",
            "unitMode": "false",
            "maxReconsumeTimes": 16,
        },
    ),
    pull(
        "the retry topic",
        "%RETRY%DialogueRetryGroup",
        0,
        consumerGroup="DialogueRetryGroup",
        until={"code": 0},
    ),
    broker(
        "send back what is not there",
        36,
        {"offset": 60_000_000, "group": "DialogueRetryGroup", "delayLevel": 1},
    ),
    broker(
        "give up",
        36,
        {
            "offset": "$sent",
            "group": "DialogueRetryGroup",
            "delayLevel": -1,
            "originMsgId": KEY_ONE,
            "originTopic": "DialogueRetry",
            "unitMode": "false",
            "maxReconsumeTimes": 16,
        },
    ),
    pull("the dead letter", "%DLQ%DialogueRetryGroup", 0, until={"code": 0}),
    broker("the topic of dead letters", 351, {"topic": "%DLQ%DialogueRetryGroup"}),
    broker("the retry topic's settings", 351, {"topic": "%RETRY%DialogueRetryGroup"}),
]

AREAS: dict[str, list[Step]] = {
    "broker-sending": SENDING,
    "broker-pulling": PULLING,
    "broker-offsets": OFFSETS,
    "broker-finding": FINDING,
    "broker-retry": RETRY,
}
