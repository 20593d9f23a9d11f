"""How far groups are behind: the numbers, the queue that is stuck, and who holds it."""

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer, Run

from gantrymq import ConsumerOptions, Delivery, Message, SimpleConsumer
from gantrymq.cli.main import main
from gantrymq.client.admin.groups.lag import Backlog, GroupLag, QueueLag, TopicLag
from gantrymq.client.admin.groups.lag_advice import advice
from gantrymq.client.admin.groups.members import HeldQueue, Member, Members
from gantrymq.client.core.errors import ClientError
from gantrymq.model import GroupConfig, Queue
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def place(queue_id: int, topic: str = "orders") -> Queue:
    return Queue(topic, "broker-a", queue_id)


async def fill(cluster: Cluster, *counts: int, topic: str = "orders") -> None:
    """A topic with so many messages in each of its queues."""
    await cluster.create_topic(topic, queues=len(counts))
    async with cluster.producer() as producer:
        for queue_id, count in enumerate(counts):
            for number in range(count):
                await producer.send(Message(topic, b"%d" % number), queue=place(queue_id, topic))


async def commit(cluster: Cluster, group: str, offset: int, queue_id: int = 0) -> None:
    peer = await Peer.to(cluster)
    await peer.pull("orders", 0, group=group)
    await peer.call(15, consumerGroup=group, topic="orders", queueId=queue_id, commitOffset=offset)
    peer.close()


async def look(cluster: Cluster, group: str = "g") -> GroupLag:
    async with cluster.admin() as admin:
        return await Backlog(admin).of(group)


class TestOneGroup:
    def test_every_queue_has_its_numbers_and_its_holder(self, run: Run) -> None:
        """
        What is stored, what is read, since when the first one waits, and in whose hands it is.
        """

        async def work(cluster: Cluster) -> None:
            before_ms = cluster.clock.now_ms()
            await fill(cluster, 5, 2)
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                await consumer.wait_assigned(2)
                found = await look(cluster)
                while 7 > sum(row.in_hand for row in found.topics[-1].queues):
                    await asyncio.sleep(0.01)
                    found = await look(cluster)
                topic = found.topics[-1]
                me = (consumer.instance.client_id,)
            assert "orders" == topic.topic
            assert [(place(0), 5, 0, 5, me, 5, ""), (place(1), 2, 0, 2, me, 2, "")] == [
                (row.queue, row.end, row.read, row.lag, row.holders, row.in_hand, row.trouble)
                for row in topic.queues
            ]
            assert (7, 0, 0) == (found.lag, found.retry, found.dead_count)
            assert found.slowest == topic.queues[0]
            assert found.oldest_ms is not None
            assert before_ms <= found.oldest_ms <= cluster.clock.now_ms()

        run(work)

    def test_the_oldest_is_the_first_that_is_unread(self) -> None:
        """
        Its age grows, and gets less when the group goes on.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", queues=1)
                async with cluster.producer() as producer:
                    for _ in range(3):
                        await producer.send(Message("orders", b"x"))
                        await asyncio.sleep(100)
                ages = []
                for read in (0, 1, 2, 3):
                    await commit(cluster, "g", read)
                    found = await look(cluster)
                    now = cluster.clock.now_ms()
                    oldest = found.oldest_ms
                    ages.append(None if oldest is None else round((now - oldest) / 100_000))
                assert [3, 2, 1, None] == ages

        simulate(story)

    def test_retries_and_dead_letters_are_counted_apart(self, run: Run) -> None:
        """
        A retry is unread like any other message; a dead letter waits for nobody.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 3)
            async with cluster.admin() as admin:
                await admin.update_group(GroupConfig(group_name="g", retry_max_times=1))
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                messages = [await anext(consumer) for _ in range(3)]
                await messages[0].dead()
                await messages[1].retry(1)
                await messages[2].ack()
            store = cluster.broker().store
            while not store.queues.max_offset("%RETRY%g", 0):
                await asyncio.sleep(0.05)
            found = await look(cluster)
            assert (1, 1, 1) == (found.lag, found.retry, found.dead_count)
            assert {"%RETRY%g": 1, "orders": 0} == {row.topic: row.lag for row in found.topics}

        run(work)

    def test_one_that_nobody_knows_is_an_error(self, run: Run) -> None:
        """
        A name with a typing mistake has no backlog of 0.
        """

        async def work(cluster: Cluster) -> None:
            with pytest.raises(ClientError, match="no broker knows group 'nobody'"):
                await look(cluster, "nobody")

        run(work)

    def test_members_that_broadcast_have_each_their_own(self, run: Run, tmp_path: Path) -> None:
        """
        The broker knows nothing of their progress; they do.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 4)
            members = []
            for number in range(2):
                options = ConsumerOptions(
                    message_model="BROADCASTING", offset_dir=str(tmp_path / str(number)),
                    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
                )  # fmt: skip
                members.append(cluster.consumer("g", options=options))
            async with members[0] as first, members[1] as second:
                for member, count in ((first, 3), (second, 1)):
                    member.subscribe("orders")
                    for _ in range(count):
                        await (await anext(member)).ack()
                found = await look(cluster)
                lags = {row.holders: row.lag for row in found.topics[0].queues}
                assert {
                    (first.instance.client_id,): 1, (second.instance.client_id,): 3,
                } == lags  # fmt: skip
                assert 1 == found.topics[0].queue_count

        run(work)

    def test_who_pops_holds_no_queue(self, run: Run) -> None:
        """
        That is no trouble.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 4)
            ports: dict[str, Any] = {
                "network": cluster.network,
                "clock": cluster.clock,
                "rng": cluster.rng,
            }
            async with SimpleConsumer(
                cluster.namesrv, group="g", from_first=True, **ports
            ) as consumer:
                consumer.subscribe("orders")
                got = await consumer.receive(max=1)
                await got[0].ack()
                found = await look(cluster)
                orders = next(topic for topic in found.topics if topic.topic == "orders")
                assert [(), ""] == [orders.queues[0].holders, orders.queues[0].trouble]
                assert found.members.pops

        run(work)


