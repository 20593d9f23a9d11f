"""Consuming, rule by rule: pulls, progress, starting points, flow control and pull outcomes."""

import asyncio
from pathlib import Path

import pytest
from peer import Peer, Run, bodies
from puppet import FOUND_NOTHING, MOVED, NO_MATCH, puppets
from reading import (
    FIRST,
    FROM_FIRST,
    Q0,
    Pulls,
    fill,
    lite,
    progress_of,
    puller,
    take,
    until,
)

from gantrymq import ClientOptions, ConsumerOptions, Delivery, Message, ProducerOptions, Queue
from gantrymq.client.consume.membership.offset_store import parse_offsets
from gantrymq.client.consume.push.ack_first import ack_first
from gantrymq.client.consume.queues.pull_request import PullStatus
from gantrymq.client.core.options import PullOptions
from gantrymq.model import retry_topic
from gantrymq.remoting.pending_call import CallTimeout
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


class TestLongPolls:
    def test_ask_the_broker_to_hold_them(self, run: Run) -> None:
        """
        Push: 15 s and 32 messages; lite pull: 20 s and 10; a blocking pull: 20 s; a plain one: 0.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            seen = {kind: Pulls() for kind in ("push", "lite", "pull")}
            async with cluster.consumer("push", hooks=[seen["push"]]) as consumer:
                consumer.subscribe("orders")
                await until(lambda: seen["push"].fields)
            async with lite(cluster, hooks=[seen["lite"]]) as polled:
                polled.subscribe("orders")
                await until(lambda: seen["lite"].fields)
            await fill(cluster, "x")
            async with puller(cluster, hooks=[seen["pull"]]) as pulling:
                await pulling.pull(Q0, 0)
                await pulling.pull_blocking(Q0, 0)
            asked = {
                kind: [
                    (fields["suspendTimeoutMillis"], fields["maxMsgNums"], fields["sysFlag"])
                    for fields in pulls.fields
                    if fields["topic"] == "orders"
                ]
                for kind, pulls in seen.items()
            }
            held, plain = str(2 | 4), "4"  # the broker may hold it; it brings its subscription
            assert ("15000", "32", held) == asked["push"][0]
            assert ("20000", "10", held) == asked["lite"][0]
            assert [("0", "32", plain), ("20000", "32", held)] == asked["pull"]

        run(work)

    def test_are_answered_the_moment_something_arrives(self, run: Run) -> None:
        """
        A consumer that waits has a message long before its poll would end.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            loop = asyncio.get_running_loop()
            async with cluster.consumer("g") as consumer, cluster.producer() as producer:
                consumer.subscribe("orders")
                await consumer.wait_assigned()
                await asyncio.sleep(0.3)
                sent = loop.time()
                await producer.send(Message("orders", b"x"))
                assert ["x"] == await take(consumer, 1)
                assert loop.time() - sent < 1

        run(work)

    def test_are_given_up_after_30_seconds_and_plain_pulls_after_10(self) -> None:
        """
        When a broker never answers; its queue is pulled again 3 s later.
        """

        async def story() -> tuple[float, float, float]:
            loop = asyncio.get_running_loop()
            async with (
                Cluster(memory=True, brokers=0) as cluster,
                puppets(cluster, "mute", queues=1) as (mute,),
            ):
                queue = Queue("orders", "mute", 0)
                async with puller(cluster) as consumer:
                    took = []
                    for pull in (consumer.pull_blocking, consumer.pull):
                        began = loop.time()
                        with pytest.raises(CallTimeout):
                            await pull(queue, 0)
                        took.append(loop.time() - began)
                mute.pulled_at.clear()
                async with cluster.consumer("push") as push:
                    push.subscribe("orders")
                    await until(lambda: len(mute.pulled_at) == 2, 60)
                return took[0], took[1], mute.pauses[0]

        blocking, plain, push = simulate(story)
        assert (30, 10, 33) == (round(blocking), round(plain), round(push))

    def test_follow_each_other_without_a_pause(self, run: Run) -> None:
        """
        `pull_interval_ms` is 0; set, it is kept.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", queues=1) as (broker,):
                broker.pull_plan = [(FOUND_NOTHING, 0)] * 5
                async with cluster.consumer("g") as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulls) == 6)
                assert max(broker.pauses) < 0.5
                broker.pulled_at.clear()
                broker.pull_plan = [(FOUND_NOTHING, 0)] * 2
                options = ConsumerOptions(pull_interval_ms=300)
                async with cluster.consumer("slow", options=options) as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulled_at) == 3)
                assert min(broker.pauses) >= 0.29

        run(work, brokers=0)


class TestAPullConsumer:
    def test_reads_where_its_user_says(self, run: Run) -> None:
        """
        Any offset of any queue; the progress is the user's own to store.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *"abcde")
            async with puller(cluster) as consumer:
                found = await consumer.pull(Q0, 2, max_count=2)
                assert [b"c", b"d"] == [message.body for message in found.messages]
                assert (PullStatus.FOUND, 4, 0, 5) == (
                    found.status, found.next_offset, found.min_offset, found.max_offset,
                )  # fmt: skip
                assert PullStatus.NO_NEW is (await consumer.pull(Q0, 5)).status
                beyond = await consumer.pull(Q0, 99)
                assert (PullStatus.OFFSET_MOVED, 5) == (beyond.status, beyond.next_offset)
                assert None is await consumer.committed(Q0)
                await consumer.commit(Q0, found.next_offset)
                assert 4 == await consumer.committed(Q0)

        run(work)

    def test_can_wait_for_a_message(self, run: Run) -> None:
        """
        A blocking pull is answered when one comes.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            async with puller(cluster) as consumer:
                waiting = asyncio.ensure_future(consumer.pull_blocking(Q0, 0))
                await asyncio.sleep(0.3)
                assert not waiting.done()
                await fill(cluster, "x")
                found = await waiting
            assert [b"x"] == [message.body for message in found.messages]

        run(work)

    def test_hears_of_changed_queues(self, run: Run) -> None:
        """
        A listener is told all queues and the member's own share, whenever they change.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 4)
            heard: list[tuple[int, int]] = []
            async with puller(cluster) as one:
                one.on_queues_changed(
                    "orders", lambda _, every, mine: heard.append((len(every), len(mine)))
                )
                await until(lambda: heard == [(4, 4)])
                async with puller(cluster) as two:
                    two.on_queues_changed("orders", lambda *_: None)
                    await until(lambda: heard[-1] == (4, 2))
                await until(lambda: heard[-1] == (4, 4))
            assert [(4, 4), (4, 2), (4, 4)] == heard

        run(work)


