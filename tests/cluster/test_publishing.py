"""Epochs: staged where nobody reads, published once, whoever repeats them."""

import asyncio

import msgspec
import pytest
from epochs import TOPIC, WRITER, publisher, stored, visible, write
from peer import Peer, Run

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.client.produce.epochs import Epoch, stable_id
from gantrymq.model import PUBLISH_TOPIC, STAGE_TOPIC, Message
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.ids import encode_host
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIVE = ["a1", "a2", "b1", "b2", "c1"]


class TestOneEpoch:
    def test_nothing_is_visible_before_the_epoch_is_published(self, run: Run) -> None:
        """
        Staged messages are in no queue that anybody may read; published, all are.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 2)
            async with publisher(cluster) as one:
                epoch = Epoch(one, 0)
                await epoch.add([Message(TOPIC, body) for body in FIVE])
                before = visible(cluster)
                peer = await Peer.to(cluster)
                peeked = await peer.pull(STAGE_TOPIC, 0)
                outcome = await epoch.publish()

            assert [] == before
            assert ResponseCode.NO_PERMISSION == peeked.code
            assert (5, False) == tuple(outcome)
            assert FIVE == visible(cluster)

        run(work)

    def test_consumers_get_the_messages_as_they_were_sent(self, run: Run) -> None:
        """
        Tags, keys, properties, flag and order by key are those of an ordinary send.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 4)
            async with publisher(cluster) as one:
                epoch = Epoch(one, 3)
                await epoch.add(
                    [
                        Message(
                            TOPIC, f"{number}", tags="t", keys=["k1", "k2"], flag=7,
                            properties={"colour": "red"}, sharding_key="same",
                        )
                        for number in range(4)
                    ]
                )  # fmt: skip
                await epoch.publish()
            found = stored(cluster)
            first = found[0].properties

            assert [b"0", b"1", b"2", b"3"] == [message.body for message in found]
            assert {7} == {message.flag for message in found}
            assert 1 == len({message.queue_id for message in found})
            assert ("t", "k1 k2", "red") == (first["TAGS"], first["KEYS"], first["colour"])
            assert 4 == len({message.properties["UNIQ_KEY"] for message in found})

        run(work)

    def test_delays_count_from_the_publication(self) -> None:
        """
        A message with a level or a time waits once it is published, not while it is staged.
        """

        async def story() -> tuple[list[str], list[str], list[str]]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic(TOPIC, 1)
                async with publisher(cluster) as one:
                    epoch = Epoch(one, 0)
                    await epoch.add(
                        [
                            Message(TOPIC, "now"),
                            Message(TOPIC, "level", delay_level=3),
                            Message(TOPIC, "timer", delay=20.0),
                            Message(TOPIC, "now too"),
                        ]
                    )
                    await asyncio.sleep(60)
                    await epoch.publish()
                at_once = visible(cluster)
                await asyncio.sleep(11)
                later = visible(cluster)
                await asyncio.sleep(11)
                return at_once, later, visible(cluster)

        at_once, later, last = simulate(story)
        assert ["now", "now too"] == at_once
        assert ["level", "now", "now too"] == later
        assert ["level", "now", "now too", "timer"] == last

    def test_ids_of_a_repeated_epoch_are_the_same(self) -> None:
        """
        They come from writer, epoch, part and number alone, in the form of RocketMQ's ids.
        """

        async def story(number: int) -> list[str]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic(TOPIC, 1)
                await write(cluster, number, FIVE)
                return [message.properties[properties.UNIQ_KEY] for message in stored(cluster)]

        once, again, other = simulate(lambda: story(4)), simulate(lambda: story(4)), simulate(
            lambda: story(5)
        )  # fmt: skip
        assert once == again
        assert set() == set(once) & set(other)
        assert {32} == {len(each) for each in once}
        assert "AB" * 8 + "0001" + "0" * 8 + "0002" == stable_id("AB" * 8, 65_538)

    def test_a_large_epoch_does_not_hold_up_others(self) -> None:
        """
        It is copied in slices; a send in between waits for one slice at the most.
        """

        async def story() -> tuple[int, int]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic(TOPIC, 1)
                async with publisher(cluster) as one:
                    epoch = Epoch(one, 0)
                    await epoch.add([Message(TOPIC, f"{number}") for number in range(5_000)])
                    publishing = asyncio.ensure_future(epoch.publish())
                    await asyncio.sleep(0)
                    peer = await Peer.to(cluster)
                    sent = 0
                    while not publishing.done():
                        await peer.send("others", b"x")
                        sent += 1
                    await publishing
                return len(visible(cluster)), sent

        count, sent = simulate(story)
        assert 5_000 == count
        assert sent > 2


