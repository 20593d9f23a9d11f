"""Alibaba's Node client, unchanged, against the cluster."""

import pytest
from clients import JAVA_CLIENTS, NodeClient
from expect import assert_offsets_are_consecutive, bodies

pytestmark = pytest.mark.timeout(240)

node = NodeClient()
java = JAVA_CLIENTS[0]


@pytest.fixture(autouse=True)
def created(namesrv: str, topic: str) -> None:
    """Each test has its topic before it starts."""
    java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)


def test_sends_are_answered_and_delivered(namesrv: str, topic: str, group: str) -> None:
    """
    Every send is answered and every body delivered, tags and keys included.
    """
    sent = node.run("send-sync", namesrv=namesrv, topic=topic, count=20, tags=["a"], keys="k").sent
    got = node.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=20)

    assert [line["status"] for line in sent] == ["SEND_OK"] * 20
    assert sorted(got.bodies) == sorted(bodies(20))
    assert {line["tags"] for line in got.messages} == {"a"}
    assert {line["keys"] for line in got.messages} == {f"k{index}" for index in range(20)}
    assert_offsets_are_consecutive(got.messages)


def test_a_compressed_body_comes_back_whole(namesrv: str, topic: str, group: str) -> None:
    """
    A body that the producer compressed is read by the consumer.
    """
    node.run("send-sync", namesrv=namesrv, topic=topic, count=1, size=200_000)
    got = node.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group)

    assert got.bodies == ["body-0".ljust(200_000, ".")]


def test_tags_are_filtered(namesrv: str, topic: str, group: str) -> None:
    """
    A subscription to one tag gets it and no other.
    """
    node.run("send-sync", namesrv=namesrv, topic=topic, count=9, tags=["a", "b", "c"])
    got = node.run(
        "consume-concurrently",
        namesrv=namesrv,
        topic=topic,
        group=group,
        expression="b",
        expected=3,
        lingerMs=1000,
    )

    assert [line["tags"] for line in got.messages] == ["b"] * 3


def test_broadcasting_delivers_to_every_member(namesrv: str, topic: str, group: str) -> None:
    """
    Two members of a broadcasting group both get every message.
    """
    node.run("send-sync", namesrv=namesrv, topic=topic, count=6)
    arguments = {"namesrv": namesrv, "topic": topic, "group": group, "expected": 6}
    with (
        node.start("consume-broadcast", **arguments) as one,
        node.start("consume-broadcast", **arguments) as other,
    ):
        assert sorted(one.finish().bodies) == bodies(6)
        assert sorted(other.finish().bodies) == bodies(6)


def test_a_failed_message_comes_again(namesrv: str, topic: str, group: str) -> None:
    """
    A message sent back comes again through the retry topic, counted.
    """
    node.run("send-sync", namesrv=namesrv, topic=topic, count=1, keys="k")
    got = node.run(
        "consume-concurrently", namesrv=namesrv, topic=topic, group=group, failures=1, timeout=60
    )

    assert got.bodies == ["body-0"]
    assert [line["reconsumeTimes"] for line in got.messages] == [1]


def test_node_and_java_read_each_other(namesrv: str, topic: str, group: str) -> None:
    """
    What one client sends, compressed or not, the other receives.
    """
    for size in (0, 20_000):
        node.run("send-sync", namesrv=namesrv, topic=topic, count=2, body=f"node{size}", size=size)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=2, body=f"java{size}", size=size)
    expected = sorted(
        f"{language}{size}-{index}".ljust(size, ".")
        for language in ("node", "java")
        for size in (0, 20_000)
        for index in range(2)
    )

    for client, name in ((node, f"{group}_node"), (java, f"{group}_java")):
        got = client.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=name, expected=8
        )
        assert sorted(got.bodies) == expected
