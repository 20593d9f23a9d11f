"""What popping consumers say to a broker."""

from typing import Any

from player import Step
from steps import broker, consumer_heartbeat, create_topic, properties, send

POP, ACK, PEEK, CHANGE, NOTIFY, POLLING, BATCH_ACK = (
    200050, 200051, 200052, 200053, 200054, 200055, 200151,
)  # fmt: skip
GROUP = "DialoguePopGroup"
ONCE = {"popTime": "ext.popTime", "revive": "ext.reviveQid"}
"""What a step keeps of a pop, for the handles of later steps."""


def pop(name: str, topic: str, **more: Any) -> Step:
    """A pop that does not wait, as a 5.x client says it."""
    fields: dict[str, Any] = {
        "consumerGroup": GROUP,
        "topic": topic,
        "queueId": 0,
        "maxMsgNums": 32,
        "invisibleTime": 60000,
        "pollTime": 0,
        "bornTime": 0,
        "initMode": 0,
        "expType": "TAG",
        "exp": "*",
        "order": "false",
    }
    fields |= {key: more.pop(key) for key in [*more] if key in {*fields, "attemptId"}}
    return broker(name, POP, fields, **more)


def handle(
    start: int, offset: int, *, flag: int = 0, revive: str = "$revive", queue: int = 0
) -> str:
    return f"{start} $popTime 60000 {revive} {flag} $brokerName {queue} {offset}"


def about(name: str, code: int, topic: str, offset: int, info: str, **more: Any) -> Step:
    fields = {"consumerGroup": GROUP, "topic": topic, "queueId": 0, "extraInfo": info}
    fields |= {"offset": offset}
    fields |= {key: more.pop(key) for key in [*more] if key in {*fields, "invisibleTime"}}
    return broker(name, code, fields, **more)


def question(name: str, code: int, topic: str, **more: Any) -> Step:
    fields = {"consumerGroup": GROUP, "topic": topic, "queueId": -1}
    known = {*fields, "maxMsgNums", "pollTime", "bornTime", "order"}
    fields |= {key: more.pop(key) for key in [*more] if key in known}
    return broker(name, code, fields, **more)


def tagged(name: str, topic: str, body: str, tag: str = "TagA", queue: int = 0) -> Step:
    text = properties(UNIQ_KEY=f"7F000001000018B4AAC20000000000{body[-2:]}", TAGS=tag)
    return send(name, topic, body=body, properties=text, queueId=queue)


POPPING: list[Step] = [
    create_topic("create a topic", "DialoguePop"),
    broker("create a group", 200, bodyJson={"groupName": GROUP}),
    pop("an empty topic", "DialoguePop"),
    tagged("send one", "DialoguePop", "01"),
    tagged("send two", "DialoguePop", "02"),
    tagged("send three", "DialoguePop", "03", "TagB"),
    question("peek", PEEK, "DialoguePop", maxMsgNums=1, until={"ext.restNum": "3"}),
    question("peek at nothing", PEEK, "DialogueNone", maxMsgNums=1),
    question("there is something", NOTIFY, "DialoguePop", pollTime=0, bornTime=0),
    pop("two of three", "DialoguePop", maxMsgNums=2, keep=ONCE),
    about("acknowledge the first", ACK, "DialoguePop", 0, handle(0, 0)),
    about("acknowledge it again", ACK, "DialoguePop", 0, handle(0, 0)),
    about("an offset out of range", ACK, "DialoguePop", 9, handle(0, 9)),
    about("no such queue", ACK, "DialoguePop", 0, handle(0, 0), queueId=7),
    about("no such topic", ACK, "DialogueNone", 0, handle(0, 0)),
    about("a longer time", CHANGE, "DialoguePop", 1, handle(0, 1), invisibleTime=90000),
    about("a time for nothing", CHANGE, "DialoguePop", 9, handle(0, 9), invisibleTime=90000),
    about("a time in no topic", CHANGE, "DialogueNone", 1, handle(0, 1), invisibleTime=90000),
    about("a time in no queue", CHANGE, "DialoguePop", 1, handle(0, 1), queueId=7, invisibleTime=1),
    pop("by a tag that no message has", "DialoguePop", exp="TagC"),
    tagged("send four", "DialoguePop", "04", "TagC"),
    tagged("send five", "DialoguePop", "05", "TagB"),
    pop("by tag", "DialoguePop", exp="TagB", keep=ONCE, until={"code": 0}),
    broker(
        "acknowledge in a batch",
        BATCH_ACK,
        bodyJson={
            "brokerName": "$brokerName",
            "acks": [
                {
                    "c": GROUP,
                    "t": "DialoguePop",
                    "r": "0",
                    "so": 3,
                    "q": 0,
                    "rq": 0,
                    "pt": 1,
                    "it": 60000,
                    "b": "Ag==",
                }
            ],
        },
    ),
    broker("an empty batch", BATCH_ACK, bodyJson={"brokerName": "$brokerName", "acks": []}),
    pop("nothing is left", "DialoguePop"),
    question("there is nothing", NOTIFY, "DialoguePop", pollTime=0, bornTime=0),
    question("nobody waits", POLLING, "DialoguePop"),
    question("who waits for nothing", POLLING, "DialogueNone"),
    pop("wait", "DialoguePop", queueId=-1, pollTime=5000, hold=True, connection="waiting"),
    tagged("send six", "DialoguePop", "06"),
    {"name": "woken by the message", "target": "broker", "finishes": "wait"},
    pop("wait in vain", "DialoguePop", pollTime=1000, hold=True, connection="waiting"),
    {"name": "the end of the wait", "target": "broker", "finishes": "wait in vain"},
    question(
        "ask for news",
        NOTIFY,
        "DialoguePop",
        pollTime=5000,
        bornTime=0,
        hold=True,
        connection="waiting",
    ),
    tagged("send seven", "DialoguePop", "07"),
    {"name": "there is news", "target": "broker", "finishes": "ask for news"},
    pop("too many", "DialoguePop", maxMsgNums=33),
    pop("no such topic to pop", "DialogueNone"),
    pop("no such queue to pop", "DialoguePop", queueId=7),
    pop("too late", "DialoguePop", bornTime=1),
    pop("a group that did not exist", "DialoguePop", consumerGroup="DialogueNewPopGroup"),
    broker(
        "progress of the group",
        14,
        {"consumerGroup": GROUP, "topic": "DialoguePop", "queueId": 0},
        until={"ext.offset": "6"},
    ),
]

