"""What is said about messages that wait for a time of their own. RocketMQ 4.9 knows none."""

import base64
from typing import Any

from player import Step
from steps import broker, create_topic, properties, pull, send

RECALL, WAITING = 370, 40100
TOPIC = "DialogueTimer"
KEYS = [f"7F000001000018B4AAC20000000000{number}" for number in range(51, 60)]
VARYING = ["queueOffset", "recallHandle"]
STAMPS = ["TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"]


def timed(name: str, key: str, keep: str | None = None, **wanted: str) -> Step:
    """A send that asks to wait."""
    more: dict[str, Any] = {} if keep is None else {"keep": {keep: "ext.recallHandle"}}
    text = properties(UNIQ_KEY=key, WAIT="true", **wanted)
    return send(name, TOPIC, properties=text, body=name, loose=VARYING, **more)


def recall(name: str, handle: str, topic: str = TOPIC, **more: Any) -> Step:
    return broker(
        name, RECALL,
        {"producerGroup": "DialogueProducer", "topic": topic, "recallHandle": handle}, **more,
    )  # fmt: skip


def handle(*words: str) -> str:
    return base64.urlsafe_b64encode(" ".join(words).encode()).decode()


UNTIL_FOUR: dict[str, Any] = {"until": {"ext.maxOffset": "4"}, "loose": STAMPS}
TIMERS: list[Step] = [
    create_topic("create a topic", TOPIC),
    timed("two seconds", KEYS[0], keep="delivered", TIMER_DELAY_SEC="2"),
    pull("delivered", TOPIC, 0, until={"ext.maxOffset": "1"}, loose=STAMPS),
    timed("a time that is past", KEYS[1], TIMER_DELIVER_MS="1"),
    timed("less than nothing", KEYS[2], TIMER_DELAY_MS="-1000"),
    pull("both are there", TOPIC, 1, until={"ext.maxOffset": "3"}, loose=STAMPS),
    timed("a level wins", KEYS[3], DELAY="1", TIMER_DELAY_SEC="3600"),
    pull("by its level", TOPIC, 3, **UNTIL_FOUR),
    timed("in an hour", KEYS[4], keep="waits", TIMER_DELAY_MS="3600000"),
    timed("too far away", KEYS[5], TIMER_DELAY_SEC="400000000"),
    timed("no number", KEYS[6], TIMER_DELAY_SEC="soon"),
    timed("a recall of the past", KEYS[7], TIMER_DELIVER_MS="1", TIMER_DEL_UNIQKEY="x"),
    recall("recall", "$waits"),
    recall("recall once more", "$waits"),
    recall("recall what is delivered", "$delivered"),
    recall("recall under another topic", "$waits", topic="TBW102"),
    recall("recall under no topic", "$waits", topic="DialogueNowhere"),
    recall("recall by nonsense", "nonsense"),
    recall("recall by another version", handle("v2", TOPIC, "broker-a", "1", "x")),
    recall("recall from another broker", handle("v1", TOPIC, "broker-z", "9999999999999", "x")),
    recall("recall from the far future", handle("v1", TOPIC, "broker-a", "9999999999999", "x")),
    recall("recall without a time", handle("v1", TOPIC, "broker-a", "then", "x")),
    broker("recall without a handle", RECALL, {"topic": TOPIC}),
    broker(
        "who waits",
        WAITING,
        {"topic": TOPIC},
        better={"codes": [0], "why": "RocketMQ has no tool that shows what waits"},
    ),
]

AREAS = {"broker-timers": TIMERS}
