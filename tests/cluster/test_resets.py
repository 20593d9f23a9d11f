"""Back-tracking: a group's progress is moved, whether its members run, sleep, or are stuck."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from peer import Peer, Run

from gantrymq import ConsumerOptions, Message
from gantrymq.cli.main import main
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
Q0 = Queue("orders", "broker-a", 0)


async def fill(cluster: Cluster, *bodies: str, pause: float = 0.0) -> list[int]:
    """Send to queue 0; returns when each was stored, in ms."""
    stored = []
    async with cluster.producer() as producer:
        for body in bodies:
            result = await producer.send(Message("orders", body), queue=Q0)
            async with cluster.admin() as admin:
                stored.append((await admin.message(result.offset_msg_id)).store_ms)
            await asyncio.sleep(pause)
    return stored


async def take(consumer: Consumer, count: int) -> list[str]:
    """The next messages, acknowledged."""
    found = []
    async with asyncio.timeout(30):
        while len(found) < count:
            message = await anext(consumer)
            await message.ack()
            found.append(message.body.decode())
    return found


async def read_and_leave(cluster: Cluster, count: int) -> None:
    async with cluster.consumer("g", options=FIRST) as consumer:
        consumer.subscribe("orders")
        await take(consumer, count)


class TestAStoppedGroup:
    def test_reads_again_from_a_time_to_the_millisecond(self, run: Run) -> None:
        """
        The first message stored at that millisecond or later comes first.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            stored = await fill(cluster, "a", "b", "c", "d", pause=0.01)
            await read_and_leave(cluster, 4)
            async with cluster.admin() as admin:
                when = datetime.fromtimestamp(stored[1] / 1000, UTC)
                moved = await admin.reset("g", "orders", when)
            assert [(Q0, 4, 1, 3, 0)] == [
                (r.queue, r.now, r.new, r.again, r.skipped) for r in moved
            ]
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                assert ["b", "c", "d"] == await take(consumer, 3)

        run(work)

    def test_skips_messages_only_when_forced(self, run: Run) -> None:
        """
        Without force only backwards: what was not read yet stays to be read.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b", "c")
            await read_and_leave(cluster, 1)
            async with cluster.admin() as admin:
                assert [] == await admin.reset("g", "orders", "last")
                (row,) = await admin.preview_reset("g", "orders", "last", force=True)
                assert (1, 3, 0, 2) == (row.now, row.new, row.again, row.skipped)
                assert 1 == (await admin.consume_stats("g")).queues[Q0].consumer_offset
                await admin.reset("g", "orders", "last", force=True)
                assert 3 == (await admin.consume_stats("g")).queues[Q0].consumer_offset

        run(work)

    def test_one_queue_goes_to_an_offset(self, run: Run) -> None:
        """
        The others stay; an offset that the queue does not hold is refused.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            await fill(cluster, "a", "b", "c")
            await read_and_leave(cluster, 3)
            async with cluster.admin() as admin:
                moved = await admin.reset("g", "orders", 2, queue=Q0)
                assert [(Q0, 2)] == [(row.queue, row.new) for row in moved]
                with pytest.raises(ClientError, match="holds offsets 0 to 3; 9 is none of them"):
                    await admin.reset("g", "orders", 9, queue=Q0)
                with pytest.raises(ClientError, match="no queue of 'orders'"):
                    await admin.reset("g", "orders", 0, queue=Queue("orders", "broker-a", 7))
                with pytest.raises(ClientError, match="no group 'nobody'"):
                    await admin.reset("nobody", "orders", "last")

        run(work)


