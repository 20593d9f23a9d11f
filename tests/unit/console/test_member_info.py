"""Running info: what members of any client say, in the console's words."""

from gantrymq.console.api.group_members import member_info
from gantrymq.protocol import fastjson

JAVA = b"""{"jstack":"TID: 1 STATE: RUNNABLE\\n","mqPopTable":{},
"mqTable":{{"brokerName":"broker-a","queueId":1,"topic":"orders"}:{"cachedMsgCount":3,
"commitOffset":7,"lastConsumeTimestamp":20,"lastPullTimestamp":10}},
"properties":{"PROP_CLIENT_VERSION":"V5_3_1","maxReconsumeTimes":16},
"statusTable":{"orders":{"consumeFailedMsgs":2,"consumeFailedTPS":0.5,"consumeOKTPS":4.0,
"consumeRT":1.5,"pullRT":2.0,"pullTPS":5.0}},
"subscriptionSet":[{"subString":"paid","topic":"orders"}]}"""


def test_a_java_member() -> None:
    """A client in Java tells queues, rates, subscriptions and where its threads are."""
    found = member_info("me", fastjson.loads(JAVA))

    (held,), (rates,) = found.queues, found.rates
    assert ("orders", "broker-a", 1, 7, 3, 10, 20) == (
        held.topic, held.broker, held.queue_id, held.committed, held.cached, held.last_pull_ms,
        held.last_consume_ms,
    )  # fmt: skip
    assert (4.0, 0.5, 1.5, 2) == (
        rates.ok_per_second, rates.failed_per_second, rates.consume_ms, rates.failed_last_hour,
    )  # fmt: skip
    assert {"orders": "paid"} == found.subscriptions
    assert "16" == found.properties["maxReconsumeTimes"]
    assert "TID: 1 STATE: RUNNABLE\n" == found.stacks


def test_a_member_that_says_odd_things() -> None:
    """What is missing or of another type is left out and is no error."""
    found = member_info(
        "me",
        {
            "properties": None, "mqTable": {"{broken": {"commitOffset": "x"}, "y": 1},
            "statusTable": {"orders": {"pullTPS": "fast"}}, "subscriptionSet": [1, {}], "jstack": 3,
        },
    )  # fmt: skip

    assert ("", 0, None) == (found.queues[0].topic, found.queues[0].queue_id, found.stacks)
    assert 0.0 == found.rates[0].pull_per_second
