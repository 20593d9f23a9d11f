"""What a broker does for its peers, over the wire, in memory and over TCP."""

import asyncio

from peer import Peer, Run, bodies, messages

from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster

ADDED = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "CLUSTER": "DefaultCluster"}
"""What a broker adds to the properties of every message."""


class TestPull:
    def test_is_held_until_a_message_arrives(self, run: Run) -> None:
        """
        A pull at the end of a queue waits for the next message instead of returning empty.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            held = asyncio.ensure_future(peer.pull("orders", 1, hold=15_000))
            await asyncio.sleep(0.05)
            assert not held.done()
            await peer.send("orders", b"second")

            answer = await held
            assert (0, [b"second"], "2") == (
                answer.code,
                bodies(answer),
                answer.ext["nextBeginOffset"],
            )

        run(work)

    def test_is_answered_empty_when_its_time_is_up(self, run: Run) -> None:
        """
        PULL_NOT_FOUND with all four offsets, as clients need them.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            answer = await peer.pull("orders", 1, hold=200)

            assert 19 == answer.code
            expected = {"maxOffset": "1", "minOffset": "0", "nextBeginOffset": "1",
                        "suggestWhichBrokerId": "0"}  # fmt: skip
            assert expected == answer.ext

        run(work)

    def test_sleeps_through_messages_with_other_tags(self, run: Run) -> None:
        """
        The hash in the queue entry decides; what is skipped is not asked for again.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"zero", props="TAGS\x01other")
            held = asyncio.ensure_future(peer.pull("orders", 1, hold=15_000, tags="wanted"))
            await asyncio.sleep(0.05)
            await peer.send("orders", b"one", props="TAGS\x01other")
            await asyncio.sleep(0.05)
            assert not held.done()
            await peer.send("orders", b"two", props="TAGS\x01wanted")

            answer = await held
            assert ([b"two"], "3") == (bodies(answer), answer.ext["nextBeginOffset"])

        run(work)

    def test_says_where_to_go_on_when_the_offset_is_wrong(self, run: Run) -> None:
        """
        Beyond the end: PULL_OFFSET_MOVED to the end.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            answer = await peer.pull("orders", 7)

            assert (21, "1") == (answer.code, answer.ext["nextBeginOffset"])

        run(work)

    def test_the_peer_that_went_away_wants_nothing_any_more(self, run: Run) -> None:
        """
        A held pull goes with its connection.
        """

        async def work(cluster: Cluster) -> None:
            peer, other = await Peer.to(cluster), await Peer.to(cluster)
            await other.send("orders", b"first")
            held = asyncio.ensure_future(peer.pull("orders", 1, hold=15_000))
            await asyncio.sleep(0.05)
            peer.close()
            await asyncio.gather(held, return_exceptions=True)
            await other.send("orders", b"second")

            assert 0 == (await other.pull("orders", 0)).code

        run(work)


