"""The route table: who is where, and who is gone."""

import pytest

from gantrymq.model import DataVersion, TopicConfig
from gantrymq.nameserver.registration import decode_body
from gantrymq.nameserver.table import Registration, RegistrationRefused, RouteTable

TOPICS = {name: TopicConfig(topic_name=name) for name in ("T", "U")}


def registration(
    name: str = "b", address: str = "a:1", broker_id: int = 0, **more: object
) -> Registration:
    more.setdefault("topics", TOPICS)
    return Registration(cluster="C", name=name, address=address, broker_id=broker_id, **more)  # type: ignore[arg-type]


class TestRegistering:
    def test_a_route_needs_queues_and_a_broker(self) -> None:
        """
        Both come with a registration, and not before.
        """
        table = RouteTable()
        assert table.route("T") is None
        table.register(registration(), "connection", 0)
        route = table.route("T")

        assert route is not None
        assert (
            [q.broker_name for q in route.queue_datas],
            route.broker_datas[0].broker_addrs,
        ) == (["b"], {"0": "a:1"})

    def test_a_slave_is_told_its_master(self) -> None:
        """
        Address and HA address of id 0.
        """
        table = RouteTable()
        table.register(registration(ha_address="a:2"), 1, 0)

        assert table.register(registration(address="s:1", broker_id=1), 2, 0) == ("a:1", "a:2")

    def test_a_slave_alone_brings_no_queues(self) -> None:
        """
        Only the master says what a topic looks like.
        """
        table = RouteTable()
        table.register(registration(broker_id=1), 1, 0)

        assert table.route("T") is None

    def test_a_first_registration_with_one_topic_is_refused(self) -> None:
        """
        It is an increment that got here before the whole.
        """
        with pytest.raises(RegistrationRefused):
            RouteTable().register(registration(topics={"T": TOPICS["T"]}), 1, 0)

    def test_one_more_topic_is_added_later(self) -> None:
        """
        An increment leaves the other topics alone.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)
        more = {"V": TopicConfig(topic_name="V")}
        table.register(registration(topics=more, version=DataVersion(counter=1)), 1, 0)

        assert table.topics() == ["T", "U", "V"]

    def test_an_address_that_changes_its_id_is_one_broker(self) -> None:
        """
        A slave made master by hand must not stand in the route twice.
        """
        table = RouteTable()
        table.register(registration(broker_id=1), 1, 0)
        table.register(registration(broker_id=0), 1, 0)
        data = table.members("b")

        assert data is not None
        assert data.broker_addrs == {"0": "a:1"}


class TestLosing:
    def test_a_silent_broker_is_dropped_with_its_queues(self) -> None:
        """
        After 120 s without a word, and not before.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)

        assert table.expire(120_000) == []
        assert table.expire(120_001) == ["a:1"]
        assert table.route("T") is None
        assert table.cluster_info().cluster_addr_table == {}

    def test_a_sign_of_life_counts(self) -> None:
        """
        A heartbeat without news keeps a broker.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)
        table.heard("a:1", 100_000)

        assert table.expire(200_000) == []

    def test_a_closed_connection_drops_its_broker_at_once(self) -> None:
        """
        A closed connection drops the broker that registered over it, and no other.
        """
        table = RouteTable()
        table.register(registration(), "one", 0)
        table.register(registration("c", "c:1"), "two", 0)

        assert table.drop_connection("one") == ["a:1"]
        route = table.route("T")
        assert route is not None
        assert [data.broker_name for data in route.broker_datas] == ["c"]

    def test_the_last_address_takes_the_name_along(self) -> None:
        """
        While a slave lives, the name and its queues stay.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)
        table.register(registration(address="s:1", broker_id=1), 2, 0)
        table.unregister("b", "a:1", 0)
        assert table.route("T") is not None
        table.unregister("b", "s:1", 1)

        assert table.route("T") is None

    @pytest.mark.parametrize("crashes", [False, True], ids=["stops", "crashes"])
    def test_a_second_broker_with_one_id_does_not_take_the_first_along(self, crashes: bool) -> None:
        """
        When the second one goes, the first one, which lives, is listed again at once.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)
        table.register(registration(address="s:1", broker_id=1), 2, 0)
        table.register(registration(address="t:1", broker_id=1), 3, 0)
        assert table.cluster_info().broker_addr_table["b"].broker_addrs["1"] == "t:1"
        if crashes:
            table.drop_connection(3)
        else:
            table.unregister("b", "t:1", 1)

        assert table.cluster_info().broker_addr_table["b"].broker_addrs["1"] == "s:1"
        table.unregister("b", "s:1", 1)
        assert table.cluster_info().broker_addr_table["b"].broker_addrs == {"0": "a:1"}


class TestPermissions:
    def test_writing_is_taken_and_given_back(self) -> None:
        """
        The count says how many topics were touched.
        """
        table = RouteTable()
        table.register(registration(), 1, 0)
        assert table.set_write("b", False) == 2
        route = table.route("T")
        assert route is not None
        assert route.queue_datas[0].perm == 4
        assert table.set_write("b", True) == 2

        assert route.queue_datas[0].perm == 6


class TestPackedBody:
    def test_a_4_9_broker_may_pack_its_topics(self) -> None:
        """
        Version, topic lines and filter servers in one zlib stream.
        """
        import struct
        import zlib

        def part(text: bytes) -> bytes:
            return struct.pack(">i", len(text)) + text

        packed = zlib.compress(
            part(b'{"counter":3,"timestamp":9}')
            + struct.pack(">i", 1)
            + part(b"T 4 8 6 SINGLE_TAG")
            + part(b"[]")
        )
        body = decode_body(packed)
        topic = body.topics.topic_config_table["T"]

        assert (
            body.topics.data_version.counter,
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm,
        ) == (3, 4, 8, 6)
