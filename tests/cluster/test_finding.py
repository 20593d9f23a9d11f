"""Finding stored messages: by id, by key, by place, by time; and whether that is all of them."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from peer import Run

from gantrymq import Finder, Message, Producer
from gantrymq.base.java_hash import java_hash
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

GANTRY = Path(sys.executable).with_name("gantry")


def bodies(found: object) -> list[bytes]:
    return [message.body for message in found.messages]  # type: ignore[attr-defined]


async def sent(producer: Producer, *keys: str, topic: str = "orders") -> None:
    for number, key in enumerate(keys):
        await producer.send(Message(topic, f"{key}/{number}", keys=[key]))


class TestByKey:
    def test_keys_with_equal_hashes_are_told_apart(self, run: Run) -> None:
        """
        Query by key finds its own messages, never another key's (a wound of RocketMQ's users).
        """
        assert java_hash("orders#AaAa") == java_hash("orders#BBBB") == java_hash("orders#AaBB")

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer, cluster.admin() as admin:
                await sent(producer, "AaAa", "BBBB", "AaBB", "BBBB")
                found = await Finder(admin).by_key("orders", "BBBB")
                nothing = await Finder(admin).by_key("orders", "BBAa")

            assert [b"BBBB/1", b"BBBB/3"] == bodies(found)
            assert found.complete
            assert ([], True) == (nothing.messages, nothing.complete)

        run(work)

    def test_a_key_of_many_messages_is_paged_through(self) -> None:
        """
        A broker answers with 64 at most; the search goes on until it has them all.
        """

        async def story() -> tuple[int, bool, str, int]:
            async with (
                Cluster(memory=True) as cluster,
                cluster.producer() as producer,
                cluster.admin() as admin,
            ):
                for number in range(200):
                    await producer.send(Message("orders", str(number), keys=["k", f"k{number}"]))
                    await asyncio.sleep(0.01)
                finder = Finder(admin)
                all_of_them = await finder.by_key("orders", "k")
                some = await finder.by_key("orders", "k", limit=100)
                return (
                    len(all_of_them.messages),
                    all_of_them.complete,
                    some.why,
                    len(some.messages),
                )

        count, complete, why, cut = simulate(story)

        assert (200, True) == (count, complete)
        assert 100 == cut
        assert "100" in why

    def test_more_in_one_millisecond_than_an_answer_holds_is_said(self) -> None:
        """
        The search cannot page within a millisecond, so it says that something is missing.
        """

        async def story() -> tuple[bool, str]:
            async with (
                Cluster(memory=True) as cluster,
                cluster.producer() as producer,
                cluster.admin() as admin,
            ):
                await producer.send_many(
                    Message("orders", str(number), keys=["k"]) for number in range(200)
                )
                found = await Finder(admin).by_key("orders", "k")
                return found.complete, found.why

        complete, why = simulate(story)

        assert not complete
        assert "broker-a has more of them" in why

    def test_a_time_range_bounds_it(self) -> None:
        """
        Only what was stored within the range.
        """

        async def story() -> list[bytes]:
            async with (
                Cluster(memory=True) as cluster,
                cluster.producer() as producer,
                cluster.admin() as admin,
            ):
                await sent(producer, "k")
                await asyncio.sleep(10)
                begin = cluster.clock.now_ms()
                await sent(producer, "k", "k")
                end = cluster.clock.now_ms()
                await asyncio.sleep(10)
                await sent(producer, "k")
                found = await Finder(admin).by_key("orders", "k", begin_ms=begin, end_ms=end)
                return bodies(found)

        assert [b"k/0", b"k/1"] == simulate(story)

    def test_a_broker_that_is_down_makes_it_incomplete(self) -> None:
        """
        What could not be asked is named.
        """

        async def story() -> tuple[bool, str]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic("orders")
                async with cluster.producer() as producer, cluster.admin() as admin:
                    await sent(producer, "k", "k", "k", "k")
                    await Finder(admin).by_key("orders", "k")
                    await cluster.kill_broker("broker-b")
                    found = await Finder(admin).by_key("orders", "k")
                    return found.complete, found.why

        complete, why = simulate(story)

        assert not complete
        assert "broker-b did not answer" in why


class TestByIdAndPlace:
    def test_both_kinds_of_id_and_the_place_lead_to_the_message(self, run: Run) -> None:
        """
        The producer's id with the topic, the broker's id alone, queue and offset.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer, cluster.admin() as admin:
                result = await producer.send(Message("orders", b"one"))
                finder = Finder(admin)
                by_unique = await finder.by_id(result.msg_id, topic="orders")
                by_broker = await finder.by_id(result.offset_msg_id)
                by_place = await finder.at(result.queue, result.offset)
                beyond = await finder.at(result.queue, 99)
                nobody = await finder.by_id("0" * 32, topic="orders")

            assert [[b"one"]] * 3 == [bodies(by_unique), bodies(by_broker), bodies(by_place)]
            assert ([], "0 to 0" in beyond.why) == (beyond.messages, True)
            assert [] == nobody.messages

        run(work)


