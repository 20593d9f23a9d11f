"""Attributes of topics and groups: what is kept, what is refused, what is told of them."""

from typing import Any

from player import Step
from steps import broker, create_topic, properties, send

T = "AttributeTopic"


def _topic(name: str, topic: str, attributes: str | None = None, **more: Any) -> Step:
    made = create_topic(name, topic, **more)
    if attributes is not None:
        made["request"]["ext"]["attributes"] = attributes
    return made


def _told(name: str, topic: str = T) -> Step:
    return broker(name, 351, {"topic": topic})


def _refused_at_creation() -> list[Step]:
    tried = {
        "an unknown name": "+nonsense=1",
        "no sign": "message.type=FIFO",
        "nothing to remove": "-message.type",
        "no sign and no value": "message.type",
        "a name twice": "+message.type=FIFO,+message.type=DELAY",
        "a value that is none": "+message.type=LETTER",
        "a value in small letters": "+message.type=fifo",
        "a queue type that is none": "+queue.type=BTree",
        "a number that is none": "+reserve.time=soon",
        "a number too low": "+reserve.time=-2",
        "two signs": "+-message.type=FIFO",
        "all types of messages": "+message.type=MIXED",
        "an empty name": "+=FIFO",
    }
    steps = []
    for at, (title, attributes) in enumerate(tried.items()):
        steps.append(_topic(f"create a topic with {title}", f"AttributeBad{at}", attributes))
        steps.append(_told(f"no topic was created with {title}", f"AttributeBad{at}"))
    return steps


NOT_BUILT = {"codes": [1], "why": "it would be accepted and then ignored"}

TOPICS: list[Step] = [
    _topic("create a topic without attributes", "AttributePlain"),
    _told("it has none", "AttributePlain"),
    _topic("an empty list of attributes", "AttributePlain", ""),
    _topic("give it one later", "AttributePlain", "+message.type=DELAY"),
    _told("it has one now", "AttributePlain"),
    _topic("create a topic for FIFO messages", T, "+message.type=FIFO,+reserve.time=3600000"),
    _told("it tells so"),
    _topic("change its queues only", T, queues=2),
    _told("its attributes stay"),
    _topic("change an attribute", T, "+message.type=NORMAL"),
    _told("the other one stays"),
    _topic("remove one", T, "-reserve.time"),
    _told("it is gone"),
    _topic("remove it again", T, "-reserve.time"),
    _topic("change what cannot be changed", T, "+queue.type=SimpleCQ"),
    _topic("change it to nonsense", T, "+message.type=LETTER"),
    _told("nothing has changed"),
    _topic("simple queues and deletion", "AttributeSimple",
           "+queue.type=SimpleCQ,+cleanup.policy=DELETE"),
    _told("are told", "AttributeSimple"),
    _topic("remove what cannot be changed", "AttributeSimple", "-queue.type"),
    *_refused_at_creation(),
    _topic("queues of batches", "AttributeBatch", "+queue.type=BatchCQ", better=NOT_BUILT),
    _topic("compaction", "AttributeCompact", "+cleanup.policy=COMPACTION", better=NOT_BUILT),
    broker("the settings of all topics", 21, pick=[T, "AttributePlain", "AttributeSimple"]),
    # The broker itself lets every message in; RocketMQ's proxy looks at the type before it sends.
    send("a delayed message to a topic for normal ones", T,
         properties=properties(UNIQ_KEY="7F000001000018B4AAC2000000000A01", DELAY="16")),
    send("an ordered message to a topic for normal ones", T,
         properties=properties(UNIQ_KEY="7F000001000018B4AAC2000000000A02", __SHARDINGKEY="k")),
    create_topic("a filter type that is none", T, topicFilterType="NONSENSE"),
    create_topic("a filter type in small letters", T, topicFilterType="multi_tag"),
    create_topic("the other filter type", T, topicFilterType="MULTI_TAG"),
    _told("it is told"),
    broker("delete the topic", 215, {"topic": T}),
    _topic("create it again", T),
    _told("it begins without attributes"),
]  # fmt: skip


def _config(name: str, **attributes: str) -> dict[str, Any]:
    signed = {f"+{key.replace('_', '.')}": value for key, value in attributes.items()}
    return {
        "attributes": signed,
        "order": False,
        "perm": 6,
        "readQueueNums": 1,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": 1,
    }


LISTS: list[Step] = [
    broker(
        "create topics by a list",
        18,
        bodyJson={
            "topicConfigList": [
                _config("AttributeListA", message_type="FIFO"),
                _config("AttributeListB"),
            ]
        },
    ),
    _told("the first", "AttributeListA"),
    _told("the second", "AttributeListB"),
    broker(
        "a list with a bad name in it",
        18,
        bodyJson={"topicConfigList": [_config("AttributeListC"), _config("Attribute List!")]},
    ),
    _told("nothing of it was created", "AttributeListC"),
    broker(
        "a list with a bad attribute in it",
        18,
        bodyJson={"topicConfigList": [_config("AttributeListD", nonsense="1")]},
    ),
    broker("an empty list", 18, bodyJson={"topicConfigList": []}),
    broker(
        "create groups by a list",
        225,
        bodyJson={"groupConfigList": [{"groupName": "AttributeGroupA", "retryMaxTimes": 3},
                                      {"groupName": "AttributeGroupB"}]},
    ),
    broker("the first group", 352, {"group": "AttributeGroupA"}),
    broker("the second group", 352, {"group": "AttributeGroupB"}),
    broker(
        "a group with an attribute",
        225,
        bodyJson={"groupConfigList": [{"groupName": "AttributeGroupC",
                                       "attributes": {"+message.type": "FIFO"}}]},
    ),
]  # fmt: skip

AREAS = {"attributes-topics": TOPICS, "attributes-lists": LISTS}
