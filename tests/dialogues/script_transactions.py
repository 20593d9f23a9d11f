"""Half messages, their ends, and the question a broker asks when no end comes."""

from typing import Any

from player import Step
from steps import broker, create_topic, properties, pull, send

TOPIC, GROUP = "DialogueTran", "DialogueTranGroup"
KEYS = [f"7F000001000018B4AAC20000000001{number:02}" for number in range(10)]
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
OFFSETS = ["queueOffset", "tranStateTableOffset", "commitLogOffset", "preparedTransactionOffset"]
"""The half queue has what other dialogues left in it."""


def _half(name: str, number: int, **more: Any) -> Step:
    text = properties(UNIQ_KEY=KEYS[number], TAGS="TagA", TRAN_MSG="true", PGROUP=GROUP)
    keep = {f"log{number}": "physical.msgId", f"at{number}": "ext.queueOffset"}
    return send(
        name, TOPIC, sysFlag=4, properties=more.pop("properties", text), producerGroup=GROUP,
        keep=keep, loose=OFFSETS, **more,
    )  # fmt: skip


def _end(name: str, number: int, verdict: int, **more: Any) -> Step:
    fields: dict[str, Any] = {
        "producerGroup": GROUP,
        "tranStateTableOffset": f"$at{number}",
        "commitLogOffset": f"$log{number}",
        "commitOrRollback": verdict,
        "fromTransactionCheck": "false",
        "msgId": KEYS[number],
        "transactionId": KEYS[number],
    }
    fields |= {key: more.pop(key) for key in list(more) if key in fields}
    return broker(name, 37, {k: v for k, v in fields.items() if v is not None}, **more)


BEAT = {
    "clientID": "DialogueTranClient",
    "consumerDataSet": [],
    "producerDataSet": [{"groupName": GROUP}],
}
TRANSACTIONS: list[Step] = [
    create_topic("create a topic", TOPIC, queues=2),
    _half("half a message", 0, queueId=1),
    pull("nothing is seen of it", TOPIC, 0, queueId=1),
    _end("by another group", 0, COMMIT, producerGroup="DialogueOther"),
    _end("by another queue offset", 0, COMMIT, tranStateTableOffset=900_000),
    _end("at another log offset", 0, COMMIT, commitLogOffset=60_000_000),
    _end("neither commit nor rollback", 0, 5),
    _end("commit", 0, COMMIT),
    pull(
        "the committed message",
        TOPIC,
        0,
        queueId=1,
        until={"ext.maxOffset": "1"},
        loose=["preparedTransactionOffset"],
    ),
    _half("half a message to be rolled back", 1),
    _end("rollback", 1, ROLLBACK),
    pull("nothing is seen of that one", TOPIC, 0),
    _half("half a message for one-way ends", 3, queueId=1),
    _end("unknown, one-way", 3, UNKNOWN, oneway=True),
    _end("commit, one-way", 3, COMMIT, oneway=True),
    pull(
        "committed one-way",
        TOPIC,
        1,
        queueId=1,
        until={"code": 0},
        loose=["preparedTransactionOffset", "maxOffset", "queueOffset", "nextBeginOffset"],
    ),
    broker("heartbeat of a producer", 34, bodyJson=BEAT, connection="asked"),
    _half("half a message that nobody ends", 4, connection="asked"),
    {
        "name": "the question",
        "target": "broker",
        "connection": "asked",
        "pushed": 39,
        "loose": OFFSETS,
    },
    broker("resume what is not there", 323, {"msgId": "7F00000100002A9F0000000003938700"}),
    broker("resume without an id", 323),
    broker(
        "check now about what is not there",
        40111,
        {"topic": TOPIC, "msgId": "7F00000100002A9F0000000003938700"},
        better={"codes": [1], "why": "RocketMQ asks at its interval only"},
    ),
    _half("half a message to be ended without an id", 5),
    _end("without a message id", 5, COMMIT, msgId=None),
    _end(
        "commit again",
        0,
        COMMIT,
        better={"codes": [1], "why": "RocketMQ stores the message a second time"},
    ),
    _end(
        "commit after the rollback",
        1,
        COMMIT,
        better={"codes": [1], "why": "RocketMQ delivers what was rolled back"},
    ),
]

AREAS: dict[str, list[Step]] = {"broker-transactions": TRANSACTIONS}
