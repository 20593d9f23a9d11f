"""Apache's C++ client (librocketmq, inside the Python package `rocketmq`) against the cluster.

Its heartbeats name enums by their ordinals, and some of its numbers are text.
"""

from collections.abc import Callable
from typing import Any

import pytest
from clients import JAVA_CLIENTS, CppClient, Lines
from clusters import AGAINST, Clusters
from expect import assert_offsets_are_consecutive, bodies, by_shard
from grpc_stories import GrpcStories

pytestmark = pytest.mark.timeout(240)

cpp = CppClient()
COUNTS = {"tags": 12, "order": 40, "delay": 3, "retry": 1, "pull": 20}
DELAY_LEVEL, DELAY_MS = 2, 5_000


@pytest.fixture(scope="module")
def told(clusters: Clusters, grpc_stories: GrpcStories) -> dict[str, dict[str, Lines]]:
    """All conversations side by side, because most of them wait: what was sent and what came.

    The clients for gRPC, whose tests come later, wait at the same time.
    """
    namesrv = clusters.of(AGAINST).namesrv
    names = {kind: {"namesrv": namesrv, "topic": f"cpp_{kind}", "group": f"cpp_{kind}_group"}
             for kind in COUNTS}  # fmt: skip
    for each in names.values():
        JAVA_CLIENTS[0].run("create-topic", namesrv=namesrv, topic=each["topic"], queues=4)
    sending: dict[str, dict[str, Any]] = {
        "tags": {"tags": ["a", "b", "c"], "keys": "k"},
        "order": {"shards": 4},
        "delay": {"delayLevel": DELAY_LEVEL},
        "retry": {},
        "pull": {},
    }
    reading: dict[str, tuple[str, dict[str, Any]]] = {
        "tags": ("consume-concurrently",
                 {"expression": "a || c", "expected": 8, "lingerMs": 1000}),
        "order": ("consume-orderly", {"expected": 40}),
        "delay": ("consume-concurrently", {"expected": 3}),
        "retry": ("consume-concurrently", {"failures": 1, "timeout": 60}),
        "pull": ("pull", {"expected": 20}),
    }  # fmt: skip
    found: dict[str, dict[str, Lines]] = {}
    sent = {
        kind: cpp.run("send-sync", **names[kind], count=COUNTS[kind], **sending[kind])
        for kind in COUNTS
    }
    under_way = {
        kind: cpp.start(verb, **names[kind], **more) for kind, (verb, more) in reading.items()
    }
    for kind, running in under_way.items():
        with running:
            found[kind] = {"sent": sent[kind], "came": running.finish()}
    return found


@pytest.mark.parametrize("kind", COUNTS)
def test_every_send_is_answered(told: dict[str, dict[str, Lines]], kind: str) -> None:
    """
    With a status and an id, also to a chosen queue and with a delay.
    """
    sent = told[kind]["sent"].sent

    assert ["OK"] * COUNTS[kind] == [line["status"] for line in sent]
    assert COUNTS[kind] == len({line["msgId"] for line in sent})


def test_a_push_consumer_gets_the_tags_it_wants(told: dict[str, dict[str, Lines]]) -> None:
    """
    And no others; tags and keys come as they were sent.
    """
    came = told["tags"]["came"].messages
    wanted = [index for index in range(12) if index % 3 != 1]

    assert sorted(f"body-{index}" for index in wanted) == sorted(line["body"] for line in came)
    assert {(f"body-{i}", f"k{i}", "abc"[i % 3]) for i in wanted} == {
        (line["body"], line["keys"], line["tags"]) for line in came
    }


def test_order_is_kept_for_each_key(told: dict[str, dict[str, Lines]]) -> None:
    """
    An ordered consumer locks its queues and handles each key in the order of the sends.
    """
    expected = {str(shard): list(range(shard, 40, 4)) for shard in range(4)}

    assert expected == by_shard(told["order"]["came"].messages)


def test_delayed_messages_wait(told: dict[str, dict[str, Lines]]) -> None:
    """
    A level's time passes between the first send and the first delivery.
    """
    came = told["delay"]["came"].messages

    assert bodies(3) == sorted(line["body"] for line in came)
    assert all(line["storeTime"] - line["bornTime"] >= DELAY_MS for line in came)


def test_a_failed_message_comes_again(told: dict[str, dict[str, Lines]]) -> None:
    """
    Sent back it comes again through the retry topic, counted.
    """
    lines = told["retry"]["came"]

    assert [0] == [line["reconsumeTimes"] for line in lines.of("failed")]
    assert [("body-0", 1)] == [(line["body"], line["reconsumeTimes"]) for line in lines.messages]


def test_a_pull_consumer_reads_every_queue(told: dict[str, dict[str, Lines]]) -> None:
    """
    From the first message on.
    """
    came = told["pull"]["came"]

    assert sorted(bodies(20)) == sorted(came.bodies)
    assert_offsets_are_consecutive(came.messages)


def test_java_reads_what_the_cpp_client_sends(
    namesrv: str, topic: str, group: str, fresh: Callable[[str], str]
) -> None:
    """
    And the other way round: ids, tags and keys are understood by both.
    """
    java = JAVA_CLIENTS[-1]
    java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
    cpp.run("send-sync", namesrv=namesrv, topic=topic, count=3, tags=["a"], keys="k", body="cpp")
    java.run("send-sync", namesrv=namesrv, topic=topic, count=3, tags=["a"], keys="k")
    expected = sorted(bodies(3, "cpp") + bodies(3))

    for client, name in ((cpp, fresh("group")), (java, group)):
        got = client.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=name, expected=6
        )
        assert expected == sorted(got.bodies)
        assert {"a"} == {line["tags"] for line in got.messages}
