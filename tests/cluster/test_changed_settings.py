"""Settings changed over the wire."""

import asyncio
import random
import time
from typing import Any

import pytest
from peer import Peer, Run

from gantrymq.base.config import parse_properties
from gantrymq.base.files import load_text, save_text
from gantrymq.base.offload import InlineOffload
from gantrymq.model import Route
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork


async def settings_of(peer: Peer) -> dict[str, str]:
    return parse_properties((await peer.call(26)).body.decode())


FORBIDDEN = "the broker[127.0.0.1] sending message is forbidden"


async def send_plain(peer: Peer, topic: str) -> Command:
    return await peer.send(topic, b"x")


async def send_with_long_names(peer: Peer, topic: str) -> Command:
    return await peer.call(
        10, b"x", producerGroup="p", topic=topic, defaultTopic="TBW102", defaultTopicQueueNums=4,
        queueId=0, sysFlag=0, bornTimestamp=1, flag=0,
    )  # fmt: skip


async def send_half(peer: Peer, topic: str) -> Command:
    return await peer.call(
        310, b"x", a="p", b=topic, c="TBW102", d=4, e=0, f=4, g=1, h=0,
        i="TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01id\x02",
    )  # fmt: skip


WAYS_IN = (send_plain, send_with_long_names, send_half)


