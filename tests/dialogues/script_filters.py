"""What is said about SQL filters: checked ahead, announced, used in pulls."""

from typing import Any

from player import Step
from steps import broker, create_topic, properties, pull, send

TOPIC, GROUP = "DialogueFilter", "DialogueFilterGroup"


def subscription(expression: str, kind: str = "SQL92", **more: Any) -> dict[str, Any]:
    return {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": kind,
        "subString": expression,
        "subVersion": 1,
        "tagsSet": [],
        "topic": TOPIC,
    } | more


def check(name: str, expression: str, kind: str = "SQL92", **more: Any) -> Step:
    """CHECK_CLIENT_CONFIG, as a consumer with a filter asks before it starts."""
    body = {
        "clientId": "dialogue@filter",
        "group": GROUP,
        "subscriptionData": subscription(expression, kind, **more.pop("data", {})),
    }
    return broker(name, 46, bodyJson=body, **more)


def heartbeat(name: str, group: str, data: dict[str, Any]) -> Step:
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [data],
        "unitMode": False,
    }
    beat = {
        "clientID": f"dialogue@{group}",
        "consumerDataSet": [consumer],
        "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
    }
    return broker(name, 34, bodyJson=beat, connection=group)


def by_sql(name: str, sql: str, **more: Any) -> Step:
    more.setdefault("expressionType", "SQL92")
    return pull(name, TOPIC, 0, subscription=sql, **more)


def order(name: str, number: int, **values: str) -> Step:
    unique = f"7F000001000018B4AAC20000000001{number:02d}"
    return send(name, TOPIC, properties=properties(UNIQ_KEY=unique, **values))


BETTER = {"codes": [23], "why": "what cannot be read must not let all (or nothing) pass"}

CHECKS: list[Step] = [
    check("tags", "TagA", "TAG"),
    check("a good condition", "price > 10 AND region IN ('eu', 'us')"),
    check("a broken condition", "price >"),
    check("strings are not ordered", "price > 'a'"),
    check("nothing", ""),
    check("more behind the end", "price > 10 oops", better=BETTER),
    check("an unknown kind", "price > 10", "XPATH"),
    broker("no subscription", 46, bodyJson={"clientId": "c", "group": GROUP}),
]

PULLS: list[Step] = [
    create_topic("a topic", TOPIC),
    order("a cheap one", 1, price="5", region="eu"),
    order("a dear one", 2, price="50", region="eu"),
    order("one without a price", 3, region="us"),
    order("one with a text for a price", 4, price="much", region="eu"),
    by_sql("by number", "price > 10"),
    by_sql("by text", "region = 'eu'"),
    by_sql("by text or number", "region = 'us' OR price < 10"),
    by_sql("by a number that cannot be read, then text", "price > 10 OR region = 'eu'"),
    by_sql("by list", "region IN ('us', 'asia')"),
    by_sql("by range", "price BETWEEN 5 AND 5"),
    by_sql("by absence", "price IS NULL"),
    by_sql("by unknown", "NOT (price > 10)"),
    by_sql("by what no message has", "region = 'mars'"),
    by_sql("two at most", "region = 'eu'", maxMsgNums=2),
    by_sql("by an unknown kind", "price > 10", expressionType="XPATH", better=BETTER),
    by_sql("with more behind the end", "price > 10 oops", better=BETTER),
    heartbeat("a member with a condition", GROUP, subscription("price > 10")),
    by_sql("as announced", "", consumerGroup=GROUP, sysFlag=0, subVersion=1),
    by_sql("newer than announced", "", consumerGroup=GROUP, sysFlag=0, subVersion=9),
    heartbeat("a member with a broken condition", "DialogueBad", subscription("price >")),
    by_sql("as badly announced", "", consumerGroup="DialogueBad", sysFlag=0, subVersion=1),
    pull(
        "by a Java class",
        TOPIC,
        0,
        sysFlag=12,
        subscription="org.example.Filter",
        better={"codes": [1], "why": "filters by class are gone; delivering all instead is worse"},
    ),
]

AREAS = {"filter-checks": CHECKS, "filter-pulls": PULLS}