class TestByTime:
    def test_messages_between_two_moments_in_the_order_they_were_stored(self, run: Run) -> None:
        """
        All queues together; a limit says where to go on.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=2)
            async with cluster.producer() as producer, cluster.admin() as admin:
                await sent(producer, "a", "b")
                await asyncio.sleep(0.05)
                begin = cluster.clock.now_ms()
                await sent(producer, "c", "d", "e")
                end = cluster.clock.now_ms()
                await asyncio.sleep(0.05)
                await sent(producer, "f")
                finder = Finder(admin)
                found = await finder.by_time("orders", begin, end)
                two = await finder.by_time("orders", begin, end, limit=2)

            assert [b"c/0", b"d/1", b"e/2"] == bodies(found)
            assert found.complete
            assert (2, False) == (len(two.messages), two.complete)
            assert "go on from" in two.why

        run(work)

    def test_what_retention_took_is_mentioned(self) -> None:
        """
        A range that begins before the first message still there is not complete.
        """

        settings = {"mapped_file_size_commit_log": 8192, "file_reserved_time": 0}

        async def story() -> tuple[bool, str]:
            async with Cluster(memory=True, **settings) as cluster:
                await cluster.create_topic("orders", queues=1)
                async with cluster.producer() as producer, cluster.admin() as admin:
                    begin = cluster.clock.now_ms()
                    for _ in range(40):
                        await producer.send(Message("orders", b"x" * 1000))
                    await asyncio.sleep(60)
                    await producer.send(Message("orders", b"new"))
                    await asyncio.sleep(60)
                    await cluster.broker().store.upkeep.delete_expired()
                    found = await Finder(admin).by_time("orders", begin, cluster.clock.now_ms())
                    return found.complete, found.why

        complete, why = simulate(story)

        assert not complete
        assert "is deleted" in why


def test_the_command_prints_what_it_found_and_whether_that_is_all() -> None:
    """
    Rows on stdout, the verdict on stderr, exit code 1 when nothing is found.
    """

    async def story() -> tuple[str, str, int]:
        async with Cluster() as cluster:
            async with Producer(cluster.namesrv, group="p") as producer:
                await sent(producer, "k1", "k2")

            def gantry(*words: str) -> subprocess.CompletedProcess[str]:
                return subprocess.run(
                    [str(GANTRY), "find", "orders", *words, "-n", cluster.namesrv, "-o", "jsonl"],
                    capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ),
                )  # fmt: skip

            found = await asyncio.to_thread(gantry, "--key", "k2")
            nothing = await asyncio.to_thread(gantry, "--key", "k9")
            return found.stdout, found.stderr, nothing.returncode

    out, said, code = asyncio.run(story())

    assert "k2/1" == json.loads(out)["body"]
    assert "1 found, complete\n" == said
    assert 1 == code