class TestBroker:
    def test_a_change_is_in_force_at_once_and_after_every_start(self, run: Run) -> None:
        """
        Nothing is said about a later start, and the change outlives several.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            assert 0 == (await peer.send("before", b"x")).code
            answer = await peer.call(25, b"autoCreateTopicEnable=false\n")
            assert (0, None) == (answer.code, answer.remark)
            assert "false" == (await settings_of(peer))["autoCreateTopicEnable"]
            assert 17 == (await peer.send("fresh", b"x")).code
            for _ in range(2):
                await cluster.stop_broker()
                await cluster.start_broker()
                peer = await Peer.to(cluster)
                assert "false" == (await settings_of(peer))["autoCreateTopicEnable"]
                assert 17 == (await peer.send("fresh", b"x")).code

        run(work)

    def test_a_file_of_an_early_version_is_named(self, caplog: pytest.LogCaptureFixture) -> None:
        """
        Its settings are not in force, and nobody has to find that out alone.
        """

        async def main() -> None:
            async with Cluster(memory=True) as cluster:
                old = f"{cluster.broker().config.store_path_root_dir}/config"
                await cluster.stop_broker()
                save_text(cluster.disk, f"{old}/brokerOverrides.properties", "fileReservedTime=1")
                await cluster.start_broker()
                assert 72 == cluster.broker().config.file_reserved_time

        simulate(main)

        assert "brokerOverrides.properties is no longer read" in caplog.text
        assert "config/broker.properties and delete it" in caplog.text

    def test_limits_of_the_store_change_at_once(self, run: Run) -> None:
        """
        A body that fitted is too large, then it fits again.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            assert 0 == (await peer.send("t", b"x" * 2000)).code
            await peer.call(25, b"maxMessageSize=1000\nsendThreadPoolQueueCapacity=77\n")
            assert 13 == (await peer.send("t", b"x" * 2000)).code
            await peer.call(25, b"maxMessageSize=4000\n")
            assert 0 == (await peer.send("t", b"x" * 2000)).code
            assert "77" == (await settings_of(peer))["sendThreadPoolQueueCapacity"]

        run(work)

    def test_what_waits_for_the_next_start_is_not_said_to_be_in_force(self, run: Run) -> None:
        """
        The answer names it; settings tell what is in force at the moment.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            answer = await peer.call(25, b"timerPrecisionMs=100\nsendMessageThreadPoolNums=4\n")
            assert 0 == answer.code
            assert (
                "in force from the next start of this broker: timerPrecisionMs; "
                "no effect here: sendMessageThreadPoolNums" == answer.remark
            )
            assert "1" == (await settings_of(peer))["timerPrecisionMs"]
            await cluster.stop_broker()
            await cluster.start_broker()
            assert "100" == (await settings_of(await Peer.to(cluster)))["timerPrecisionMs"]

        run(work)

    def test_a_permission_reaches_routes_at_once(self, run: Run) -> None:
        """
        Pulls are refused, and name servers tell clients to go elsewhere.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            peer, namesrv = await Peer.to(cluster), await Peer.to_namesrv(cluster)
            assert b'"perm":6' in (await namesrv.call(105, topic="orders")).body
            assert 0 == (await peer.call(25, b"brokerPermission=2\n")).code
            assert 16 == (await peer.pull("orders", 0)).code
            deadline = time.monotonic() + 10
            while b'"perm":2' not in (await namesrv.call(105, topic="orders")).body:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)

        run(work)

    def test_a_topic_is_created_where_a_broker_may_not_be_written_to(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        """
        During a rolling restart one master has brokerPermission=4: the topic is there, and listed
        with what the broker allows.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                address = cluster.broker("broker-b").address
                await admin.update_broker_config(address, {"brokerPermission": "4"})
                await admin.create_topic("orders")
            namesrv = await Peer.to_namesrv(cluster)
            route = fastjson.load_as((await namesrv.call(105, topic="orders")).body, Route)
            perms = {data.broker_name: data.perm for data in route.queue_datas}
            assert {"broker-a": 6, "broker-b": 4} == perms
            assert "orders on broker-b: listed with permission 4 instead of 6" in caplog.text

        run(work, brokers=2)

    def test_without_write_permission_ordered_topics_take_nothing(self, run: Run) -> None:
        """
        As RocketMQ's brokers: order would break on another broker, so the sender has to wait. What
        is under way to other topics is stored; their route keeps new messages away.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            topic = {"defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6,
                     "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}  # fmt: skip
            await peer.call(17, topic="ordered", order="true", **topic)
            await peer.call(17, topic="plain", order="false", **topic)
            for answer in [await send(peer, "ordered") for send in WAYS_IN]:
                assert (16, FORBIDDEN) == (answer.code, answer.remark)
            assert [0] * 3 == [(await send(peer, "plain")).code for send in WAYS_IN]
            await peer.call(25, b"brokerPermission=6\n")
            assert [0] * 3 == [(await send(peer, "ordered")).code for send in WAYS_IN]

        run(work, broker_permission=4)

    def test_other_name_servers_are_told_at_once(self, run: Run) -> None:
        """
        The one that is no longer named forgets the broker.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            old, new = await Peer.to_namesrv(cluster, 0), await Peer.to_namesrv(cluster, 1)
            peer = await Peer.to(cluster)
            addresses = cluster.namesrv.split(";")
            for address, gone, there in ((addresses[1], old, new), (addresses[0], new, old)):
                answer = await peer.call(25, f"namesrvAddr={address}\n".encode())
                assert (0, None) == (answer.code, answer.remark)
                deadline = time.monotonic() + 10
                while (
                    17 != (await gone.call(105, topic="orders")).code
                    or 0 != (await there.call(105, topic="orders")).code
                ):
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.02)

        run(work, nameservers=2)

    def test_changes_at_the_same_time_are_all_kept(self, run: Run) -> None:
        """
        Neither writes the file without the other.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            keys = ("maxMessageSize", "fileReservedTime", "syncFlushTimeout", "maxMsgsNumBatch")
            await asyncio.gather(*(peer.call(25, f"{key}=1234\n".encode()) for key in keys))
            await cluster.stop_broker()
            await cluster.start_broker()
            found = await settings_of(await Peer.to(cluster))
            assert ["1234"] * 4 == [found[key] for key in keys]

        run(work)

    def test_a_topic_that_a_setting_asks_for_is_made(self, run: Run) -> None:
        """
        Turned on while running, topics are made on first use as after a start.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            assert 17 == (await peer.send("fresh", b"x")).code
            await peer.call(25, b"autoCreateTopicEnable=true\n")
            assert 0 == (await peer.send("fresh", b"x")).code

        run(work, auto_create_topic_enable=False)

    def test_the_brokers_own_file_keeps_its_lines_and_has_a_backup(self, run: Run) -> None:
        """
        Only what changed is written.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.call(25, b"fileReservedTime=50\n")
            await peer.call(25, b"fileReservedTime=60\ndeleteWhen=03\n")
            path = f"{(await settings_of(peer))['storePathRootDir']}/config/broker.properties"
            assert "fileReservedTime=60\ndeleteWhen=03\n" == load_text(cluster.disk, path)
            assert "fileReservedTime=50\n" == load_text(cluster.disk, f"{path}.bak")

        run(work)

    def test_a_key_that_nobody_knows_is_passed_over(self, run: Run) -> None:
        """
        As RocketMQ's broker does, which answers success; ours says so as well.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            answer = await peer.call(25, b"fileReservedTiem=1\nfileReservedTime=9\n")
            assert (0, "unknown, passed over: fileReservedTiem") == (answer.code, answer.remark)
            found = await settings_of(peer)
            assert ("9", False) == (found["fileReservedTime"], "fileReservedTiem" in found)

        run(work)

    def test_what_cannot_be_is_refused_whole(self, run: Run) -> None:
        """
        A value that fits no setting, a role that cannot be, a setting that is not for a call.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            before = await settings_of(peer)
            for body, code in (
                (b"fileReservedTime=soon\nmaxMessageSize=5\n", 1),
                (b"maxMessageSize=5\nbrokerRole=SLAVE\n", 16),
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

    def test_a_change_outlives_a_restart(self) -> None:
        """
        It is written to the name server's own file; what the command line says stands above it.
        """

        async def main() -> None:
            network, disk = MemoryNetwork(random.Random(1)), MemoryDisk()

            async def settings(body: bytes = b"", **options: Any) -> dict[str, str]:
                config = NameServerConfig(
                    listen_port=9876, bind_address=HOST, config_store_path="/n/own.properties"
                )
                serving = run_nameserver(
                    config, network=network, disk=disk, offload=InlineOffload(), **options
                )
                async with serving:
                    connection = await network.connect(HOST, 9876, Connection, 3)
                    if body:
                        assert 0 == (await connection.call(Command(code=318, body=body), 3)).code
                    answer = await connection.call(Command(code=319), 3)
                    return parse_properties(answer.body.decode())

            found = await settings(b"orderMessageEnable=true\nnoSuch=1\n")
            assert ("true", False) == (found["orderMessageEnable"], "noSuch" in found)
            assert "true" == (await settings())["orderMessageEnable"]
            given = await settings(stronger=["orderMessageEnable"])
            assert "false" == given["orderMessageEnable"]

        simulate(main)