class TestARunningGroup:
    def test_goes_back_at_once(self, run: Run) -> None:
        """
        A member that waits at the end of its queue is told by its held pull; its old progress,
        which it still commits, does not undo the reset.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b", "c")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                assert ["a", "b", "c"] == await take(consumer, 3)
                async with cluster.admin() as admin:
                    await admin.reset("g", "orders", "first")
                    began = asyncio.get_running_loop().time()
                    assert ["a", "b", "c"] == await take(consumer, 3)
                    assert asyncio.get_running_loop().time() - began < 3
                    await consumer.commit()
                    stats = await admin.consume_stats("g", "orders")
                    assert 3 == stats.queues[Q0].consumer_offset

        run(work)

    def test_two_members_each_follow_in_their_queues(self, run: Run) -> None:
        """
        Every queue goes back, whoever holds it.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            seen: list[str] = []
            async with cluster.producer() as producer:
                for number in range(6):
                    queue = Queue("orders", "broker-a", number % 2)
                    await producer.send(Message("orders", str(number)), queue=queue)
            async with (
                cluster.consumer("g", options=FIRST) as one,
                cluster.consumer("g", options=FIRST) as two,
            ):
                for member in (one, two):
                    member.subscribe("orders")
                    member.handler(lambda message: seen.append(message.body.decode()))
                async with asyncio.timeout(30):
                    while len(seen) < 6 or not (one.assignment and two.assignment):
                        await asyncio.sleep(0.05)
                    await asyncio.gather(one.commit(), two.commit())
                    seen.clear()
                    async with cluster.admin() as admin:
                        await admin.reset("g", "orders", "first")
                    while len(seen) < 6:
                        await asyncio.sleep(0.05)
            assert list("012345") == sorted(seen)

        run(work)

    def test_a_member_that_is_stuck_and_full_is_told(self, run: Run) -> None:
        """
        A queue whose first message blocks an ordered consumer is not pulled any more: the member is
        told directly, so that an operator can skip the message.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "poison", "b", "c", "d")
            options = ConsumerOptions(
                consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_threshold_for_queue=1,
                pull_batch_size=1, suspend_queue_ms=100,
            )  # fmt: skip
            done: list[str] = []

            async with cluster.consumer(
                "g", ordered=True, max_retries=None, options=options
            ) as consumer:
                consumer.subscribe("orders")
                failed = asyncio.Event()

                @consumer.handler
                async def work_on(message: object) -> None:
                    body = message.body.decode()  # type: ignore[attr-defined]
                    if body == "poison":
                        failed.set()
                        raise ValueError(body)
                    done.append(body)

                async with asyncio.timeout(30):
                    await failed.wait()
                    async with cluster.admin() as admin:
                        await admin.reset("g", "orders", 1, queue=Q0, force=True)
                    while len(done) < 3:
                        await asyncio.sleep(0.05)
            assert ["b", "c", "d"] == done

        run(work)

    def test_tells_where_its_members_are(self, run: Run) -> None:
        """
        INVOKE_BROKER_TO_GET_CONSUMER_STATUS asks every member.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                await take(consumer, 2)
                async with cluster.admin() as admin:
                    expected = {consumer.instance.client_id: {Q0: 2}}
                    assert expected == await admin.consumer_status("g", "orders")

        run(work)


class TestOnTheWire:
    def test_commits_do_not_count_until_the_reader_has_followed(self, run: Run) -> None:
        """
        A pull elsewhere is answered with the new place, as often as it takes; commits are ignored
        until a pull begins there.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b", "c")
            peer = await Peer.to(cluster)
            place = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
            await peer.pull("orders", 0)
            await peer.call(15, commitOffset=3, **place)
            reset = {"group": "g", "topic": "orders", "timestamp": 0, "isForce": "true"}
            assert 0 == (await peer.call(222, **reset)).code
            for _ in range(2):
                answer = await peer.pull("orders", 3)
                assert (21, "0") == (answer.code, answer.ext["nextBeginOffset"])
                await peer.call(15, commitOffset=3, **place)
            assert "0" == (await peer.call(14, **place)).ext["offset"]
            assert 0 == (await peer.pull("orders", 0)).code
            await peer.call(15, commitOffset=3, **place)
            assert "3" == (await peer.call(14, **place)).ext["offset"]

        run(work)

    def test_without_server_side_resets_the_members_are_told(self, run: Run) -> None:
        """
        4.9's way: RESET_CONSUMER_CLIENT_OFFSET to every member, with a list for C++ clients; a
        group that is not online is answered 206, so that tools commit the offsets themselves.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b", "c")
            peer = await Peer.to(cluster)
            await peer.pull("orders", 0)
            place = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
            await peer.call(15, commitOffset=2, **place)
            reset = {"group": "g", "topic": "orders", "timestamp": -1, "isForce": "false"}
            assert 206 == (await peer.call(222, **reset)).code
            await peer.heartbeat("client-1", "g", "orders")
            answer = await peer.call(222, **reset)
            (told,) = [command for command in peer.pushed if command.code == 220]
            expected = {"brokerName": "broker-a", "queueId": 0, "topic": "orders"}
            for body in (answer.body, told.body):
                assert [(expected, 2)] == list(fastjson.loads(body)["offsetTable"].items())
            assert "2" == (await peer.call(14, **place)).ext["offset"]

        run(work, use_server_side_reset_offset=False)

    def test_a_reader_that_never_follows_is_not_held_for_ever(self) -> None:
        """
        After a minute its own place counts again: a pull consumer's offsets are its user's.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, "a", "b", "c")
                peer = await Peer.to(cluster)
                await peer.pull("orders", 0)
                reset = {"group": "g", "topic": "orders", "timestamp": 0, "isForce": "true"}
                await peer.call(222, **reset)
                assert 21 == (await peer.pull("orders", 2)).code
                await asyncio.sleep(61)
                assert 0 == (await peer.pull("orders", 2)).code

        simulate(work)

    def test_a_reset_survives_a_restart(self, run: Run) -> None:
        """
        It is on disk when it is answered.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b", "c")
            await read_and_leave(cluster, 3)
            async with cluster.admin() as admin:
                await admin.reset("g", "orders", 1, queue=Q0)
            await cluster.stop_broker()
            await cluster.start_broker()
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                assert ["b", "c"] == await take(consumer, 2)

        run(work)