class TestTrouble:
    def test_wound_lag_per_broker_only_no_view_of_the_stuck_queue(self) -> None:
        """
        One handler hangs: its queue is named, and who holds it; the other queue is well.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", queues=2)
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def work(message: Delivery) -> None:
                        if message.queue.queue_id == 1:
                            await asyncio.Event().wait()

                    consumer.subscribe("orders")
                    await consumer.wait_assigned(2)
                    await fill(cluster, 3, 3)
                    await asyncio.sleep(300)
                    await fill(cluster, 1, 1)
                    await asyncio.sleep(6)  # members say every 5 s how far they are
                    found = await look(cluster)
                    well, stuck = found.topics[-1].queues
                    me = consumer.instance.client_id
                    assert (0, "") == (well.lag, well.trouble)
                    assert (4, (me,), 4) == (stuck.lag, stuck.holders, stuck.in_hand)
                    assert "stuck: nothing finished for 30" in stuck.trouble
                    said = advice(found)
                    assert f"{stuck.queue} is held by {me}, stuck" in said[0]

        simulate(story)

    def test_one_message_that_holds_up_all_others_is_named(self) -> None:
        """
        Others are finished all the while, but progress does not move and pulling has stopped.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await fill(cluster, 2_100)
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def work(message: Delivery) -> None:
                        if message.offset in (7, 2_010):
                            await asyncio.Event().wait()

                    consumer.subscribe("orders")
                    await asyncio.sleep(30)
                    row = (await look(cluster)).topics[-1].queues[0]
                    assert "stuck: offset 7 holds up all behind it" == row.trouble
                    assert 7 == row.read

        simulate(story)

    def test_a_member_that_does_not_answer_is_named(self) -> None:
        """
        Nobody waits for it longer than some seconds.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await fill(cluster, 1)
                peer = await Peer.to(cluster)
                await peer.heartbeat("mute@1", "g", "orders")
                row = (await look(cluster)).topics[-1].queues[0]
                assert "not known who holds it: mute@1 does not answer" == row.trouble

        simulate(story)

    def test_messages_deleted_before_they_were_read_are_no_backlog(self) -> None:
        """
        They cannot be read any more, which is worse.
        """
        row = QueueLag(place(0), end=100, read=20, first=60)
        assert (40, 40) == (row.lag, row.deleted)
        assert (80, 0) == (replace(row, first=0).lag, replace(row, first=0).deleted)


class TestAllGroups:
    def test_the_biggest_backlog_comes_first(self, run: Run) -> None:
        """
        Groups that have caught up are left out, and so is what they read of the system's.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 10)
            for group, read in (("some", 7), ("none", 10), ("most", 1)):
                await commit(cluster, group, read)
            async with cluster.admin() as admin:
                found = await Backlog(admin).all()
                assert [("most", 9), ("some", 3)] == [(one.group, one.lag) for one in found]
                assert [] == await Backlog(admin).all(topic="others")

        run(work)


