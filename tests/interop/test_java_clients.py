"""Apache's Java clients of two releases, unchanged, against the cluster."""

import re
import time
from collections.abc import Callable

import pytest
from clients import JAVA_CLIENTS, JavaClient
from expect import assert_offsets_are_consecutive, bodies, by_shard
from wire import Connection

SHARED_SECONDS_MAX = 40.0

pytestmark = [
    pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr),
    pytest.mark.timeout(240),
]


class TestSending:
    def test_a_sync_send_is_stored_and_answered(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Every send is answered SEND_OK with an id and an offset, and every body is delivered.
        """
        sent = java.run("send-sync", namesrv=namesrv, topic=topic, count=20).sent
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=20
        )

        assert [line["status"] for line in sent] == ["SEND_OK"] * 20
        assert sorted(got.bodies) == sorted(bodies(20))
        assert {line["msgId"] for line in sent} == {line["msgId"] for line in got.messages}
        assert {line["offsetMsgId"] for line in sent} == {
            line["offsetMsgId"] for line in got.messages
        }
        assert_offsets_are_consecutive(got.messages)

    def test_async_sends_are_all_answered(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Many sends in flight on one connection each get their own answer.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
        sent = java.run("send-async", namesrv=namesrv, topic=topic, count=100).sent
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=100
        )

        assert sorted(line["index"] for line in sent) == list(range(100))
        assert sorted(got.bodies) == sorted(bodies(100))
        assert {(line["queueId"], line["queueOffset"]) for line in sent} == {
            (line["queueId"], line["queueOffset"]) for line in got.messages
        }

    def test_oneway_sends_arrive(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Sends without an answer are stored all the same.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        java.run("send-oneway", namesrv=namesrv, topic=topic, count=20)
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=21
        )

        assert sorted(got.bodies) == sorted([*bodies(20), "fence"])

    def test_a_batch_gets_consecutive_offsets(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        The messages of a batch lie side by side in one queue, each with an id of its own.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
        (sent,) = java.run(
            "send-batch", namesrv=namesrv, topic=topic, count=10, tags=["a"], keys="k"
        ).sent
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=10
        )

        in_order = sorted(got.messages, key=lambda line: int(line["queueOffset"]))
        assert [line["queueOffset"] for line in in_order] == list(range(10))
        assert {line["queueId"] for line in in_order} == {sent["queueId"]}
        assert [line["body"] for line in in_order] == bodies(10)
        assert [line["offsetMsgId"] for line in in_order] == sent["offsetMsgId"].split(",")
        assert len({line["msgId"] for line in in_order}) == 10
        assert [line["keys"] for line in in_order] == [f"k{index}" for index in range(10)]

    def test_a_compressed_body_comes_back_whole(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        A body above the client's limit is compressed by the producer and read by the consumer.
        """
        java.run("send-sync", namesrv=namesrv, topic=topic, count=2, size=200_000)
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=2
        )

        assert sorted(got.bodies) == [body.ljust(200_000, ".") for body in bodies(2)]

    def test_user_properties_travel(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Properties of the user arrive as they were sent, characters beyond ASCII included.
        """
        properties = {"colour": "grün", "名": "值"}
        java.run("send-sync", namesrv=namesrv, topic=topic, count=1, properties=properties)
        (message,) = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group
        ).messages

        assert properties.items() <= message["properties"].items()

    def test_a_delayed_message_comes_late(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Delay level 2 holds a message back for 5 seconds.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        before = time.time()
        java.run("send-sync", namesrv=namesrv, topic=topic, count=1, delayLevel=2)
        (message,) = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group
        ).messages

        assert message["body"] == "body-0"
        assert message["storeTime"] / 1000 - before >= 5
        assert message["properties"]["REAL_TOPIC"] == topic


class TestConsuming:
    def test_tags_are_filtered(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        A subscription to some tags gets these and no others.
        """
        java.run("send-sync", namesrv=namesrv, topic=topic, count=12, tags=["a", "b", "c"])
        got = java.run(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            expression="a || c",
            expected=8,
            lingerMs=1000,
        )

        assert {line["tags"] for line in got.messages} == {"a", "c"}
        assert len(got.messages) == 8

    def test_order_is_kept_for_each_key(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Messages of one key are sent to one queue and handled in the order they were sent.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=40, shards=4)
        got = java.run("consume-orderly", namesrv=namesrv, topic=topic, group=group, expected=40)

        expected = {str(shard): list(range(shard, 40, 4)) for shard in range(4)}
        assert by_shard(got.messages) == expected

    def test_a_failing_ordered_message_holds_its_queue(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        An ordered consumer retries in place: what comes after in the queue waits.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=3)
        got = java.run(
            "consume-orderly", namesrv=namesrv, topic=topic, group=group, expected=3, failures=1
        )

        assert got.bodies == bodies(3)
        assert [line["body"] for line in got.of("failed")] == bodies(3)

    def test_a_failed_message_comes_again(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        A message sent back goes through the retry topic and keeps its id.
        """
        java.run("send-sync", namesrv=namesrv, topic=topic, count=2)
        got = java.run(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            expected=2,
            failures=1,
            retryLevel=1,
        )

        assert sorted(got.bodies) == bodies(2)
        assert [line["reconsumeTimes"] for line in got.messages] == [1, 1]
        assert {line["topic"] for line in got.messages} == {topic}
        assert {line["msgId"] for line in got.messages} == {
            line["msgId"] for line in got.of("failed")
        }
        assert all(
            line["properties"]["ORIGIN_MESSAGE_ID"] in {f["offsetMsgId"] for f in got.of("failed")}
            for line in got.messages
        )

    def test_a_message_that_always_fails_is_dead_letter(
        self, java: JavaClient, namesrv: str, topic: str, group: str, fresh: Callable[[str], str]
    ) -> None:
        """
        After the last retry a message lies in %DLQ%group, readable by others.
        """
        java.run("send-sync", namesrv=namesrv, topic=topic, count=1)
        with java.start(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            failures=100,
            maxReconsumeTimes=0,
        ) as consumer:
            consumer.until("failed")
            (dead,) = java.run(
                "consume-concurrently",
                namesrv=namesrv,
                topic=f"%DLQ%{group}",
                group=fresh("undertaker"),
                timeout=60,
            ).messages

        assert dead["body"] == "body-0"
        assert dead["properties"]["RETRY_TOPIC"] == topic

    def test_broadcasting_delivers_to_every_member(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Two members of a broadcasting group both get every message.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=2)
        arguments = {"namesrv": namesrv, "topic": topic, "group": group, "expected": 6}
        with (
            java.start("consume-broadcast", **arguments) as one,
            java.start("consume-broadcast", **arguments) as other,
        ):
            one.until("ready")
            other.until("ready")
            java.run("send-sync", namesrv=namesrv, topic=topic, count=6)

            assert sorted(one.finish().bodies) == bodies(6)
            assert sorted(other.finish().bodies) == bodies(6)

    def test_two_members_share_the_queues(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Members of a clustering group divide the messages; none is lost, none is doubled.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
        half = {"namesrv": namesrv, "topic": topic, "group": group, "expected": 20}
        with (
            java.start("consume-concurrently", **half) as one,
            java.start("consume-concurrently", **half) as other,
        ):
            one.until("ready")
            other.until("ready")
            members = _wait_for_members(java, namesrv, group, 2)
            _wait_until_shared(namesrv, group, topic, members, each=2)
            java.run("send-sync", namesrv=namesrv, topic=topic, count=40, shards=4)
            received = one.finish().bodies + other.finish().bodies

        assert len(received) == len(set(received)) == 40

    def test_a_consumer_that_waits_is_woken_by_a_message(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        A pull held at the end of a queue returns with the message, long before it times out.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        with java.start(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=2
        ) as consumer:
            # The first message is through: from here on a pull is always waiting.
            java.run("send-sync", namesrv=namesrv, topic=topic, body="first")
            consumer.until("message")
            (sent,) = java.run("send-sync", namesrv=namesrv, topic=topic, body="second").sent
            got = consumer.until("message")

        consumed_after_ms = int(got["properties"]["CONSUME_START_TIME"]) - got["storeTime"]
        assert sent["msgId"] == got["msgId"]
        assert consumed_after_ms < 5000

    def test_progress_is_kept_by_the_broker(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        A group that comes back starts where it stopped.
        """
        arguments = {"namesrv": namesrv, "topic": topic, "group": group, "expected": 5}
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=2)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=5, body="first")
        java.run("consume-concurrently", **arguments)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=5, body="second")
        again = java.run("consume-concurrently", **arguments, lingerMs=1000)

        assert sorted(again.bodies) == bodies(5, "second")