class TestALitePullConsumer:
    def test_subscribes_and_is_polled(self, run: Run) -> None:
        """
        Batches of 10; an empty list when nothing comes in time.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *map(str, range(25)))
            async with lite(cluster) as consumer:
                consumer.subscribe("orders")
                sizes, found = [], []
                while len(found) < 25:
                    batch = await consumer.poll()
                    sizes.append(len(batch))
                    found += [int(message.body) for message in batch]
                assert [] == await consumer.poll(0.1)
            assert list(range(25)) == found
            assert 10 == max(sizes)

        run(work)

    def test_is_assigned_queues_and_seeks(self, run: Run) -> None:
        """
        Exactly the queues it was given, from the offset it chooses, however often.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 4)
            await fill(cluster, *"abc")
            await fill(cluster, "other", queue=Queue("orders", "broker-a", 1))
            async with lite(cluster) as consumer:
                consumer.assign([Q0])
                assert [Q0] == await consumer.wait_assigned()
                for offset, expected in ((1, [b"b", b"c"]), (0, [b"a", b"b", b"c"])):
                    await consumer.seek(Q0, offset)
                    assert expected == [message.body for message in await consumer.poll()]
                assert [] == await consumer.poll(0.1)

        run(work)

    def test_commits_every_five_seconds_what_was_polled_before(self) -> None:
        """
        What a poll returned counts as read at the next one. The broker's table is asked: whoever
        asks as a member of the group may be given the queue.
        """

        async def story() -> list[int | None]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, *map(str, range(25)))
                stored = cluster.broker().registry.offsets
                async with lite(cluster) as consumer:
                    consumer.subscribe("orders")
                    await consumer.poll()
                    await consumer.poll()
                    seen = []
                    for seconds in (4.8, 0.4):
                        await asyncio.sleep(seconds)
                        seen.append(stored.get("g", "orders", 0))
                return [*seen, stored.get("g", "orders", 0)]

        assert [None, 10, 20] == simulate(story)

    def test_commits_over_tcp_as_well(self, run: Run) -> None:
        """
        By its timer, and by hand when auto commit is off.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *map(str, range(25)))
            async with lite(cluster, auto_commit_interval_ms=100) as consumer:
                consumer.subscribe("orders")
                await consumer.poll()
                await consumer.poll()
                async with asyncio.timeout(10):
                    while await consumer.committed(Q0) != 10:
                        await asyncio.sleep(0.05)
            assert 20 == await progress_of(cluster)
            async with lite(cluster, auto_commit=False) as consumer:
                consumer.subscribe("orders")
                assert 5 == len(await consumer.poll())
            assert 20 == await progress_of(cluster)
            async with lite(cluster, auto_commit=False) as consumer:
                consumer.subscribe("orders")
                await consumer.poll()
                await consumer.commit()
            assert 25 == await progress_of(cluster)

        run(work)


class TestBroadcasting:
    def test_gives_every_member_everything_and_keeps_progress_in_a_file(
        self, run: Run, tmp_path: Path
    ) -> None:
        """
        RocketMQ's own file, one a client; a member that comes back goes on where it was.
        """

        async def work(cluster: Cluster) -> None:
            root = tmp_path / str(id(cluster))
            options = ConsumerOptions(consume_from_where=FROM_FIRST, offset_dir=str(root))
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")

            async def member(name: str, count: int) -> list[str]:
                client = ClientOptions(client_ip="10.0.0.1", instance_name=name)
                async with cluster.consumer(
                    "g", broadcast=True, options=options, client=client
                ) as consumer:
                    consumer.subscribe("orders")
                    return await take(consumer, count)

            both = await asyncio.gather(member("one", 2), member("two", 2))
            assert [["a", "b"], ["a", "b"]] == both
            for name in ("one", "two"):
                path = root / f"10.0.0.1@{name}" / "g" / "offsets.json"
                assert {Q0: 2} == parse_offsets(path.read_bytes())
            await fill(cluster, "c")
            assert ["c"] == await member("one", 1)
            assert None is await progress_of(cluster)

        run(work)


class TestProgress:
    def test_is_the_smallest_unfinished_offset(self, run: Run) -> None:
        """
        101 open and 102 to 110 done: 101. All done: 111.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *map(str, range(111)))
            async with puller(cluster) as setting:
                await setting.commit(Q0, 101)
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                async with asyncio.timeout(20):
                    open_ = [await anext(consumer) for _ in range(10)]
                assert list(range(101, 111)) == [message.offset for message in open_]
                for message in reversed(open_[1:]):
                    await message.ack()
                await consumer.commit()
                assert 101 == await progress_of(cluster)
                await open_[0].ack()
                await consumer.commit()
                assert 111 == await progress_of(cluster)

        run(work)

    def test_is_stored_every_five_seconds(self) -> None:
        """
        Not with every message.
        """

        async def story() -> list[int | None]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, "a", "b")
                async with cluster.consumer("g", options=FIRST) as consumer:
                    consumer.subscribe("orders")
                    await take(consumer, 2)
                    seen = []
                    for seconds in (4.5, 1.0):
                        await asyncio.sleep(seconds)
                        seen.append(await progress_of(cluster))
                return seen

        assert [None, 2] == simulate(story)

    def test_is_stored_by_timer_at_close_and_when_a_queue_leaves(self, run: Run) -> None:
        """
        Whoever takes a queue over begins where it was left.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            last = Queue("orders", "broker-a", 1)
            await fill(cluster, "a", "b")
            await fill(cluster, "x", queue=last)
            often = ClientOptions(persist_offset_interval_ms=100)
            async with cluster.consumer("timed", options=FIRST, client=often) as consumer:
                consumer.subscribe("orders")
                await take(consumer, 3)
                async with asyncio.timeout(10):
                    while await progress_of(cluster, "timed") != 2:
                        await asyncio.sleep(0.05)
            async with cluster.consumer("g", options=FIRST) as one:
                one.subscribe("orders")
                await take(one, 3)
                async with cluster.consumer("g", options=FIRST) as two:
                    two.subscribe("orders")
                    (given,) = await two.wait_assigned()
                    expected = {Q0: 2, last: 1}[given]
                    assert expected == await progress_of(cluster, queue=given)
                    assert None is await progress_of(cluster, queue=Q0 if given == last else last)
            assert [2, 1] == [await progress_of(cluster, queue=queue) for queue in (Q0, last)]
            await fill(cluster, "c")
            async with cluster.consumer("g") as again:
                again.subscribe("orders")
                assert ["c"] == await take(again, 1)

        run(work)

    def test_behind_what_retention_took_moves_to_the_first_message_still_there(
        self, run: Run
    ) -> None:
        """
        A group that was away for too long does not get stuck.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *("x" * 1000 for _ in range(30)))
            async with puller(cluster) as setting:
                await setting.commit(Q0, 1)
            await cluster.stop_broker()  # a clean stop leaves nothing that recovery could need
            await cluster.start_broker()
            await fill(cluster, "y")
            await asyncio.sleep(0.01)
            assert await cluster.broker().store.upkeep.delete_expired()
            async with cluster.admin() as admin:
                first = await admin.min_offset(Q0)
            assert first > 1
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                async with asyncio.timeout(20):
                    assert first == (await anext(consumer)).offset

        run(work, mapped_file_size_commit_log=8192, file_reserved_time=0)

    def test_of_a_group_that_begins_at_a_time_is_half_an_hour_by_default(self) -> None:
        """
        What came 31 minutes ago is history, what came 29 minutes ago is not.
        """

        async def story() -> list[str]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                for body, seconds in (("old", 120), ("new", 29 * 60)):
                    await fill(cluster, body)
                    await asyncio.sleep(seconds)
                options = ConsumerOptions(
                    consume_from_where="CONSUME_FROM_TIMESTAMP", from_last_skips_young_queues=True
                )
                async with cluster.consumer("g", options=options) as consumer:
                    consumer.subscribe("orders")
                    return await take(consumer, 1)

        assert ["new"] == simulate(story)