def group(*lags: int, members: int = 0, **more: Any) -> GroupLag:
    rows = tuple(QueueLag(place(number), lag, 0) for number, lag in enumerate(lags))
    found = tuple(Member(f"c{number}") for number in range(members))
    plain = GroupLag("g", (TopicLag("orders", rows),), Members(found))
    return replace(plain, **more)


class TestAdvice:
    @pytest.mark.parametrize(
        "found, words",
        [
            (group(0, 0, members=1), []),
            (group(5, 5), ["no member of g runs: start consumers, up to 2"]),
            (group(5, 5, 5, members=1), ["more consumers: 1 for 3 queues, up to 2 more"]),
            (group(5, 5, members=2), ["spread: 2 queues, each with a consumer already"]),
            (group(500, 5, members=1), ["500 of 505 unread messages: more consumers do not"]),
            (group(5, members=1, may_consume=False), ["gantry group set g --consume"]),
        ],
    )
    def test_follows_from_what_was_seen(self, found: GroupLag, words: list[str]) -> None:
        """
        Consumers up to the number of queues, then a wider topic; and why nothing is read at all.
        """
        said = advice(found)
        assert len(words) == len(said)
        assert all(word in line for word, line in zip(words, said, strict=True)), said

    @pytest.mark.parametrize("ordered", [True, False])
    def test_more_workers_where_messages_wait_inside_a_member(self, ordered: bool) -> None:
        """
        In order a queue has one worker at a time: more would not help.
        """
        held = {place(0): HeldQueue(cached_msg_count=900)}
        member = Member("c", workers=20, ordered=ordered, queues=held)
        said = advice(replace(group(5), members=Members((member,))))
        assert (not ordered) == any(
            "more workers: c has 900 messages in hand and 20 workers" in line for line in said
        )

    def test_the_spread_command_has_what_it_needs(self) -> None:
        """
        It can be copied into a shell; queues are counted for one broker.
        """
        rows = tuple(
            QueueLag(Queue("orders", broker, number), 5, 0)
            for broker in ("broker-a", "broker-b")
            for number in range(4)
        )
        found = group(members=8, topics=(TopicLag("orders", rows),))
        assert advice(found)[0].endswith(
            "gantry topic spread orders --to orders-wide --queues 8 --group g"
        )


class TestCommand:
    def test_gantry_lag_prints_queues_groups_and_advice(self) -> None:
        """
        Rows on standard output; sums and advice on standard error.
        """

        async def work() -> None:
            async with Cluster() as cluster:
                await fill(cluster, 10, 4)
                await commit(cluster, "g", 6)
                await commit(cluster, "h", 10)

                async def gantry(*arguments: str, code: int = 0) -> tuple[str, str]:
                    result = await asyncio.to_thread(
                        CliRunner().invoke, main, ["lag", *arguments, "-n", cluster.namesrv]
                    )
                    assert code == result.exit_code, result.output
                    return result.stdout, result.stderr

                out, said = await gantry("g", "-o", "jsonl")
                rows = [json.loads(line) for line in out.splitlines()]
                assert [("topic", 0, 10, 6, 4), ("topic", 1, 4, 0, 4)] == [
                    (row["kind"], row["queueId"], row["brokerOffset"], row["groupOffset"],
                     row["lag"])
                    for row in rows
                ]  # fmt: skip
                assert rows[0]["oldestAgeMs"] >= 0
                assert "no member runs" == rows[0]["trouble"]
                assert "g: 8 unread, the oldest for 0:00:0" in said
                assert "advice: orders: no member of g runs" in said
                out, said = await gantry("-o", "json")
                assert [("g", 8), ("h", 4)] == [
                    (row["group"], row["lag"]) for row in json.loads(out)
                ]
                assert "all groups: 12 unread" in said
                out, _ = await gantry()
                assert "orders@broker-a:0" in out
                await cluster.create_topic("others")
                _, said = await gantry("--topic", "others")
                assert "no group has a backlog\n" == said
                _, said = await gantry("nobody", code=1)
                assert "no broker knows group 'nobody'" in said
                await watched(cluster)

        async def watched(cluster: Cluster) -> None:
            command = [str(Path(sys.executable).parent / "gantry"), "lag", "g", "--watch"]
            process = await asyncio.create_subprocess_exec(
                *command, "--every", "0.1", "-o", "jsonl", "-n", cluster.namesrv,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert process.stdout is not None
            rows = [json.loads(await process.stdout.readline()) for _ in range(4)]
            process.send_signal(signal.SIGINT)
            assert 0 == await process.wait()
            assert "inPerSecond" not in rows[0]
            assert (0.0, 0.0) == (rows[2]["inPerSecond"], rows[2]["outPerSecond"])

        asyncio.run(work())
