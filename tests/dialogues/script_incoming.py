"""What a broker keeps of the properties that come in, and what it notes about pulls."""

from player import Step
from steps import SEND, SEND_BATCH, batch, broker, create_topic, properties, pull, send

TOPIC, GROUP = "DialogueIncoming", "DialogueIncomingGroup"
KEYS = [f"7F000001000018B4AAC20000000004{number:02d}" for number in range(8)]
RECEIPT = "0 1700000000000 60000 3 0 broker-a 0 0"


def props(number: int, **more: str) -> str:
    return properties(UNIQ_KEY=KEYS[number], **more)


INCOMING: list[Step] = [
    create_topic("create a topic", TOPIC),
    send("send with a receipt", TOPIC, properties=props(0, POP_CK=RECEIPT, TAGS="a", WAIT="true")),
    send("the same with long names", TOPIC, SEND, properties=props(1, WAIT="true", POP_CK=RECEIPT)),
    send("a sender that does not wait", TOPIC, properties=props(2, WAIT="false")),
    send("a name that only begins alike", TOPIC, properties=props(3, POP_CKX="1", XPOP_CK="2")),
    pull("what is kept", TOPIC, 0, until={"ext.maxOffset": "4"}),
    send(
        "a batch whose header has a receipt",
        TOPIC,
        SEND_BATCH,
        bodyHex=batch([("one", props(4, TAGS="a", WAIT="true"))]),
        properties=properties(POP_CK=RECEIPT),
    ),
    pull("what is kept of the batch", TOPIC, 4, until={"ext.maxOffset": "5"}),
    broker("create a group", 200, bodyJson={"groupName": GROUP}),
    broker("commit", 15, {"consumerGroup": GROUP, "topic": TOPIC, "queueId": 0, "commitOffset": 1}),
    pull("pull on", TOPIC, 1, consumerGroup=GROUP, maxMsgNums=2),
    broker("pulled and finished", 208, {"consumerGroup": GROUP, "topic": TOPIC}),
    pull("pull far outside", TOPIC, 1000, consumerGroup=GROUP),
    broker("pulled to where it was sent", 208, {"consumerGroup": GROUP, "topic": TOPIC}),
]

AREAS = {"broker-incoming": INCOMING}
