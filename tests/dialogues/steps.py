"""The vocabulary in which the dialogues are written."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from player import Step

SEND, SEND_LETTERS, SEND_BATCH = 10, 310, 320
LETTERS = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
}


def step(
    target: str,
    name: str,
    code: int,
    ext: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Step:
    """One request; what begins with `body` belongs to the request, the rest to the step."""
    request: dict[str, Any] = {"code": code}
    if ext:
        request["ext"] = {key: str(value) for key, value in ext.items()}
    request |= {key: rest.pop(key) for key in list(rest) if key.startswith("body")}
    return {"name": name, "target": target, **rest, "request": request}


def namesrv(name: str, code: int, ext: Mapping[str, Any] | None = None, **rest: Any) -> Step:
    return step("namesrv", name, code, ext, **rest)


def broker(name: str, code: int, ext: Mapping[str, Any] | None = None, **rest: Any) -> Step:
    return step("broker", name, code, ext, **rest)


def properties(**values: str) -> str:
    """The text form of message properties."""
    return "\x02".join(f"{name}\x01{value}" for name, value in values.items())


def send(name: str, topic: str, code: int = SEND_LETTERS, **more: Any) -> Step:
    """A send as a Java client makes it; keywords that are header fields replace its values."""
    fields: dict[str, Any] = {
        "producerGroup": "DialogueProducer",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": "$now",
        "flag": 0,
        "properties": properties(UNIQ_KEY="7F000001000018B4AAC2000000000001", WAIT="true"),
        "reconsumeTimes": 0,
        "unitMode": "false",
        "batch": "true" if code == SEND_BATCH else "false",
    }
    fields |= {key: more.pop(key) for key in list(more) if key in LETTERS}
    if code != SEND:
        fields = {LETTERS[key]: value for key, value in fields.items()}
    more.setdefault("body", "hello")
    if more.keys() & {"bodyHex", "bodyBytes"}:
        del more["body"]
    return broker(name, code, fields, **more)


def batch(messages: Sequence[tuple[str, str]]) -> str:
    """The body of a batch, in hexadecimal: pairs of a body and its properties."""
    parts = []
    for body, text in messages:
        content, more = body.encode(), text.encode()
        size = 22 + len(content) + len(more)
        parts.append(struct.pack(">iiiii", size, 0, 0, 0, len(content)) + content)
        parts.append(struct.pack(">h", len(more)) + more)
    return b"".join(parts).hex()


def create_topic(name: str, topic: str, queues: int = 1, **more: Any) -> Step:
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": "false",
    }
    fields |= {key: more.pop(key) for key in list(more) if key in fields}
    return broker(name, 17, fields, **more)


def pull(name: str, topic: str, offset: int, code: int = 11, **more: Any) -> Step:
    """A pull that brings its own subscription and does not wait."""
    fields: dict[str, Any] = {
        "consumerGroup": "DialogueConsumer",
        "topic": topic,
        "queueId": 0,
        "queueOffset": offset,
        "maxMsgNums": 32,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 15000,
        "subscription": "*",
        "subVersion": 0,
        "expressionType": "TAG",
    }
    fields |= {key: more.pop(key) for key in list(more) if key in fields}
    return broker(name, code, fields, **more)


def queue(topic: str, queue_id: int = 0) -> dict[str, Any]:
    """A message queue inside a JSON body."""
    return {"brokerName": "$brokerName", "queueId": queue_id, "topic": topic}


def consumer_heartbeat(client: str, group: str, topic: str, version: int = 1) -> dict[str, Any]:
    """The body of a push consumer's heartbeat."""
    return {
        "clientID": client,
        "consumerDataSet": [
            {
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "consumeType": "CONSUME_PASSIVELY",
                "groupName": group,
                "messageModel": "CLUSTERING",
                "subscriptionDataSet": [
                    {
                        "classFilterMode": False,
                        "codeSet": [2598919],
                        "expressionType": "TAG",
                        "subString": "TagA",
                        "subVersion": version,
                        "tagsSet": ["TagA"],
                        "topic": topic,
                    }
                ],
                "unitMode": False,
            }
        ],
        "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
    }
