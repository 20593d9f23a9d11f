"""What fastjson makes of bodies and headers that are not written as Java writes them.

For every kind of member, and for every way of writing a value, one request tells the broker and
the next one asks what it understood. `tests/unit/protocol/test_dialect.py` composes whole bodies
out of these recordings.
"""

from typing import Any

from player import Step
from steps import broker, create_topic

NUMBERS = ["0", "1", "7", "-1", "1.0", "1.9", "-1.5", "1e2", "99999", "3000000000"]
TEXTS = [
    '""', '"0"', '"1"', '"7"', '"-1"', '" 7 "', '"1.0"', '"1.00"', '"1.5"', '"1,000"', '"+7"',
    '"null"', '"abc"', '"true"', '"false"', '"TRUE"', '"Y"', '"N"', '"3000000000"', "'7'",
]  # fmt: skip
WORDS = ["true", "false", "null"]
SHAPES = ["[]", "[1]", '["1"]', "{}", '{"a":1}']
VALUES = [*NUMBERS, *TEXTS, *WORDS, *SHAPES]

GROUP_MEMBERS = {"int": "retryMaxTimes", "long": "brokerId", "bool": "consumeBroadcastEnable"}
ENUM_MEMBERS = {
    "consumeFromWhere": [
        "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET", "CONSUME_FROM_MAX_OFFSET", "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ],
    "consumeType": ["CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"],
    "messageModel": ["BROADCASTING", "CLUSTERING"],
}  # fmt: skip
ENUM_VALUES = [
    "0", "1", "2", "4", "5", "6", "-1", "1.0", '"0"', '"1"', '""', '"NONSENSE"', "null", "true",
    "[]", "{}",
]  # fmt: skip
LIST_VALUES = [
    "[]", '["a"]', '["a","b"]', "[1]", "[true]", "[null]", '["7"]', "null", '"a"', '""', "7",
    "{}", '[["a"]]', '[{"a":1}]', "[1.5]",
]  # fmt: skip
MAP_VALUES = [
    "{}", '{"+a":"b"}', '{"+a":1}', '{"+a":true}', '{"+a":null}', '{"+a":[1]}', "null", "[]",
    '""', '"a"', "7", "{1:2}", "{+a:'b'}",
]  # fmt: skip

C = "DialectClient"
HEARTBEAT_V2 = ["IS_SUB_CHANGE", "IS_SUPPORT_HEART_BEAT_V2"]
ALL = '"subString":"*"'


def _group(member: str, value: str, at: int) -> list[Step]:
    name = f"DialectGroup-{member}-{at}"
    return [
        broker(
            f"{member} of a group is {value}",
            200,
            body=f'{{"groupName":"{name}","{member}":{value}}}',
        ),
        broker(
            f"{member} of a group was {value}",
            352,
            {"group": name},
            better={"codes": [26], "why": "asking for a group need not make it"},
        ),
    ]


def _beat(
    title: str, group: str, *, consumer: str = "", subscription: str = "", **understood: Any
) -> list[Step]:
    subscribed = f'"topic":"DialectTopic","subVersion":1,{subscription or ALL}'
    told = f'"groupName":"{group}","subscriptionDataSet":[{{{subscribed}}}]'
    body = f'{{"clientID":"{C}","consumerDataSet":[{{{told}{"," if consumer else ""}{consumer}}}]}}'
    return [
        broker(title, 34, body=body, connection="beats", without=HEARTBEAT_V2),
        broker(f"{title}: understood as", 203, {"consumerGroup": group}, **understood),
    ]


def _enum(member: str, value: str, at: int) -> list[Step]:
    group = f"DialectEnum-{member}-{at}"
    return _beat(f"{member} is {value}", group, consumer=f'"{member}":{value}')


def _subscribed(member: str, value: str, at: int) -> list[Step]:
    group = f"DialectSub-{member}-{at}"
    more: dict[str, Any] = {}
    if "null" in value and value[0] != '"':
        # RocketMQ keeps the null and stumbles over it when messages are filtered; we drop it.
        more["without"] = [member]
    said = f'"{member}":{value}' + ("" if member == "subString" else f",{ALL}")
    return _beat(f"{member} is {value}", group, subscription=said, **more)


def _enum_values(member: str) -> list[str]:
    names = ENUM_MEMBERS[member]
    return [*ENUM_VALUES, f'"{names[0]}"', f'"{names[-1]}"', f'"{names[-1].lower()}"']


BODIES: list[Step] = [
    create_topic("create a topic", "DialectTopic"),
    *(
        step
        for member in GROUP_MEMBERS.values()
        for at, value in enumerate(VALUES)
        for step in _group(member, value, at)
    ),
    *(step for at, value in enumerate(MAP_VALUES) for step in _group("attributes", value, at)),
    *(
        step
        for member in ENUM_MEMBERS
        for at, value in enumerate(_enum_values(member))
        for step in _enum(member, value, at)
    ),
    *(
        step
        for member in ("tagsSet", "codeSet")
        for at, value in enumerate(LIST_VALUES)
        for step in _subscribed(member, value, at)
    ),
    *(
        step
        for at, value in enumerate(VALUES)
        for step in _subscribed("subString", value, at)
    ),
]  # fmt: skip

SUB = '{"topic":"DialectTopic","subString":"*","subVersion":1}'
WHOLE_BODIES = {
    "as the C++ client writes it": f'{{"clientID":"{C}","consumerDataSet":[{{"consumeFromWhere":0,'
    '"consumeType":1,"groupName":"DialectCpp","messageModel":1,"subscriptionDataSet":'
    '[{"codeSet":["2598919"],"subString":"TagA","subVersion":"1700000000000",'
    '"tagsSet":["TagA"],"topic":"DialectTopic"}]}],"producerDataSet":[{"groupName":"DialectP"}]}',
    "with members nobody knows": f'{{"clientID":"{C}","more":{{"a":[1,{{"b":null}}]}},'
    '"consumerDataSet":[{"groupName":"DialectMore","strange":7,"subscriptionDataSet":'
    f"[{SUB}]}}]}}",
    "with names in another case": f'{{"clientid":"{C}","consumerdataset":[{{"groupname":'
    f'"DialectCase","subscriptiondataset":[{SUB}]}}]}}',
    "with names in snake case": f'{{"client_id":"{C}","consumer_data_set":[{{"group_name":'
    f'"DialectSnake","subscription_data_set":[{SUB}]}}]}}',
    "with an object for a list": f'{{"clientID":"{C}","consumerDataSet":{{"groupName":'
    f'"DialectObject","subscriptionDataSet":[{SUB}]}}}}',
    "with a list of nulls": f'{{"clientID":"{C}","producerDataSet":[null]}}',
    "without a client": '{"producerDataSet":[{"groupName":"DialectNobody"}]}',
    "with a client that is a number": '{"clientID":7,"producerDataSet":[{"groupName":"DialectN"}]}',
    "without lists": f'{{"clientID":"{C}"}}',
    "with lists that are null": f'{{"clientID":"{C}","consumerDataSet":null,'
    '"producerDataSet":null}',
    "of nothing": "{}",
    "that is null": "null",
    "that is empty": "",
    "that is a list": "[]",
    "that is a text": '"abc"',
    "that is no JSON": "{abc",
    "with text behind it": f'{{"clientID":"{C}"}} and more',
    "with a comma too many": f'{{"clientID":"{C}",,"producerDataSet":[,],}}',
    "with comments": f'{{/* one */"clientID":"{C}"// two\n}}',
    "in single quotes": f"{{'clientID':'{C}','producerDataSet':[{{'groupName':'DialectQ'}}]}}",
    "without quotes": f'{{clientID:"{C}",producerDataSet:[{{groupName:"DialectU"}}]}}',
}
BETTER = {
    "with lists that are null": {"codes": [0], "why": "no list is an empty list"},
}
GROUPS_OF_WHOLE = ["DialectCpp", "DialectMore", "DialectCase", "DialectSnake", "DialectObject"]
PRODUCERS_OF_WHOLE = ["DialectP", "DialectN", "DialectQ", "DialectU"]

WHOLE: list[Step] = [
    create_topic("create a topic", "DialectTopic"),
    *(
        broker(
            f"a heartbeat {title}",
            34,
            body=body,
            connection="beats",
            without=HEARTBEAT_V2,
            **({"better": BETTER[title]} if title in BETTER else {}),
        )
        for title, body in WHOLE_BODIES.items()
    ),
    *(broker(f"members of {name}", 203, {"consumerGroup": name}) for name in GROUPS_OF_WHOLE),
    *(broker(f"senders of {name}", 204, {"producerGroup": name}) for name in PRODUCERS_OF_WHOLE),
    broker(
        "senders of a group that was refused",
        204,
        {"producerGroup": "DialectNobody"},
        better={"codes": [1], "why": "who was refused is not a sender"},
    ),
]


def _header(title: str, text: str, **more: Any) -> Step:
    request = {"code": 0, "header": text}
    return {"name": title, "target": "broker", "connection": title, **more, "request": request}


NO_DOUBT = {"codes": [0], "why": "there is no doubt which number is meant"}
_PLAIN = '"flag":0,"language":"JAVA","opaque":$opaque,"version":409'
_TOPIC = '"extFields":{"topic":"DialectTopic","queueId":"0"}'
HEADERS: list[Step] = [
    create_topic("create a topic", "DialectTopic"),
    _header("numbers as text", '{"code":"30","flag":"0","language":"JAVA","opaque":"$opaque",'
            f'"version":"409",{_TOPIC}}}'),
    _header("language by ordinal",
            f'{{"code":30,"flag":0,"language":1,"opaque":$opaque,{_TOPIC}}}'),
    _header("language by ordinal in text",
            f'{{"code":30,"flag":0,"language":"1","opaque":$opaque,{_TOPIC}}}'),
    _header("language in small letters",
            f'{{"code":30,"flag":0,"language":"cpp","opaque":$opaque,{_TOPIC}}}'),
    _header("language nobody speaks",
            f'{{"code":30,"flag":0,"language":"KLINGON","opaque":$opaque,{_TOPIC}}}'),
    _header("language by an ordinal too high",
            f'{{"code":30,"flag":0,"language":99,"opaque":$opaque,{_TOPIC}}}'),
    _header("only what is needed", f'{{"code":30,"opaque":$opaque,{_TOPIC}}}'),
    _header("members nobody knows",
            f'{{"code":30,{_PLAIN},"more":{{"a":[1]}},"serializeTypeCurrentRPC":"JSON",{_TOPIC}}}'),
    _header("how it is written, by ordinal",
            f'{{"code":30,{_PLAIN},"serializeTypeCurrentRPC":0,{_TOPIC}}}'),
    _header("null for what is not needed",
            f'{{"code":30,"flag":null,"language":null,"opaque":$opaque,"remark":null,'
            f'"version":null,{_TOPIC}}}'),
    _header("fields that are numbers",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":0}}}}'),
    _header("a field that is null",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":0,"x":null}}}}'),
    _header("a needed field that is null",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":null}}}}'),
    _header("a field with spaces",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":" 0 "}}}}'),
    _header("a field with a fraction",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"0.0"}}}}',
            better=NO_DOUBT),
    _header("a field with a plus sign",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"+0"}}}}'),
    _header("a number with a fraction as field",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":0.0}}}}',
            better=NO_DOUBT),
    _header("a field too large for its number",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"3000000000"}}}}',
            better=NO_DOUBT),
    _header("a yes in capitals",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"0",'
            '"committed":"TRUE"}}'),
    _header("a yes that is a number",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"0",'
            '"committed":1}}'),
    _header("a yes that is neither",
            f'{{"code":30,{_PLAIN},"extFields":{{"topic":"DialectTopic","queueId":"0",'
            '"committed":"maybe"}}'),
    _header("no fields where some are needed", f'{{"code":30,{_PLAIN}}}'),
    _header("fields that are null", f'{{"code":30,{_PLAIN},"extFields":null}}'),
    _header("single quotes",
            "{'code':30,'opaque':$opaque,'extFields':{'topic':'DialectTopic','queueId':'0'}}"),
    _header("no quotes",
            '{code:30,opaque:$opaque,extFields:{topic:"DialectTopic",queueId:0}}'),
    _header("a comma too many",
            f'{{"code":30,,{_PLAIN},{_TOPIC},}}'),
]  # fmt: skip

AREAS = {"dialect-bodies": BODIES, "dialect-whole": WHOLE, "dialect-headers": HEADERS}
