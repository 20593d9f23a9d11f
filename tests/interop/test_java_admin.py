"""Apache's admin tools of two releases, unchanged, against the cluster."""

import time

import pytest
from clients import JAVA_CLIENTS, JavaClient
from clusters import Cluster
from expect import bodies

from gantrymq import sync

pytestmark = [
    pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr),
    pytest.mark.timeout(240),
]

CLUSTER = "DefaultCluster"


class TestTopics:
    def test_a_topic_is_made_and_found(self, java: JavaClient, namesrv: str, topic: str) -> None:
        """
        A topic that was created is listed, has a route with its queues, and can be deleted.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=3)
        route = java.run("topic-route", namesrv=namesrv, topic=topic).value
        (queues,) = route["queueDatas"]

        assert topic in java.run("topic-list", namesrv=namesrv).value
        assert (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (3, 3, 6)

        java.run("delete-topic", namesrv=namesrv, topic=topic)

        assert topic not in java.run("topic-list", namesrv=namesrv).value

    def test_all_topics_come_with_their_settings(
        self, java: JavaClient, cluster: Cluster, topic: str
    ) -> None:
        """
        The broker tells the settings of all its topics, its own ones included.
        """
        java.run("create-topic", namesrv=cluster.namesrv, topic=topic, queues=2)
        found = java.run(
            "all-topic-config", namesrv=cluster.namesrv, broker=cluster.broker_addr
        ).value

        assert found[topic]["writeQueueNums"] == 2
        assert {"TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX"} <= found.keys()

    def test_a_topic_has_attributes(self, java: JavaClient, cluster: Cluster, topic: str) -> None:
        """
        The command line of RocketMQ 5 sets and removes them; what is unknown is refused in its
        broker's words.
        """
        if java.version == "4.9.8":
            with sync.Admin(cluster.namesrv) as admin:
                admin.create_topic(topic, queues=2, attributes={"message.type": "FIFO"})
        else:
            update = ["updateTopic", "-b", cluster.broker_addr, "-t", topic, "-r", "2", "-w", "2"]
            tool = {"namesrv": cluster.namesrv, "topic": topic}
            java.run(
                "mqadmin", **tool, words=[*update, "-a", "+message.type=DELAY,+reserve.time=1"]
            )
            java.run("mqadmin", **tool, words=[*update, "-a", "+message.type=FIFO,-reserve.time"])
            refused = java.run("mqadmin", **tool, words=[*update, "-a", "+nonsense=1"]).value
            assert "unsupported key: nonsense" in refused
        found = java.run(
            "all-topic-config", namesrv=cluster.namesrv, broker=cluster.broker_addr
        ).value[topic]

        assert 2 == found["writeQueueNums"]
        assert found.get("attributes") in ({"message.type": "FIFO"}, None)
        assert "attributes" in found or java.version == "4.9.8"

    def test_the_state_of_a_topic_counts_its_messages(
        self, java: JavaClient, namesrv: str, topic: str
    ) -> None:
        """
        Each queue tells its first and last offset and when it was written.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=2)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=10, shards=2)
        status = java.run("topic-status", namesrv=namesrv, topic=topic).value

        assert {queue: (row["minOffset"], row["maxOffset"]) for queue, row in status.items()} == {
            "0": (0, 5),
            "1": (0, 5),
        }
        assert all(row["lastUpdateTimestamp"] > 0 for row in status.values())


class TestCluster:
    def test_the_cluster_has_its_broker(self, java: JavaClient, cluster: Cluster) -> None:
        """
        The cluster list names the broker and its address.
        """
        found = java.run("cluster-list", namesrv=cluster.namesrv).value
        (name,) = found["clusterAddrTable"][CLUSTER]

        assert found["brokerAddrTable"][name]["brokerAddrs"] == {"0": cluster.broker_addr}

    def test_the_broker_tells_what_it_does(self, java: JavaClient, cluster: Cluster) -> None:
        """
        The figures that the cluster list prints are there and are numbers.
        """
        table = java.run(
            "broker-runtime", namesrv=cluster.namesrv, broker=cluster.broker_addr
        ).value

        assert float(table["putTps"].split()[0]) >= 0
        for name in ("msgPutTotalTodayNow", "msgGetTotalTodayNow", "commitLogMaxOffset"):
            assert int(table[name]) >= 0
        assert table["brokerVersionDesc"]

    def test_the_broker_tells_its_settings(self, java: JavaClient, cluster: Cluster) -> None:
        """
        The settings are readable as properties.
        """
        found = java.run("broker-config", namesrv=cluster.namesrv, broker=cluster.broker_addr).value

        assert found["brokerClusterName"] == CLUSTER
        assert found["listenPort"] == cluster.broker_addr.split(":")[1]

    def test_a_key_and_its_value_are_kept(self, java: JavaClient, namesrv: str, topic: str) -> None:
        """
        The name server stores, lists and forgets key-value settings.
        """
        found = java.run("kv", namesrv=namesrv, space=topic, value="v").value

        assert found == {"key": "v"}


