"""Kinds of topics: by name what belongs to groups and brokers, else by message type."""

from gantrymq.client.admin.topics.topic_kinds import topic_kinds
from gantrymq.model import TopicConfig


def known(**types: str) -> dict[str, dict[str, TopicConfig]]:
    found = {
        name: {"broker-a": TopicConfig(attributes={"message.type": kind} if kind else {})}
        for name, kind in types.items()
    }
    for name in ("%RETRY%g", "%DLQ%g", "TBW102", "broker-a", "Main", "Main_REPLY_TOPIC"):
        found[name] = {"broker-a": TopicConfig()}
    return found


def test_kinds() -> None:
    """Every topic has one kind; a message type that nobody knows is normal."""
    kinds = topic_kinds(known(plain="", steps="FIFO", later="DELAY", both="TRANSACTION", odd="X"))

    assert {
        "plain": "normal", "steps": "fifo", "later": "delay", "both": "transaction",
        "odd": "normal", "%RETRY%g": "retry", "%DLQ%g": "dead", "TBW102": "system",
        "broker-a": "system", "Main": "system", "Main_REPLY_TOPIC": "system",
    } == kinds  # fmt: skip
