"""What operators ask a single consumer, through the broker."""

from player import Step
from steps import broker

GROUP = "DialogueRelayGroup"

RELAYS: list[Step] = [
    broker(
        "the state of a consumer that is not there",
        307,
        {"consumerGroup": GROUP, "clientId": "nobody@1", "jstackEnable": "false"},
    ),
    broker(
        "a message for a consumer, that is nowhere",
        309,
        {
            "consumerGroup": GROUP,
            "clientId": "nobody@1",
            "msgId": "7F00000100002A9F00000000FFFFFFFF",
        },
    ),
]

AREAS: dict[str, list[Step]] = {"broker-relays": RELAYS}