class TestFlowControl:
    def test_has_rocketmqs_numbers(self) -> None:
        """
        1000 messages, 100 MiB, span 2000, 20 handlers, one message each, 15 minutes.
        """
        options = ConsumerOptions()
        assert (1000, 100, 2000, 20, 20, 1, 15 * 60_000) == (
            options.pull_threshold_for_queue, options.pull_threshold_size_for_queue_mib,
            options.consume_max_span, options.consume_thread_min, options.consume_thread_max,
            options.consume_batch_max, options.consume_timeout_ms,
        )  # fmt: skip
        assert (1000, 100, 10_000) == (
            PullOptions().pull_threshold_for_queue,
            PullOptions().pull_threshold_size_for_queue_mib,
            PullOptions().pull_threshold_for_all,
        )

    @pytest.mark.parametrize(
        "limit, size, held_max",
        [
            ({"pull_threshold_for_queue": 40}, 10, 40 + 32),
            ({"pull_threshold_size_for_queue_mib": 1}, 40_000, 26 + 1 + 32),
            ({"consume_max_span": 40}, 10, 41 + 1 + 32),
        ],
    )
    def test_stops_pulling_at_each_limit_and_goes_on_below_it(
        self, run: Run, limit: dict[str, int], size: int, held_max: int
    ) -> None:
        """
        Messages, bytes, span: a slow handler does not fill the memory, and nothing is lost.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            unpacked = ProducerOptions(compress_over_bytes=100_000)
            async with cluster.producer(options=unpacked) as producer:
                for number in range(150):
                    await producer.send(Message("orders", str(number).ljust(size, ".")), queue=Q0)
            options = ConsumerOptions(consume_from_where=FROM_FIRST, **limit)  # type: ignore[arg-type]
            pulls = Pulls()
            async with cluster.consumer("g", options=options, hooks=[pulls]) as consumer:
                consumer.subscribe("orders")
                first = await anext(consumer)
                await asyncio.sleep(0.5)
                count = len(pulls.times)
                held = consumer._running.process_queues.held[Q0].progress.count
                await asyncio.sleep(0.5)
                assert count == len(pulls.times)
                assert 25 < held <= held_max
                await first.ack()
                rest = await take(consumer, 149)
            assert [*range(1, 150)] == [int(body.strip(".")) for body in rest]

        run(work)

    def test_looks_again_within_50_ms(self) -> None:
        """
        Once there is room the next pull leaves.
        """

        async def story() -> float:
            loop = asyncio.get_running_loop()
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, *map(str, range(100)))
                options = ConsumerOptions(
                    consume_from_where=FROM_FIRST, pull_threshold_for_queue=10
                )
                pulls = Pulls()
                async with cluster.consumer("g", options=options, hooks=[pulls]) as consumer:
                    consumer.subscribe("orders")
                    held = [await anext(consumer) for _ in range(32)]
                    await asyncio.sleep(60)
                    before, count = loop.time(), len(pulls.times)
                    for message in held:
                        await message.ack()
                    await until(lambda: len(pulls.times) > count)
                    return pulls.times[count] - before

        assert simulate(story) <= 0.05

    def test_runs_twenty_handlers_and_the_next_the_moment_one_ends(self, run: Run) -> None:
        """
        A full pool is not asked again 5 s later: who is free takes the next message.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *map(str, range(30)))
            running: list[str] = []
            gates = {str(number): asyncio.Event() for number in range(30)}
            async with cluster.consumer("g", options=FIRST) as consumer:

                @consumer.handler
                async def work_on(message: Delivery) -> None:
                    running.append(message.body.decode())
                    await gates[message.body.decode()].wait()

                consumer.subscribe("orders")
                await until(lambda: len(running) >= 20)
                await asyncio.sleep(0.2)
                assert 20 == len(running)
                gates[running[0]].set()
                await until(lambda: len(running) == 21, 1)
                for gate in gates.values():
                    gate.set()
                await until(lambda: len(running) == 30)

        run(work)

    def test_hands_out_one_message_or_lists_of_so_many(self, run: Run) -> None:
        """
        `consume_batch_max` is 1; larger, a handler gets lists.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, *map(str, range(10)))
            got: list[list[bytes]] = []
            options = ConsumerOptions(consume_from_where=FROM_FIRST, consume_batch_max=4)
            async with cluster.consumer("g", options=options, concurrency=1) as consumer:

                @consumer.handler
                async def work_on(messages: list[Delivery]) -> None:  # type: ignore[arg-type]
                    got.append([message.body for message in messages])

                consumer.subscribe("orders")
                await until(lambda: sum(map(len, got)) == 10)
            assert 4 == max(map(len, got))
            assert [str(n).encode() for n in range(10)] == [body for batch in got for body in batch]

        run(work)

    def test_sends_back_what_a_handler_never_finishes(self, run: Run) -> None:
        """
        After `consume_timeout_ms`, at the 10 s level; its progress goes on, nothing is deleted.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "stuck", "quick")
            options = ConsumerOptions(consume_from_where=FROM_FIRST, consume_timeout_ms=400)
            done: list[bytes] = []
            async with cluster.consumer("g", options=options, close_grace=0.1) as consumer:

                @consumer.handler
                async def hang(message: Delivery) -> None:
                    if message.body == b"stuck":
                        await asyncio.sleep(3600)
                    done.append(message.body)

                consumer.subscribe("orders")
                peer = await Peer.to(cluster)
                async with asyncio.timeout(20):
                    while True:
                        waiting = await peer.pull("SCHEDULE_TOPIC_XXXX", 0, queue=2)
                        if waiting.code == 0:
                            break
                        await asyncio.sleep(0.05)
                await consumer.commit()
            assert ([b"stuck"], [b"quick"]) == (bodies(waiting), done)
            assert 2 == await progress_of(cluster)

        run(work)


