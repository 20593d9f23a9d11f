"""What is said when a message is answered: a reply is passed on to the client that asked."""

from typing import Any

from player import Step
from steps import LETTERS, broker, properties, pull

REPLY, REPLY_LETTERS, PUSH_REPLY = 324, 325, 326
ASKER = "127.0.0.1@dialogue-asker"
KEY = "7F000001000018B4AAC2000000000031"


def reply(name: str, code: int = REPLY_LETTERS, **more: Any) -> Step:
    """A reply as a Java client sends it; keywords that are header fields replace its values."""
    fields: dict[str, Any] = {
        "producerGroup": "DialogueAnswers",
        "topic": "${cluster}_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": "$now",
        "flag": 0,
        "properties": addressed(ASKER),
        "reconsumeTimes": 0,
        "unitMode": "false",
        "batch": "false",
    }
    fields |= {key: more.pop(key) for key in list(more) if key in LETTERS}
    if code == REPLY_LETTERS:
        fields = {LETTERS[key]: value for key, value in fields.items()}
    more.setdefault("body", "an answer")
    return broker(name, code, fields, **more)


def addressed(client: str) -> str:
    """The properties of a reply to this client."""
    return properties(
        MSG_TYPE="reply",
        CORRELATION_ID="dialogue-1",
        REPLY_TO_CLIENT=client,
        TTL="3000",
        UNIQ_KEY=KEY,
        WAIT="true",
    )


def pushed(name: str, answer: int) -> Step:
    """The reply arrives at the client that asked, which answers with a code."""
    return {
        "name": name,
        "target": "broker",
        "connection": "asker",
        "pushed": PUSH_REPLY,
        "replyCode": answer,
    }


def answered(name: str, of: str) -> Step:
    return {"name": name, "target": "broker", "finishes": of}


REPLIES: list[Step] = [
    broker(
        "the client that asks is heard of",
        34,
        connection="asker",
        bodyJson={
            "clientID": ASKER,
            "consumerDataSet": [],
            "producerDataSet": [{"groupName": "DialogueAsks"}],
        },
    ),
    reply("a reply", hold=True),
    pushed("the reply arrives", 0),
    answered("it was passed on and stored", "a reply"),
    reply("a reply with long names", REPLY, hold=True),
    pushed("the second reply arrives", 0),
    answered("the second was passed on and stored", "a reply with long names"),
    reply("a reply that the client refuses", hold=True),
    pushed("the refused reply arrives", 1),
    answered("it was stored, not passed on", "a reply that the client refuses"),
    pull(
        "what lies in the reply topic",
        "${cluster}_REPLY_TOPIC",
        0,
        until={"ext.nextBeginOffset": "3"},
    ),
    reply("nobody with that name", properties=addressed("127.0.0.1@nobody")),
    reply("to nobody", properties=properties(MSG_TYPE="reply", UNIQ_KEY=KEY)),
    reply("no such topic", topic="DialogueNoReply", defaultTopic="DialogueNoTemplate"),
    reply("no such queue", queueId=99),
]

AREAS = {"broker-reply": REPLIES}
