"""Apache's Go client, unchanged, against the cluster."""

import pytest
from clients import JAVA_CLIENTS, GoClient, JavaClient
from expect import assert_offsets_are_consecutive, bodies, by_shard

pytestmark = pytest.mark.timeout(240)

go = GoClient()


@pytest.fixture(autouse=True)
def created(namesrv: str, topic: str) -> None:
    """The Go client refreshes routes late: each test has its topic before it starts."""
    JAVA_CLIENTS[0].run("create-topic", namesrv=namesrv, topic=topic, queues=4)


class TestSending:
    @pytest.mark.parametrize("verb", ["send-sync", "send-async"])
    def test_every_send_is_answered_and_delivered(
        self, namesrv: str, topic: str, group: str, verb: str
    ) -> None:
        """
        Sends, one by one or many at once, are answered with ids and offsets and delivered.
        """
        sent = go.run(verb, namesrv=namesrv, topic=topic, count=20).sent
        got = go.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=20)

        assert [line["status"] for line in sent] == ["SEND_OK"] * 20
        assert sorted(got.bodies) == sorted(bodies(20))
        assert {line["offsetMsgId"] for line in sent} == {
            line["offsetMsgId"] for line in got.messages
        }
        assert_offsets_are_consecutive(got.messages)

    def test_oneway_sends_arrive(self, namesrv: str, topic: str, group: str) -> None:
        """
        Sends without an answer are stored all the same.
        """
        go.run("send-oneway", namesrv=namesrv, topic=topic, count=20)
        got = go.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=21)

        assert sorted(got.bodies) == sorted([*bodies(20), "fence"])

    def test_a_batch_lies_in_one_queue(self, namesrv: str, topic: str, group: str) -> None:
        """
        The messages of a batch get consecutive offsets in one queue.
        """
        (sent,) = go.run("send-batch", namesrv=namesrv, topic=topic, count=10, keys="k").sent
        got = go.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=10)

        in_order = sorted(got.messages, key=lambda line: int(line["queueOffset"]))
        assert [line["body"] for line in in_order] == bodies(10)
        assert [line["queueOffset"] for line in in_order] == list(range(10))
        assert {line["queueId"] for line in in_order} == {sent["queueId"]}
        assert [line["keys"] for line in in_order] == [f"k{index}" for index in range(10)]

    def test_a_compressed_body_comes_back_whole(self, namesrv: str, topic: str, group: str) -> None:
        """
        A body that the producer compressed is read by the consumer.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=1, size=200_000)
        got = go.run("consume-concurrently", namesrv=namesrv, topic=topic, group=group)

        assert got.bodies == ["body-0".ljust(200_000, ".")]


class TestConsuming:
    def test_tags_are_filtered(self, namesrv: str, topic: str, group: str) -> None:
        """
        A subscription to some tags gets these and no others.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=12, tags=["a", "b", "c"])
        got = go.run(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            expression="a || c",
            expected=8,
            lingerMs=1000,
        )

        assert sorted(line["tags"] for line in got.messages) == ["a"] * 4 + ["c"] * 4

    def test_order_is_kept_for_each_key(self, namesrv: str, topic: str, group: str) -> None:
        """
        An ordered consumer locks its queues and handles each key in the order of the sends.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=40, shards=4)
        got = go.run("consume-orderly", namesrv=namesrv, topic=topic, group=group, expected=40)

        expected = {str(shard): list(range(shard, 40, 4)) for shard in range(4)}
        assert by_shard(got.messages) == expected

    def test_broadcasting_delivers_to_every_member(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Two members of a broadcasting group both get every message.
        """
        arguments = {"namesrv": namesrv, "topic": topic, "group": group, "expected": 6}
        go.run("send-sync", namesrv=namesrv, topic=topic, count=6)
        with (
            go.start("consume-broadcast", **arguments) as one,
            go.start("consume-broadcast", **arguments) as other,
        ):
            assert sorted(one.finish().bodies) == bodies(6)
            assert sorted(other.finish().bodies) == bodies(6)

    def test_a_failed_message_comes_again(self, namesrv: str, topic: str, group: str) -> None:
        """
        A message sent back comes again through the retry topic, counted.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=1)
        got = go.run(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            failures=1,
            timeout=60,
        )

        assert got.bodies == ["body-0"]
        assert [line["reconsumeTimes"] for line in got.messages] == [1]

    def test_a_pull_consumer_polls(self, namesrv: str, topic: str, group: str) -> None:
        """
        The pull consumer gets every message and commits its progress.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=20)
        got = go.run("pull", namesrv=namesrv, topic=topic, group=group, expected=20)

        assert sorted(got.bodies) == sorted(bodies(20))


class TestAcrossLanguages:
    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    def test_go_and_java_read_each_other(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        What one client sends, tags and keys included, the other receives.
        """
        go.run("send-sync", namesrv=namesrv, topic=topic, count=5, tags=["a"], keys="k", body="go")
        java.run("send-sync", namesrv=namesrv, topic=topic, count=5, tags=["a"], keys="k")
        expected = sorted(bodies(5, "go") + bodies(5))

        for client, name in ((go, f"{group}_go"), (java, f"{group}_java")):
            got = client.run(
                "consume-concurrently", namesrv=namesrv, topic=topic, group=name, expected=10
            )
            assert sorted(got.bodies) == expected
            assert {line["tags"] for line in got.messages} == {"a"}