RETRYING: list[Step] = [
    create_topic("create a topic", "DialoguePopRetry"),
    tagged("send one", "DialoguePopRetry", "11"),
    pop("not acknowledged", "DialoguePopRetry", invisibleTime=5000, until={"code": 0}),
    pop("invisible", "DialoguePopRetry"),
    # Ours still says who made the message.
    pop("again", "DialoguePopRetry", until={"code": 0}, keep=ONCE, loose=["bornHost"]),
    about("acknowledge it there", ACK, f"%RETRY%{GROUP}_DialoguePopRetry", 0, handle(0, 0, flag=1)),
    broker("the retry topic", 351, {"topic": f"%RETRY%{GROUP}_DialoguePopRetry"}),
]

ORDERED: list[Step] = [
    create_topic("create a topic", "DialoguePopOrder"),
    tagged("send one", "DialoguePopOrder", "21"),
    tagged("send two", "DialoguePopOrder", "22"),
    tagged("send three", "DialoguePopOrder", "23"),
    pop("two in order", "DialoguePopOrder", order="true", maxMsgNums=2, keep=ONCE,
        until={"ext.restNum": "1"}, attemptId="one"),
    pop("closed", "DialoguePopOrder", order="true", maxMsgNums=2, attemptId="two"),
    pop("the same attempt", "DialoguePopOrder", order="true", maxMsgNums=2, attemptId="one",
        keep=ONCE),
    about("acknowledge the first", ACK, "DialoguePopOrder", 0, handle(0, 0, revive="999")),
    pop("still closed", "DialoguePopOrder", order="true", attemptId="three"),
    about("show the second soon", CHANGE, "DialoguePopOrder", 1, handle(0, 1, revive="999"),
          invisibleTime=10,
          loose=["invisibleTime"]),
    pop("the second again, and the third", "DialoguePopOrder", order="true", attemptId="four",
        until={"code": 0}, keep=ONCE),
    about("acknowledge the second", ACK, "DialoguePopOrder", 1, handle(1, 1, revive="999")),
    about("acknowledge the third", ACK, "DialoguePopOrder", 2, handle(1, 2, revive="999")),
    broker("progress", 14, {"consumerGroup": GROUP, "topic": "DialoguePopOrder", "queueId": 0}),
    pop("nothing is left", "DialoguePopOrder", order="true", attemptId="five"),
]  # fmt: skip

MODE = {"topic": "DialoguePopMode", "consumerGroup": "DialogueModeGroup"}
ASKED = {**MODE, "clientId": "c1", "strategyName": "AVG", "messageModel": "CLUSTERING"}
ASSIGNING: list[Step] = [
    create_topic("create a topic", "DialoguePopMode", queues=2),
    broker(
        "set the mode for a group that did not exist",
        401,
        bodyJson={**MODE, "consumerGroup": "DialogueNewModeGroup"},
    ),
    broker("create a group", 200, bodyJson={"groupName": "DialogueModeGroup"}),
    broker("whose queues? nobody is there", 400, bodyJson=ASKED),
    broker(
        "a member comes",
        34,
        bodyJson=consumer_heartbeat("c1", "DialogueModeGroup", "DialoguePopMode"),
    ),
    broker("whose queues? mine", 400, bodyJson=ASKED, until={"code": 0}),
    broker("by an unknown strategy", 400, bodyJson={**ASKED, "strategyName": "OTHER"}),
    broker("of an unknown topic", 400, bodyJson={**ASKED, "topic": "DialogueNone"}),
    broker("broadcasting", 400, bodyJson={**ASKED, "messageModel": "BROADCASTING"}),
    broker("set the mode", 401, bodyJson={**MODE, "mode": "POP", "popShareQueueNum": 0}),
    broker("set the mode for no topic", 401, bodyJson={**MODE, "topic": "DialogueNone"}),
    broker("set the mode of a retry topic", 401, bodyJson={**MODE, "topic": "%RETRY%x"}),
    broker("whose queues? everybody's", 400, bodyJson=ASKED),
    broker("all modes", 402),
]

AREAS = {
    "pop": POPPING,
    "pop-retrying": RETRYING,
    "pop-ordered": ORDERED,
    "pop-assigning": ASSIGNING,
}