class TestPulling:
    def test_a_pull_consumer_reads_every_queue(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Queues are found, read to their end, and the offset committed is read back.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=4)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=40, shards=4)
        got = java.run("pull", namesrv=namesrv, topic=topic, group=group)

        assert len(got.bodies) == len(set(got.bodies)) == 40
        assert [line["offset"] for line in got.of("committed")] == [10, 10, 10, 10]
        assert {(line["min"], line["max"]) for line in got.of("pulled")} == {(0, 10)}

    def test_a_pull_outside_the_queue_is_put_right(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        An offset far beyond the end is answered with the end of the queue.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=3)
        got = java.run("pull", namesrv=namesrv, topic=topic, group=group, offset=1000)

        (pulled,) = got.of("pulled")
        assert (pulled["status"], pulled["next"]) == ("OFFSET_ILLEGAL", 3)

    @pytest.mark.parametrize("verb", ["lite-pull", "lite-assign"])
    def test_a_lite_pull_consumer_polls(
        self, java: JavaClient, namesrv: str, topic: str, group: str, verb: str
    ) -> None:
        """
        Both ways of the lite pull consumer, subscribing and assigning, get every message; the
        one that assigns then seeks the beginning and gets them again.
        """
        times = 2 if verb == "lite-assign" else 1
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=2)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=20)
        got = java.run(verb, namesrv=namesrv, topic=topic, group=group, expected=20)

        assert sorted(got.bodies) == sorted(bodies(20) * times)


def _wait_until_shared(
    namesrv: str, group: str, topic: str, members: list[str], *, each: int
) -> None:
    """Until every member holds so many queues: what comes before may go to one of them alone."""
    with Connection(namesrv) as connection:
        found = re.search(rb'"brokerAddrs":\{"?0"?:"([^"]+)"', connection.ask(106).body)
    assert found is not None
    held = re.compile(rf'"queueId":\d+,"topic":"{topic}"'.encode())
    end = time.monotonic() + SHARED_SECONDS_MAX
    while time.monotonic() < end:
        with Connection(found[1].decode()) as connection:
            said = [
                connection.ask(307, {"consumerGroup": group, "clientId": member}).body
                for member in members
            ]
        if all(len(set(held.findall(body))) == each for body in said):
            return
        time.sleep(0.1)
    raise AssertionError(f"the queues of {topic} were never shared: {said}")


def _wait_for_members(java: JavaClient, namesrv: str, group: str, count: int) -> list[str]:
    """Until the broker knows this many members; each look takes as long as a JVM's start."""
    for _ in range(20):
        found = java.run("consumer-connection", namesrv=namesrv, group=group).value
        if len(found["clients"]) == count:
            return [client["clientId"] for client in found["clients"]]
    raise AssertionError(f"{group} never had {count} members")
