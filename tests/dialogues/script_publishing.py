"""Epochs of messages published at once: ours alone, so RocketMQ answers that it does not know."""

from steps import broker

WHY = "RocketMQ cannot publish several messages at once"
WRITER = {"writer": "DialogueWriter", "epoch": "0", "coordinator": "broker-a"}

PUBLISHING = [
    broker("state of a writer", 40101, {"writer": "DialogueWriter"},
           better={"codes": [0], "why": WHY}),
    broker("prepare nothing", 40102, WRITER, body="[]", better={"codes": [0], "why": WHY}),
    broker("decide nothing", 40103, WRITER, body="{}", better={"codes": [0], "why": WHY}),
    broker("publish nothing", 40104, WRITER, body="[]", better={"codes": [0], "why": WHY}),
]  # fmt: skip

AREAS = {"broker-publishing": PUBLISHING}