class TestWhereANewGroupBegins:
    """
    From the first message, the last, or a time: over TCP as in memory.
    """

    def test_at_the_first_message(self, run: Run) -> None:
        """
        A new group with CONSUME_FROM_FIRST_OFFSET reads from the first message on.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                assert ["a", "b"] == await take(consumer, 2)

        run(work)

    def test_at_the_end_unless_the_queue_is_young(self, run: Run) -> None:
        """
        A new group reads a young queue from its beginning, or, if told to skip it, from its
        end.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")
            options = ConsumerOptions(from_last_skips_young_queues=True)
            async with (
                cluster.consumer("young") as young,
                cluster.consumer("strict", options=options) as strict,
            ):
                young.subscribe("orders")
                strict.subscribe("orders")
                await asyncio.gather(young.wait_assigned(), strict.wait_assigned())
                await fill(cluster, "c")
                assert ["a", "b", "c"] == await take(young, 3)
                assert ["c"] == await take(strict, 1)

        run(work)

    def test_at_a_time(self, run: Run) -> None:
        """
        A new group with CONSUME_FROM_TIMESTAMP reads messages from that time on.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")
            await asyncio.sleep(2.1)
            stored = await fill(cluster, "c")
            when = datetime.fromtimestamp(stored[0] // 1000)  # noqa: DTZ006
            options = ConsumerOptions(
                consume_from_where="CONSUME_FROM_TIMESTAMP",
                consume_timestamp=when.strftime("%Y%m%d%H%M%S"),
                from_last_skips_young_queues=True,
            )
            async with cluster.consumer("g", options=options) as consumer:
                consumer.subscribe("orders")
                assert ["c"] == await take(consumer, 1)

        run(work)


class TestTheCommand:
    def test_shows_what_would_happen_and_then_does_it(self) -> None:
        """
        `--dry-run` changes nothing; both print the same rows.
        """

        async def work() -> None:
            async with Cluster() as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, "a", "b", "c")
                await read_and_leave(cluster, 3)

                def gantry(*words: str) -> list[dict[str, object]]:
                    words = ("reset", "g", "orders", "-n", cluster.namesrv, "-o", "json", *words)
                    result = CliRunner().invoke(main, list(words))
                    assert 0 == result.exit_code, result.output
                    rows: list[dict[str, object]] = json.loads(result.stdout)
                    return rows

                row = {"broker": "broker-a", "queueId": 0, "now": 3, "new": 1, "again": 2,
                       "skipped": 0}  # fmt: skip
                for words in (("--dry-run",), ("--queue", "broker-a:0")):
                    found = await asyncio.to_thread(gantry, "--to", "1", *words)
                    assert [row] == found
                found = await asyncio.to_thread(gantry, "--to", "2026-01-01", "--dry-run")
                assert [{**row, "now": 1, "new": 0, "again": 1}] == found

        asyncio.run(work())

    @pytest.mark.parametrize("words", [["--to", "soon"], ["--to", "1", "--queue", "7"]])
    def test_says_what_it_does_not_understand(self, words: list[str]) -> None:
        """
        Exit code 2 and a sentence, before anything is asked.
        """
        result = CliRunner().invoke(main, ["reset", "g", "orders", *words])

        assert 2 == result.exit_code
