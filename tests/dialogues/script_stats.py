"""What RocketMQ's exporter and dashboard ask a broker: statistics and producers."""

from typing import Any

from player import Step
from steps import broker, create_topic, pull, send

T, G = "DialogueStats", "DialogueStatsReaders"
PRODUCER = {
    "clientID": "127.0.0.1@producer",
    "consumerDataSet": [],
    "producerDataSet": [{"groupName": "DialogueProducers"}],
}


def _view(name: str, stats: str, key: str, **more: Any) -> Step:
    return broker(name, 315, {"statsName": stats, "statsKey": key}, **more)


def _counted(name: str, stats: str, key: str) -> Step:
    """What the windows tell depends on when they were sampled."""
    return _view(name, stats, key, loose=["avgpt", "sum", "tps"])


STATS: list[Step] = [
    create_topic("create a topic", T),
    _view("of a topic that nobody has sent to", "TOPIC_PUT_NUMS", T),
    _view("of a name that nobody knows", "NOSUCH_NUMS", T),
    broker("without a name", 315, {"statsKey": T}),
    send("send", T),
    broker("it is in its queue", 30, {"topic": T, "queueId": 0}, until={"ext.offset": "1"}),
    pull("pull", T, 0, consumerGroup=G, keep={"at": "message.physicalOffset"}),
    broker("give it back", 36, {"offset": "$at", "group": G, "delayLevel": 0, "originTopic": T}),
    _counted("messages sent to a topic", "TOPIC_PUT_NUMS", T),
    _counted("bytes sent to a topic", "TOPIC_PUT_SIZE", T),
    _counted("messages got by a group", "GROUP_GET_NUMS", f"{T}@{G}"),
    _counted("bytes got by a group", "GROUP_GET_SIZE", f"{T}@{G}"),
    _counted("messages given back by a group", "SNDBCK_PUT_NUMS", f"{T}@{G}"),
    _counted("messages put into the broker", "BROKER_PUT_NUMS", "$cluster"),
    _counted("messages got from the broker", "BROKER_GET_NUMS", "$cluster"),
    _view("of a group that got nothing", "GROUP_GET_NUMS", f"{T}@DialogueNoGroup"),
    _view("of the broker by its own name", "BROKER_PUT_NUMS", "$brokerName"),
    broker("delete the topic", 215, {"topic": T}),
    _view("its statistics are gone", "TOPIC_PUT_NUMS", T),
    _view("those of its groups, too", "GROUP_GET_NUMS", f"{T}@{G}"),
]

PRODUCERS: list[Step] = [
    broker("a producer appears", 34, connection="producer", bodyJson=PRODUCER),
    broker("all producers", 328, pick=["DialogueProducers"]),
    broker(
        "the producer goes",
        35,
        {"clientID": "127.0.0.1@producer", "producerGroup": "DialogueProducers"},
        connection="producer",
    ),
    broker("none is left", 328, pick=["DialogueProducers"]),
]

AREAS = {"broker-stats": STATS, "broker-producers": PRODUCERS}
