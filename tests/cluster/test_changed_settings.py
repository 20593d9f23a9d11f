"""Settings changed over the wire."""

from peer import Peer, Run

from gantrymq.base.config import parse_properties
from gantrymq.testing.cluster import Cluster


async def settings_of(peer: Peer) -> dict[str, str]:
    return parse_properties((await peer.call(26)).body.decode())


class TestBroker:
    def test_a_change_is_in_force_after_the_next_start(self, run: Run) -> None:
        """
        The answer says that it takes one, and the change outlives several.
        """

        async def work(cluster: Cluster) -> None:
            answer = await (await Peer.to(cluster)).call(25, b"autoCreateTopicEnable=false\n")
            assert (0, True) == (answer.code, "next start" in (answer.remark or ""))
            for _ in range(2):
                await cluster.stop_broker()
                await cluster.start_broker()
                peer = await Peer.to(cluster)
                assert "false" == (await settings_of(peer))["autoCreateTopicEnable"]
                assert 17 == (await peer.send("fresh", b"x")).code

        run(work)

    def test_what_cannot_be_is_refused_whole(self, run: Run) -> None:
        """
        A value that fits no setting, a key nobody knows, a setting that is not for a call.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            before = await settings_of(peer)
            for body, code in (
                (b"fileReservedTime=soon\nmaxMessageSize=5\n", 1),
                (b"fileReservedTiem=1\n", 1),
                (b"listenPort=1\nfileReservedTime=1\n", 16),
                (b"messageDelayLevel=1x\n", 1),
            ):
                answer = await peer.call(25, body)
                assert code == answer.code
                assert answer.remark
            assert before == await settings_of(peer)

        run(work)


class TestNameServer:
    def test_a_change_is_in_force_at_once(self, run: Run) -> None:
        """
        The fixed queue list of an ordered topic appears in its route.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            peer = await Peer.to_namesrv(cluster)
            await peer.call(100, namespace="ORDER_TOPIC_CONFIG", key="orders", value="broker-a:4")
            assert b"orderTopicConf" not in (await peer.call(105, topic="orders")).body
            assert 0 == (await peer.call(318, b"orderMessageEnable=true\n")).code
            assert b'"orderTopicConf":"broker-a:4"' in (await peer.call(105, topic="orders")).body
            assert 1 == (await peer.call(318, b"listenPort=x\n")).code

        run(work)
