"""What a slave asks its master, and what tools ask about copies."""

from player import Step
from steps import broker, create_topic

T, G = "DialogueCopies", "DialogueCopiesReaders"

COPIES: list[Step] = [
    create_topic("create a topic", T),
    broker("create a group", 200, bodyJson={"groupName": G}),
    broker(
        "commit progress", 15, {"consumerGroup": G, "topic": T, "queueId": 0, "commitOffset": 0}
    ),
    broker("all progress", 43, pick=[f"{T}@{G}"], without=["groupTopicMap"]),
    broker("progress of the delay levels", 45, loose=["dataVersion", "offsetTable"]),
    broker("progress of timers", 60, loose=["hex"]),
    broker("counts of timers", 61, loose=["dataVersion", "timingCount"]),
    broker("state of the copies", 907, loose=["masterCommitLogMaxOffset"]),
    broker(
        "a slave introduces itself",
        40105,
        {
            "clusterName": "DefaultCluster",
            "brokerName": "broker-a",
            "brokerId": 1,
            "haClient": "127.0.0.1:1",
            "fileBytes": 1,
            "logEnd": 0,
        },
        better={"codes": [1], "why": "RocketMQ does not ask who follows it"},
    ),
    broker(
        "the raft group of a broker that is in none",
        40106,
        better={"codes": [1], "why": "RocketMQ has no such request"},
    ),
    broker(
        "leadership of a broker that is in none",
        40107,
        {"to": "n1"},
        better={"codes": [1], "why": "RocketMQ has no such request"},
    ),
    broker(
        "a slave compares its log",
        40110,
        {"position": 0, "size": 1 << 30},
        better={"codes": [1], "why": "RocketMQ's slaves cannot compare logs"},
    ),
]

AREAS = {"broker-copies": COPIES}
