"""Back-tracking: what tools say to move a group's progress, and what its readers then see."""

from typing import Any

from player import Step
from steps import broker, create_topic, pull, send

TOPIC, GROUP = "DialogueReset", "DialogueResetGroup"
FAR_FUTURE_MS = 4102444800000


def _reset(name: str, timestamp: object, **more: Any) -> Step:
    """222 as the 4.9 tool sends it; keywords add 5.x's fields or replace values."""
    fields = {"topic": TOPIC, "group": GROUP, "timestamp": timestamp, "isForce": "true", **more}
    return broker(name, 222, fields)


def _progress(name: str, queue_id: int = 0) -> Step:
    return broker(name, 14, {"consumerGroup": GROUP, "topic": TOPIC, "queueId": queue_id})


def _commit(name: str, offset: int, queue_id: int = 0) -> Step:
    ext = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": queue_id, "commitOffset": offset}
    return broker(name, 15, ext)


RESETS: list[Step] = [
    create_topic("create a topic", TOPIC, queues=2),
    _reset("a group nobody knows", 0),
    _reset("a topic nobody knows", 0, topic="DialogueNoTopic"),
    broker("create a group", 200, bodyJson={"groupName": GROUP}),
    *[send(f"send {number}", TOPIC) for number in range(3)],
    send("send to the other queue", TOPIC, queueId=1),
    pull("all are there", TOPIC, 0, consumerGroup=GROUP, until={"ext.maxOffset": "3"}),
    _commit("commit", 3),
    _commit("commit the other queue", 1, queue_id=1),
    _reset("to the first, nobody is online", 0),
    _progress("the progress is the first"),
    _commit("a reader commits where it was", 3),
    _progress("the reset stands"),
    pull("a reader goes on where it was", TOPIC, 3, consumerGroup=GROUP),
    pull("it follows", TOPIC, 0, consumerGroup=GROUP),
    _commit("it commits", 2),
    _progress("its commit counts"),
    _reset("to the end", -1),
    _progress("the progress is the end"),
    pull("a reader follows to the end", TOPIC, 3, consumerGroup=GROUP),
    _reset("to a time that has not come", FAR_FUTURE_MS),
    _reset("one queue to an offset", 0, queueId=1, offset=0),
    _progress("the queue is there", queue_id=1),
    _reset("an offset that is not there", 0, queueId=1, offset=99),
    _reset("one queue to a time", 0, queueId=0),
    broker("where are the members of nobody", 223, {"topic": TOPIC, "group": "DialogueNobody"}),
]

AREAS: dict[str, list[Step]] = {"broker-resets": RESETS}