class TestSend:
    def test_fills_the_record_with_what_the_sender_said(self, run: Run) -> None:
        """
        Body, tags, flag and the cluster's name come back; offsets count up.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            first = await peer.send("orders", b"one", props="TAGS\x01a\x02KEYS\x01k")
            second = await peer.send("orders", b"two")
            assert ("0", "1") == (first.ext["queueOffset"], second.ext["queueOffset"])
            found = messages(await peer.pull("orders", 0))

            assert [b"one", b"two"] == [message.body for message in found]
            expected = {"TAGS": "a", "KEYS": "k", **ADDED}
            assert expected == found[0].properties
            assert first.ext["msgId"] == found[0].offset_message_id

        run(work)

    def test_makes_a_topic_from_the_template(self, run: Run) -> None:
        """
        As many queues as the smaller of both sides wants, and the name server soon knows it.
        """

        async def work(cluster: Cluster) -> None:
            peer, namesrv = await Peer.to(cluster), await Peer.to_namesrv(cluster)
            assert 17 == (await namesrv.call(105, topic="fresh")).code
            await peer.send("fresh", b"x")
            while (route := await namesrv.call(105, topic="fresh")).code != 0:
                await asyncio.sleep(0.01)

            (queues,) = fastjson.loads(route.body)["queueDatas"]
            assert (4, 4, 6) == (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"])

        run(work)

    def test_a_topic_nobody_may_make_is_missing(self, run: Run) -> None:
        """
        Without automatic creation a send to an unknown topic is answered with TOPIC_NOT_EXIST.
        """

        async def work(cluster: Cluster) -> None:
            answer = await (await Peer.to(cluster)).send("fresh", b"x")

            assert 17 == answer.code

        run(work, auto_create_topic_enable=False)

    def test_a_oneway_message_is_stored_and_not_answered(self, run: Run) -> None:
        """
        The bit in the flag decides, not the code.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            from gantrymq.protocol.command import Command

            ext = {"a": "p", "b": "orders", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1"}
            peer.connection.oneway(Command(code=310, ext=ext, body=b"second"))
            answer = await peer.pull("orders", 1, hold=5_000)

            assert ([b"second"], []) == (bodies(answer), peer.pushed)

        run(work)


class TestDelay:
    def test_a_message_with_a_level_arrives_that_much_later(self, run: Run) -> None:
        """
        Level 1 is a second; tags and topic are the message's own again.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"now")
            before = cluster.clock.now_ms()
            await peer.send("orders", b"later", props="DELAY\x011\x02TAGS\x01a")
            answer = await peer.pull("orders", 1, hold=10_000, tags="a")

            (message,) = messages(answer)
            expected = {"TAGS": "a", "DELAY": "1", **ADDED}
            expected |= {"REAL_TOPIC": "orders", "REAL_QID": "0"}
            assert (b"later", expected) == (message.body, message.properties)
            assert 1000 <= cluster.clock.now_ms() - before < 3000

        run(work)

    def test_a_message_given_back_returns_and_in_the_end_is_dead(self, run: Run) -> None:
        """
        First %RETRY%, with one more try counted; beyond the limit %DLQ%, both with the origin's id.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.heartbeat("c", "g", "orders")
            sent = await peer.send("orders", b"poison")
            (message,) = messages(await peer.pull("orders", 0))
            back = await peer.call(36, offset=message.physical_offset, group="g", delayLevel=1)
            assert 0 == back.code
            (again,) = messages(await peer.pull("%RETRY%g", 0, hold=10_000))
            assert (b"poison", 1, "orders", sent.ext["msgId"]) == (
                again.body,
                again.reconsume_times,
                again.properties["RETRY_TOPIC"],
                again.properties["ORIGIN_MESSAGE_ID"],
            )
            await peer.call(
                36, offset=again.physical_offset, group="g", delayLevel=0, maxReconsumeTimes=1
            )
            (dead,) = messages(await peer.pull("%DLQ%g", 0, hold=10_000))
            assert (b"poison", 2) == (dead.body, dead.reconsume_times)

        run(work)


class TestGroups:
    def test_members_hear_of_each_other(self, run: Run) -> None:
        """
        NOTIFY_CONSUMER_IDS_CHANGED when one joins and when one leaves.
        """

        async def work(cluster: Cluster) -> None:
            one, two = await Peer.to(cluster), await Peer.to(cluster)
            await one.heartbeat("c1", "g", "orders")
            await asyncio.sleep(0.05)
            one.pushed.clear()
            await two.heartbeat("c2", "g", "orders")
            await asyncio.sleep(0.05)
            assert [40] == [command.code for command in one.pushed]
            ids = fastjson.loads((await one.call(38, consumerGroup="g")).body)
            assert ["c1", "c2"] == ids["consumerIdList"]
            one.pushed.clear()
            two.close()
            await asyncio.sleep(0.05)

            assert [{"consumerGroup": "g"}] == [command.ext for command in one.pushed]

        run(work)

    def test_progress_is_kept_over_a_restart(self, run: Run) -> None:
        """
        Also what was committed right before the stop.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            for _ in range(5):
                await peer.send("orders", b"x")
            await peer.pull("orders", 0)
            await peer.call(15, consumerGroup="g", topic="orders", queueId=0, commitOffset=3)
            await cluster.stop_broker()
            await cluster.start_broker()
            peer = await Peer.to(cluster)
            answer = await peer.call(14, consumerGroup="g", topic="orders", queueId=0)

            assert ("3", 5) == (answer.ext["offset"], len(messages(await peer.pull("orders", 0))))

        run(work)

    def test_a_deleted_topic_takes_its_progress_along(self, run: Run) -> None:
        """
        One made anew under the same name starts at 0 for everybody.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"x")
            await peer.pull("orders", 0)
            await peer.call(15, consumerGroup="g", topic="orders", queueId=0, commitOffset=1)
            assert 0 == (await peer.call(215, topic="orders")).code
            assert 17 == (await peer.pull("orders", 0)).code
            await peer.send("orders", b"new")
            answer = await peer.call(14, consumerGroup="g", topic="orders", queueId=0)

            assert ("0", [b"new"]) == (answer.ext["offset"], bodies(await peer.pull("orders", 0)))

        run(work)

    def test_one_owner_holds_a_queue(self, run: Run) -> None:
        """
        LOCK_BATCH_MQ gives only what is there and free; UNLOCK_BATCH_MQ frees it for the next.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"x")
            queue = {"topic": "orders", "brokerName": "broker-a", "queueId": 0}
            nowhere = {"topic": "nowhere", "brokerName": "broker-a", "queueId": 0}

            async def ask(code: int, client: str) -> list[object]:
                wanted = {"clientId": client, "consumerGroup": "g", "mqSet": [queue, nowhere]}
                answer = await peer.call(code, fastjson.dumps(wanted))
                return fastjson.loads(answer.body)["lockOKMQSet"] if answer.body else []

            assert [queue] == await ask(41, "c1")
            assert [] == await ask(41, "c2")
            await ask(42, "c1")
            assert [queue] == await ask(41, "c2")

        run(work)


class TestFinding:
    def test_a_message_is_found_by_id_and_by_key(self, run: Run) -> None:
        """
        The raw record, as it was stored; a key of another message finds nothing.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"other")
            await peer.send("orders", b"found", props="KEYS\x01one two\x02UNIQ_KEY\x01u1")
            (_, stored) = messages(await peer.pull("orders", 0))
            view = await peer.call(33, offset=stored.physical_offset)
            assert [b"found"] == bodies(view)
            for key in ("one", "two", "u1"):
                found = await peer.call(
                    12, topic="orders", key=key, maxNum=10, beginTimestamp=0, endTimestamp=2**62
                )
                assert [b"found"] == bodies(found)
            missing = await peer.call(
                12, topic="orders", key="three", maxNum=10, beginTimestamp=0, endTimestamp=2**62
            )
            assert 22 == missing.code

        run(work)