class TestPullOutcomes:
    def test_nothing_new_and_no_match_move_on_and_are_stored(self, run: Run) -> None:
        """
        The broker's next offset counts: pulled from there at once, stored as nothing is open.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", queues=1) as (broker,):
                broker.pull_plan = [(FOUND_NOTHING, 7), (NO_MATCH, 9)]
                client = ClientOptions(persist_offset_interval_ms=100)
                async with cluster.consumer("g", client=client) as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: broker.progress == 9)
                assert ["0", "7", "9"] == [pull.ext["queueOffset"] for pull in broker.pulls]
                assert max(broker.pauses) < 0.5

        run(work, brokers=0)

    def test_an_error_costs_3_seconds_and_a_busy_broker_20_ms(self, run: Run) -> None:
        """
        Neither ends the pulls.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", queues=1) as (broker,):
                broker.pull_plan = [(2, 0), (2, 0), (1, 0)]
                async with cluster.consumer("g") as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulls) == 4)
                busy, again, error = broker.pauses
                assert 0.02 <= min(busy, again)
                assert max(busy, again) < 1
                assert 2.99 <= error < 4.5

        run(work, brokers=0)

    def test_an_offset_outside_the_queue_is_corrected_stored_and_taken_again(
        self, run: Run
    ) -> None:
        """
        The queue is dropped, the broker's word stored, and the queue taken from there.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", queues=1) as (broker,):
                broker.progress, broker.pull_plan = 99, [(MOVED, 5)]
                async with cluster.consumer("g") as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulls) == 2)
                    assert 5 == broker.progress
                assert ["99", "5"] == [pull.ext["queueOffset"] for pull in broker.pulls]

        run(work, brokers=0)

    def test_an_offset_that_is_wrong_again_waits_10_seconds(self) -> None:
        """
        A broker that keeps moving us is not asked in a circle.
        """

        async def story() -> list[int]:
            async with (
                Cluster(memory=True, brokers=0) as cluster,
                puppets(cluster, "a", queues=1) as (broker,),
            ):
                broker.pull_plan = [(MOVED, 5), (MOVED, 6)]
                async with cluster.consumer("g") as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulls) == 3, 60)
                return [round(pause) for pause in broker.pauses]

        assert [0, 10] == simulate(story)

    def test_a_held_consumer_looks_every_second_and_pulls_nothing(self) -> None:
        """
        When the hold ends the next pull leaves within a second.
        """

        async def story() -> tuple[int, float]:
            loop = asyncio.get_running_loop()
            async with (
                Cluster(memory=True, brokers=0) as cluster,
                puppets(cluster, "a", queues=1) as (broker,),
            ):
                broker.pull_plan = [(FOUND_NOTHING, 0)]
                options = ConsumerOptions(pull_interval_ms=100)
                async with cluster.consumer("g", options=options) as consumer:
                    consumer.subscribe("orders")
                    await until(lambda: len(broker.pulls) == 1)
                    consumer.pause(1000)
                    await asyncio.sleep(60)
                    count, resumed = len(broker.pulls), loop.time()
                    consumer.resume()
                    await until(lambda: len(broker.pulls) == 2)
                    return count, broker.pulled_at[1] - resumed

        count, after = simulate(story)
        assert 1 == count
        assert after <= 1.0

    def test_a_pull_that_died_is_found_and_begun_again(self, run: Run) -> None:
        """
        Whatever ended it, the next look at the queues takes its queue afresh.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a")
            options = ConsumerOptions(consume_from_where=FROM_FIRST, rebalance_interval_ms=300)
            async with cluster.consumer("g", options=options) as consumer:
                consumer.subscribe("orders")
                await take(consumer, 1)
                process_queue = consumer._running.process_queues.held[Q0]
                assert process_queue.pulls is not None
                process_queue.pulls.cancel()
                await fill(cluster, "b")
                assert ["b"] == await take(consumer, 1)

        run(work)


class TestAtMostOnce:
    def test_what_was_acknowledged_before_the_work_never_comes_again(self, run: Run) -> None:
        """
        The broker has the progress before the program sees the message.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "b")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                async with asyncio.timeout(20):
                    message = await anext(ack_first(consumer))
                assert (b"a", 1) == (message.body, await progress_of(cluster))
            async with cluster.consumer("g") as again:
                again.subscribe("orders")
                assert ["b"] == await take(again, 1)

        run(work)

    def test_a_message_that_is_not_finished_comes_again(self, run: Run) -> None:
        """
        At least once is the rule: leaving without an ack loses nothing.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                async with asyncio.timeout(20):
                    assert b"a" == (await anext(consumer)).body
            async with cluster.consumer("g") as again:
                again.subscribe("orders")
                assert ["a"] == await take(again, 1)
            async with cluster.admin() as admin:
                assert 0 == await admin.max_offset(Queue(retry_topic("g"), "broker-a", 0))

        run(work)