class TestMessages:
    def test_a_message_is_found_by_its_ids(
        self, java: JavaClient, namesrv: str, topic: str
    ) -> None:
        """
        Both ids of a message, the broker's and the client's, lead to it.
        """
        sent = java.run("send-sync", namesrv=namesrv, topic=topic, count=3, keys="k").sent

        for line in sent:
            for name in ("offsetMsgId", "msgId"):
                found = java.run("view-message", namesrv=namesrv, topic=topic, id=line[name]).value
                assert found["body"] == f"body-{line['index']}"

    def test_messages_are_found_by_key(self, java: JavaClient, namesrv: str, topic: str) -> None:
        """
        A key that two messages share finds both.
        """
        for body in ("one", "two"):
            java.run("send-sync", namesrv=namesrv, topic=topic, count=3, keys="k", body=body)
        found = java.run("query-by-key", namesrv=namesrv, topic=topic, key="k1").value

        assert sorted(message["body"] for message in found) == ["one-1", "two-1"]

    def test_offsets_are_found_by_time(self, java: JavaClient, namesrv: str, topic: str) -> None:
        """
        The offset at a time between two sends is that of the second.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=5, body="before")
        between = int(time.time() * 1000) + 1
        time.sleep(0.01)  # the clock must have moved on before the next message is stored
        java.run("send-sync", namesrv=namesrv, topic=topic, count=5, body="after")
        (row,) = java.run("offsets", namesrv=namesrv, topic=topic, time=between).value.values()

        assert (row["min"], row["max"], row["atTime"]) == (0, 10, 5)
        assert 0 < row["earliest"] < between


class TestGroups:
    def test_a_connected_consumer_is_seen(
        self, java: JavaClient, cluster: Cluster, topic: str, group: str
    ) -> None:
        """
        While a consumer is up its connection, subscription and group are visible to the tools.
        """
        namesrv = cluster.namesrv
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        with java.start(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expression="a || b"
        ) as consumer:
            consumer.until("ready")
            found = java.run("consumer-connection", namesrv=namesrv, group=group).value
            groups = java.run("topic-groups", namesrv=namesrv, topic=topic).value
            known = java.run("all-groups", namesrv=namesrv, broker=cluster.broker_addr).value
            java.run("send-sync", namesrv=namesrv, topic=topic, tags=["a"])
            consumer.finish()

        assert len(found["clients"]) == 1
        assert found["messageModel"] == "CLUSTERING"
        assert sorted(found["subscriptions"][topic]["tagsSet"]) == ["a", "b"]
        assert groups == [group]
        assert known[group]["retryMaxTimes"] == 16

    def test_progress_and_backlog_are_told(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        The distance of a group to the end of each queue is known after it has gone.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=2)
        java.run("send-sync", namesrv=namesrv, topic=topic, count=10, shards=2)
        got = java.run(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=10
        )
        java.run("send-sync", namesrv=namesrv, topic=topic, count=4, shards=2)
        rows = java.run("consume-stats", namesrv=namesrv, group=group).value

        assert len(got.bodies) == 10
        assert {
            (row["consumerOffset"], row["brokerOffset"]) for row in rows if row["topic"] == topic
        } == {(5, 7)}

    def test_a_connected_producer_is_seen(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Every consumer has a producer of its own, and the tools see it.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        with java.start(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group
        ) as consumer:
            consumer.until("ready")
            found = java.run(
                "producer-connection", namesrv=namesrv, topic=topic, group="CLIENT_INNER_PRODUCER"
            ).value
            java.run("send-sync", namesrv=namesrv, topic=topic)
            got = consumer.finish()

        assert found["connectionSet"]
        assert got.bodies == bodies(1)


class TestCommands:
    """RocketMQ's command line itself, with what it prints."""

    @pytest.mark.parametrize("words", [["clusterList"], ["clusterList", "-m"]], ids="-".join)
    def test_the_cluster_is_listed(
        self, java: JavaClient, cluster: Cluster, words: list[str]
    ) -> None:
        """
        Each release finds every figure under the name that it knows.
        """
        said = java.run("mqadmin", namesrv=cluster.namesrv, words=words).value

        assert "broker-a" in said
        assert "Exception" not in said

    def test_one_member_handles_a_message_again(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        queryMsgById with a group and a client: through the broker to that client, and back.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        (sent,) = java.run("send-sync", namesrv=namesrv, topic=topic).of("sent")
        with java.start(
            "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=4
        ) as consumer:
            consumer.until("message")
            (client,) = java.run("consumer-connection", namesrv=namesrv, group=group).value[
                "clients"
            ]
            words = ["queryMsgById", "-i", sent["offsetMsgId"], "-g", group]
            words += ["-d", client["clientId"], *(["-t", topic] if "5." in repr(java) else [])]
            for _ in range(3):
                said = java.run("mqadmin", namesrv=namesrv, words=words).value
                assert "CR_SUCCESS" in said
            got = consumer.finish()

        assert got.bodies == bodies(1) * 4