class TestRepeats:
    def test_an_epoch_is_published_once_whatever_is_staged_again(self, run: Run) -> None:
        """
        The first decision holds; another driver's other messages are never seen.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 2)
            first = await write(cluster, 1, FIVE)
            again = await write(cluster, 1, ["z1"])
            older = await write(cluster, 0, ["y1"])
            async with publisher(cluster) as one:
                last = await one.last_epoch()

            assert [False, True, True] == [each.is_repeat for each in (first, again, older)]
            assert FIVE == visible(cluster)
            assert 1 == last

        run(work, brokers=2)

    def test_two_drivers_at_once_publish_one_of_their_epochs(self) -> None:
        """
        Both are told that it is done; one of the two sets of messages is there, not a mixture.
        """

        async def story() -> list[str]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic(TOPIC, 2)
                await asyncio.gather(
                    write(cluster, 0, ["a1", "b1", "c1"]), write(cluster, 0, ["a2", "b2", "c2"])
                )
                return visible(cluster)

        assert simulate(story) in (["a1", "b1", "c1"], ["a2", "b2", "c2"])

    def test_drivers_at_once_whose_rows_lie_on_different_brokers_find_one_coordinator(self) -> None:
        """
        Who decides does not depend on where the messages are.
        """

        async def story() -> list[str]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic(TOPIC, 1)
                await asyncio.gather(write(cluster, 0, ["a1"]), write(cluster, 0, ["b1"]))
                return visible(cluster)

        assert simulate(story) in (["a1"], ["b1"])

    def test_several_requests_for_one_epoch_copy_it_once(self, run: Run) -> None:
        """
        A driver that lost patience asks again while the first request is still at work.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 2)
            async with publisher(cluster) as one:
                epoch = Epoch(one, 0)
                await epoch.add([Message(TOPIC, f"{number:04}") for number in range(2_000)])
                outcomes = await asyncio.gather(*(epoch.publish() for _ in range(4)))

            assert 4 == len(outcomes)
            assert [f"{number:04}" for number in range(2_000)] == visible(cluster)

        run(work)

    def test_writers_do_not_know_of_each_other(self, run: Run) -> None:
        """
        Each has epochs of its own.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 2)
            await write(cluster, 0, ["a1"], writer="one")
            await write(cluster, 0, ["a2"], writer="two")

            assert ["a1", "a2"] == visible(cluster)

        run(work)

    def test_an_unfinished_epoch_is_finished_by_the_next(self) -> None:
        """
        A driver that went away behind its decision leaves nothing out: the next epoch's does both.
        """

        async def story() -> list[str]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic(TOPIC, 2)
                async with publisher(cluster) as one:
                    epoch = Epoch(one, 0)
                    await epoch.add([Message(TOPIC, body) for body in FIVE])
                    peer = await Peer.to(cluster)
                    shares = msgspec.json.encode({"shares": epoch.shares})
                    decided = await peer.call(
                        40103, shares, writer=WRITER, epoch=0, coordinator="broker-a"
                    )
                    assert 0 == decided.code
                assert [] == visible(cluster)
                await write(cluster, 1, ["d1"])
                return visible(cluster)

        assert sorted([*FIVE, "d1"]) == simulate(story)


class TestRefusals:
    def test_a_topic_that_went_away_stops_the_epoch(self, run: Run) -> None:
        """
        Said before anything is decided: nothing is published, nothing is stuck.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 1)
            async with publisher(cluster) as one:
                epoch = Epoch(one, 0)
                await epoch.add([Message(TOPIC, "a1")])
                async with cluster.admin() as admin:
                    await admin.delete_topic(TOPIC)
                with pytest.raises(BrokerRefused, match="topic orders does not exist here"):
                    await epoch.publish()
                last = await one.last_epoch()

            assert -1 == last

        run(work)

    def test_a_topic_that_never_was_is_said_at_once(self, run: Run) -> None:
        """
        Nothing is staged for it.
        """

        async def work(cluster: Cluster) -> None:
            async with publisher(cluster) as one:
                with pytest.raises(GantryError, match="no route for topic 'nowhere'"):
                    await Epoch(one, 0).add([Message("nowhere", "a1")])

        run(work)

    def test_staged_messages_that_retention_took_stop_the_epoch(self) -> None:
        """
        Nothing of it is published, and the same epoch can be written again.
        """

        async def story() -> tuple[list[str], list[str]]:
            async with Cluster(
                memory=True, mapped_file_size_commit_log=64 * 1024, file_reserved_time=0
            ) as cluster:
                await cluster.create_topic(TOPIC, 1)
                async with publisher(cluster) as one:
                    epoch = Epoch(one, 0)
                    await epoch.add([Message(TOPIC, "a1"), Message(TOPIC, "a2")])
                    peer = await Peer.to(cluster)
                    for _ in range(6):
                        await peer.send("others", bytes(20_000))
                    await asyncio.sleep(1)
                    peer = await Peer.to(cluster)
                    await peer.send("others", bytes(20_000))
                    await cluster.broker().store.upkeep.checkpoint()
                    assert await cluster.broker().store.upkeep.delete_expired()
                    with pytest.raises(BrokerRefused, match=r"staged messages .* are gone"):
                        await epoch.publish()
                before = visible(cluster)
                await write(cluster, 0, ["a3"])
                return before, visible(cluster)

        assert ([], ["a3"]) == simulate(story)

    @pytest.mark.parametrize(
        "code, body, fields, words",
        [
            (40101, b"", {"writer": ""}, "a writer's id has 1 to 255 bytes"),
            (40101, b"", {"writer": "x" * 300}, "a writer's id has 1 to 255 bytes"),
            (40101, b"", {}, "writer"),
            (40102, b"nonsense", {"writer": "w", "epoch": 0}, "names no staged messages"),
            (40102, b"[[0,0,1,2]]", {"writer": "w", "epoch": 0}, "names no staged messages"),
            (40103, b"[]", {"writer": "w", "epoch": 0, "coordinator": "b"}, "is no decision"),
            (40103, b"{}", {"writer": "w", "epoch": 0, "coordinator": "b"}, "kept by b, not here"),
            (40103, b"{}", {"writer": "w", "epoch": -1}, "there is no epoch -1"),
            (40104, b"[[9,0,1,\"t\",0,\"\"]]", {"writer": "w", "epoch": 0}, "does not exist"),
            (40104, b"[[0,0,-1,\"o\",0,\"\"]]", {"writer": "w", "epoch": 0}, "does not exist"),
        ],
    )  # fmt: skip
    def test_bad_requests_are_answered_with_what_is_wrong(
        self, run: Run, code: int, body: bytes, fields: dict[str, object], words: str
    ) -> None:
        """
        Whatever comes, the broker stays up and writes nothing down.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            answer = await peer.call(code, body, **fields)

            assert 0 != answer.code
            assert words in str(answer.remark)
            assert 0 == cluster.broker().store.queues.max_offset(PUBLISH_TOPIC, 0)

        run(work)

    @pytest.mark.parametrize("stretch", ['[0,0,1,"orders",0,"other"]', '[0,5,1,"orders",0,""]',
                                         '[0,-1,1,"orders",0,""]', '[0,0,0,"orders",0,""]',
                                         '[99,0,1,"orders",0,""]', '[0,0,1,"orders",7,""]',
                                         '[0,0,1,"orders",-1,""]'])  # fmt: skip
    def test_stretches_of_nothing_are_refused(self, stretch: str) -> None:
        """
        Foreign messages, wrong offsets and queues that are not there: never a copy of them.
        """

        async def story() -> tuple[int, list[str]]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic(TOPIC, 1)
                async with publisher(cluster) as one:
                    await Epoch(one, 0).add([Message(TOPIC, "a1")])
                peer = await Peer.to(cluster)
                answer = await peer.call(40104, f"[{stretch}]".encode(), writer=WRITER, epoch=0)
                return answer.code, visible(cluster)

        code, seen = simulate(story)
        assert 0 != code
        assert [] == seen

    def test_nobody_sends_notes_and_nobody_makes_the_topics(self, run: Run) -> None:
        """
        The two topics are the system's: not sendable (notes), not deletable, not in lag.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 1)
            await write(cluster, 0, ["a1"])
            peer = await Peer.to(cluster)
            forged = await peer.send(PUBLISH_TOPIC, b"{}")
            deleted = [await peer.call(215, topic=name) for name in (STAGE_TOPIC, PUBLISH_TOPIC)]

            assert ResponseCode.NO_PERMISSION == forged.code
            assert {1} == {answer.code for answer in deleted}

        run(work)

    def test_the_born_host_is_the_senders(self, run: Run) -> None:
        """
        A copy keeps who sent it and when.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 1)
            await write(cluster, 0, ["a1"])
            message = stored(cluster)[0]

            assert 8 == len(encode_host(*message.born_host))
            assert "127.0.0.1" == message.born_host[0]
            assert 0 < message.born_ms <= message.store_ms

        run(work)