class TestNameServers:
    def test_a_broker_tells_all_of_them(self, run: Run) -> None:
        """
        They share nothing: each knows the broker by itself.
        """

        async def work(cluster: Cluster) -> None:
            for number in range(2):
                namesrv = await Peer.to_namesrv(cluster, number)
                info = fastjson.loads((await namesrv.call(106)).body)
                assert ["broker-a", "broker-b"] == sorted(info["brokerAddrTable"])

        run(work, nameservers=2, brokers=2)

    def test_a_stopped_broker_is_gone_from_the_routes(self, run: Run) -> None:
        """
        It says good-bye; the other one stays.
        """

        async def work(cluster: Cluster) -> None:
            namesrv = await Peer.to_namesrv(cluster)
            await cluster.stop_broker("broker-a")
            info = fastjson.loads((await namesrv.call(106)).body)

            assert ["broker-b"] == list(info["brokerAddrTable"])

        run(work, brokers=2)

    def test_key_values_survive(self, run: Run) -> None:
        """
        Put, get, list and delete.
        """

        async def work(cluster: Cluster) -> None:
            namesrv = await Peer.to_namesrv(cluster)
            await namesrv.call(100, namespace="n", key="k", value="v")
            assert "v" == (await namesrv.call(101, namespace="n", key="k")).ext["value"]
            listed = fastjson.loads((await namesrv.call(219, namespace="n")).body)
            assert {"table": {"k": "v"}} == listed
            await namesrv.call(102, namespace="n", key="k")
            assert 22 == (await namesrv.call(101, namespace="n", key="k")).code

        run(work)
