"""Sending, rule by rule: forms, limits, retries, slow brokers, results, new topics, identities."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from peer import Peer, Run
from puppet import SILENT, Puppet, puppets

from gantrymq import (
    ClientOptions,
    Message,
    MessageRefused,
    NameRefused,
    ProducerOptions,
    PullConsumer,
    Queue,
    Received,
    SendFailed,
    SendResult,
)
from gantrymq.protocol.compression import COMPRESSED
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

MIB = 1024 * 1024
X = Message("orders", b"x")


def puller(cluster: Cluster, group: str = "reader", **more: Any) -> PullConsumer:
    return PullConsumer(
        cluster.namesrv, group=group, network=cluster.network, clock=cluster.clock,
        rng=cluster.rng, **more,
    )  # fmt: skip


async def stored(cluster: Cluster, topic: str = "orders") -> list[Received]:
    """Everything in a topic, queue by queue."""
    found: list[Received] = []
    async with puller(cluster) as consumer:
        for queue in await consumer.queues(topic):
            offset = 0
            while (pulled := await consumer.pull(queue, offset)).messages:
                found += pulled.messages
                offset = pulled.next_offset
    return found


def tried(brokers: Sequence[Puppet]) -> list[int]:
    return [len(broker.sends) for broker in brokers]


class TestAMessage:
    def test_arrives_with_everything_it_was_given(self, run: Run) -> None:
        """
        Topic, body, one tag, any number of keys, the application's flag, its own properties.
        """

        async def work(cluster: Cluster) -> None:
            message = Message(
                "orders", b"one book", "paid", ["order-1", "isbn-2"], flag=7,
                properties={"colour": "red"},
            )  # fmt: skip
            async with cluster.producer() as producer:
                await producer.send(message)
            (found,) = await stored(cluster)
            assert (b"one book", "paid", ("order-1", "isbn-2"), 7, "red") == (
                found.body, found.tags, tuple(found.keys), found.flag, found.properties["colour"],
            )  # fmt: skip

        run(work)

    def test_goes_in_three_ways(self, run: Run) -> None:
        """
        Sent and awaited; submitted with a future or a callback; one-way, without any answer.
        """

        async def work(cluster: Cluster) -> None:
            called: list[SendResult] = []
            async with cluster.producer() as producer:
                first = await producer.send(Message("orders", b"send"))
                future = producer.submit(Message("orders", b"submit"))
                future.add_done_callback(lambda done: called.append(done.result()))
                second = await future
                assert None is await producer.send_oneway(Message("orders", b"oneway"))
            async with asyncio.timeout(10):
                while len(found := await stored(cluster)) < 3:
                    await asyncio.sleep(0.05)
            assert ["SEND_OK", "SEND_OK"] == [first.status, second.status]
            assert [second] == called
            assert [b"oneway", b"send", b"submit"] == sorted(message.body for message in found)

        run(work)

    @pytest.mark.parametrize("name", ["a" * 127, "%RETRY|x_y-1"])
    def test_may_have_any_of_these_topics(self, run: Run, name: str) -> None:
        """
        Letters, digits, %, |, _ and -, up to 127 of them.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                assert name == (await producer.send(Message(name, b"x"))).queue.topic

        run(work)

    @pytest.mark.parametrize("name", ["", " ", "a" * 128, "a b", "a.b", "ä", "a/b"])
    def test_to_a_topic_that_cannot_be_named_so_is_refused(self, run: Run, name: str) -> None:
        """
        By the client, before anybody is asked.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                with pytest.raises(NameRefused, match="topic"):
                    await producer.send(Message(name, b"x"))

        run(work)

    def test_that_need_not_wait_is_answered_before_the_disk(self, run: Run) -> None:
        """
        With SYNC_FLUSH and a disk that takes its time, `wait_store_ok=False` does not wait.
        """

        async def work(cluster: Cluster) -> None:
            loop = asyncio.get_running_loop()
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x", wait_store_ok=False))
                began = loop.time()
                hasty = await producer.send(Message("orders", b"x", wait_store_ok=False))
                in_between = loop.time()
                patient = await producer.send(X)
                ended = loop.time()
            assert ["SEND_OK", "SEND_OK"] == [hasty.status, patient.status]
            assert in_between - began < 0.25
            assert ended - in_between >= 0.25

        run(work, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(0.5))


class TestTheSizeLimit:
    def test_is_four_mebibytes_on_both_sides(self, run: Run) -> None:
        """
        Exactly 4 MiB pass; one byte more is refused by the client, which says how to raise it.
        """

        async def work(cluster: Cluster) -> None:
            options = ProducerOptions(compress_over_bytes=5 * MIB)
            async with cluster.producer(options=options) as producer:
                assert "SEND_OK" == (await producer.send(Message("orders", bytes(4 * MIB)))).status
                refusal = "this client refuses more than 4194304.*max_message_bytes.*maxMessageSize"
                with pytest.raises(MessageRefused, match=refusal):
                    await producer.send(Message("orders", bytes(4 * MIB + 1)))

        run(work, mapped_file_size_commit_log=16 * MIB)

    def test_is_the_same_for_what_packing_makes_larger(self, run: Run) -> None:
        """
        4 MiB of noise pass with the default options, which compress whatever is this large.
        """

        async def work(cluster: Cluster) -> None:
            noise = random.Random(1).randbytes(4 * MIB)
            async with cluster.producer() as producer:
                result = await producer.send(Message("orders", noise))
            async with cluster.admin() as admin:
                assert noise == (await admin.message(result.offset_msg_id)).body

        run(work, mapped_file_size_commit_log=16 * MIB)

    def test_of_the_broker_speaks_for_itself(self, run: Run) -> None:
        """
        A client whose limit alone was raised hears which broker refused, and what is the most.
        """

        async def work(cluster: Cluster) -> None:
            options = ProducerOptions(compress_over_bytes=5 * MIB, max_message_bytes=5 * MIB)
            port = cluster.broker().config.listen_port
            async with cluster.producer(options=options) as producer:
                with pytest.raises(
                    SendFailed, match=f":{port} answered code 13.*4194304"
                ) as caught:
                    await producer.send(Message("orders", bytes(4 * MIB + 1)))
            assert 13 == caught.value.refused_code

        run(work, mapped_file_size_commit_log=16 * MIB)

    def test_rises_when_both_are_raised(self, run: Run) -> None:
        """
        `max_message_bytes` of the producer and `maxMessageSize` of the broker.
        """

        async def work(cluster: Cluster) -> None:
            options = ProducerOptions(compress_over_bytes=6 * MIB, max_message_bytes=5 * MIB)
            async with cluster.producer(options=options) as producer:
                result = await producer.send(Message("orders", bytes(4 * MIB + 1)))
            assert "SEND_OK" == result.status

        run(work, mapped_file_size_commit_log=16 * MIB, max_message_size=5 * MIB)


class TestABatch:
    def test_is_stored_as_single_messages_in_a_row(self, run: Run) -> None:
        """
        One request, one queue, consecutive offsets, an id for each.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                batch = [Message("orders", str(number), keys=[f"k{number}"]) for number in range(5)]
                result = await producer.send_batch(batch)
            found = await stored(cluster)
            assert [b"0", b"1", b"2", b"3", b"4"] == [message.body for message in found]
            assert result.msg_id.split(",") == [message.msg_id for message in found]
            assert {result.queue} == {message.queue for message in found}
            assert list(range(result.offset, result.offset + 5)) == [m.offset for m in found]

        run(work)

    def test_has_one_topic_and_no_delay(self, run: Run) -> None:
        """
        The client says what is wrong; nothing is stored.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            async with cluster.producer() as producer:
                with pytest.raises(MessageRefused, match="one topic"):
                    await producer.send_batch([X, Message("other", b"x")])
                with pytest.raises(MessageRefused, match="no delayed"):
                    await producer.send_batch([X, Message("orders", b"x", delay_level=1)])
            assert [] == await stored(cluster)

        run(work)


class TestCompression:
    @pytest.mark.parametrize("method", ["zlib", "lz4", "zstd"])
    def test_packs_bodies_from_4096_bytes_on(self, run: Run, method: str) -> None:
        """
        Packed on the way and in the store, unpacked for the receiver.
        """

        async def work(cluster: Cluster) -> None:
            options = ProducerOptions(compression=method)
            async with cluster.producer(options=options) as producer:
                for size in (4095, 4096, 100_000):
                    await producer.send(Message("orders", b"a" * size), queue=None)
            found = sorted(await stored(cluster), key=lambda message: len(message.body))
            assert [4095, 4096, 100_000] == [len(message.body) for message in found]
            assert [False, True, True] == [bool(m.sys_flag & COMPRESSED) for m in found]
            assert len(found[2].stored_body) < 5_000

        run(work)


class TestTheQueue:
    def test_is_the_next_one_in_turn_from_a_random_start(self, run: Run) -> None:
        """
        All queues of all brokers take turns; two producers do not begin at the same one.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            starts = set()
            for number in range(6):
                client = ClientOptions(instance_name=f"p{number}")
                async with cluster.producer(client=client) as producer:
                    chosen = [(await producer.send(X)).queue for _ in range(16)]
                assert 16 == len(set(chosen))
                starts.add(chosen[0])
            assert len(starts) > 1

        run(work, brokers=2)

    def test_is_chosen_by_a_selector_or_a_sharding_key(self, run: Run) -> None:
        """
        The sharding key decides, not the message's keys; a selector may decide anything.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            async with cluster.producer() as producer:
                sharded = {
                    (await producer.send(Message("orders", b"x", keys=[k], sharding_key="a"))).queue
                    for k in "abcdefgh"
                }
                last = await producer.send(X, selector=lambda queues: queues[-1])
            assert 1 == len(sharded)
            assert 7 == last.queue.queue_id

        run(work)

    @pytest.mark.parametrize(
        "selector, why",
        [
            (lambda queues: queues[99], "the selector failed: IndexError"),
            (lambda queues: None, "returns one of the queues, not None"),
            (lambda queues: Queue("other", "broker-a", 0), "is none of its"),
        ],
    )
    def test_of_a_broken_selector_is_that_messages_problem(
        self, run: Run, selector: Any, why: str
    ) -> None:
        """
        Its sender is told; the others go on, and the producer can still be closed.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                bad = producer.submit(X, selector=selector)  # waits for the route with the next
                good = producer.submit(X)
                with pytest.raises(MessageRefused, match=why):
                    await bad
                assert "SEND_OK" == (await good).status
                with pytest.raises(MessageRefused, match=why):
                    await producer.send(X, selector=selector)

        run(work)


class TestTryingAgain:
    @pytest.mark.parametrize("code", [1, 14, 16, 17, 204, 205])
    def test_a_send_goes_to_three_brokers_and_then_fails(self, run: Run, code: int) -> None:
        """
        Three tries, each on another broker, for answers that another broker may not give.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b", "c", "d") as brokers:
                for broker in brokers:
                    broker.plan = [code] * 3
                async with cluster.producer() as producer:
                    with pytest.raises(SendFailed, match=f"after 3 tries.*code {code}"):
                        await producer.send(X)
                assert [0, 1, 1, 1] == sorted(tried(brokers))

        run(work, brokers=0)

    def test_a_send_keeps_its_id_from_try_to_try(self, run: Run) -> None:
        """
        So that a receiver can tell a message that was stored twice.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers:
                for broker in brokers:
                    broker.plan = [1]
                async with cluster.producer() as producer:
                    result = await producer.send(X)
                sent = [command.ext["i"] for broker in brokers for command in broker.sends]
            assert 3 == len(sent)
            assert {f"UNIQ_KEY\x01{result.msg_id}\x02"} == set(sent)

        run(work, brokers=0)

    def test_a_busy_broker_is_not_pressed(self, run: Run) -> None:
        """
        Flow control is not answered by another try, unless that is asked for.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers:
                for broker in brokers:
                    broker.plan = [2]
                async with cluster.producer() as producer:
                    with pytest.raises(SendFailed, match="after 1 try"):
                        await producer.send(X)
                assert [0, 1] == sorted(tried(brokers))
                options = ProducerOptions(retry_when_busy=True)
                async with cluster.producer("eager", options=options) as producer:
                    for broker in brokers:
                        broker.plan = [2]
                    assert "SEND_OK" == (await producer.send(X)).status
                assert 4 == sum(tried(brokers))

        run(work, brokers=0)

    def test_a_submitted_message_is_tried_again_after_transport_errors_only(self, run: Run) -> None:
        """
        An answer ends it. A lost connection sends it to another broker.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers, cluster.producer() as producer:
                for broker in brokers:
                    broker.plan = [1]
                with pytest.raises(SendFailed, match="after 1 try"):
                    await producer.submit(X)
                before = tried(brokers)
                for broker in brokers:
                    broker.plan = [SILENT]
                future = producer.submit(X)
                async with asyncio.timeout(5):
                    while tried(brokers) == before:
                        await asyncio.sleep(0.01)
                (silent,) = [broker for broker in brokers if not broker.plan]
                (other,) = [broker for broker in brokers if broker is not silent]
                other.plan = []
                for connection in silent.connections:
                    connection.abort()
                assert other.name == (await future).queue.broker_name

        run(work, brokers=0)

    def test_a_fixed_queue_is_never_left(self, run: Run) -> None:
        """
        `send` tries once; `submit` comes back to the same queue after a transport error.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers:
                queue = Queue("orders", "a", 1)
                async with cluster.producer() as producer:
                    brokers[0].plan = [1]
                    with pytest.raises(SendFailed, match="after 1 try"):
                        await producer.send(X, queue=queue)
                    brokers[0].plan = [SILENT]
                    future = producer.submit(X, queue=queue)
                    async with asyncio.timeout(5):
                        while tried(brokers) != [2, 0]:
                            await asyncio.sleep(0.01)
                    for connection in brokers[0].connections:
                        connection.abort()
                    assert queue == (await future).queue
                assert [3, 0] == tried(brokers)

        run(work, brokers=0)

    def test_a_one_way_message_is_sent_once(self, run: Run) -> None:
        """
        Whatever a broker thinks of it, nobody asks.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers:
                for broker in brokers:
                    broker.plan = [1]
                async with cluster.producer() as producer:
                    await producer.send_oneway(X)
                    async with asyncio.timeout(5):
                        while not sum(tried(brokers)):
                            await asyncio.sleep(0.01)
                    await asyncio.sleep(0.2)
                assert [0, 1] == sorted(tried(brokers))

        run(work, brokers=0)

    def test_a_broker_that_is_gone_costs_nothing_but_a_try(self, run: Run) -> None:
        """
        Connect errors count as transport errors: the message goes to the other broker.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            async with cluster.producer() as producer:
                await producer.send(X)
                await cluster.stop_broker("broker-b")
                results = [await producer.send(X) for _ in range(4)]
                results += [await producer.submit(X) for _ in range(4)]
            assert {"broker-a"} == {result.queue.broker_name for result in results}

        run(work, brokers=2)

    def test_all_tries_share_three_seconds(self, run: Run) -> None:
        """
        Slow refusals use the time up; the caller waits 3 s, not 3 s a try.
        """

        async def work(cluster: Cluster) -> None:
            loop = asyncio.get_running_loop()
            async with puppets(cluster, "a", "b", "c") as brokers:
                for broker in brokers:
                    broker.plan, broker.pause = [1, 1], 1.3
                async with cluster.producer() as producer:
                    await producer.queues("orders")
                    began = loop.time()
                    with pytest.raises(SendFailed, match="did not answer in time"):
                        await producer.send(X)
                    took = loop.time() - began
                assert 2.9 <= took <= 3.7
                assert [1, 1, 1] == tried(brokers)

        run(work, brokers=0)

    def test_stored_less_safely_is_stored(self, run: Run) -> None:
        """
        No other broker is tried, unless `retry_when_not_stored_ok` says so.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a", "b") as brokers:
                for broker in brokers:
                    broker.plan = [11]
                async with cluster.producer() as producer:
                    assert "SLAVE_NOT_AVAILABLE" == (await producer.send(X)).status
                assert [0, 1] == sorted(tried(brokers))
                options = ProducerOptions(retry_when_not_stored_ok=True)
                for broker in brokers:
                    broker.plan = [11]
                async with cluster.producer("strict", options=options) as producer:
                    assert "SEND_OK" == (await producer.send(X)).status

        run(work, brokers=0)


class TestSlowBrokers:
    def test_are_avoided_when_that_is_asked_for(self, run: Run) -> None:
        """
        An answer that takes 0.6 s costs a broker 30 s without messages.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "fast", "slow") as (fast, slow):
                slow.pause = 0.6
                options = ProducerOptions(latency_fault=True)
                async with cluster.producer(options=options) as producer:
                    for _ in range(10):
                        await producer.send(X)
                assert [9, 1] == tried([fast, slow])

        run(work, brokers=0)

    @pytest.mark.parametrize(
        "latency, avoided",
        [(0.5, 0), (0.6, 30), (1.1, 60), (2.1, 120), (3.1, 180), (15.5, 600)],
    )
    def test_are_avoided_as_long_as_the_table_says(self, latency: float, avoided: int) -> None:
        """
        From 550 ms 30 s, 1 s 60 s, 2 s 120 s, 3 s 180 s, 15 s 600 s.
        """
        assert avoided == simulate(lambda: time_avoided(latency, False))

    def test_that_fail_are_avoided_for_ten_minutes(self) -> None:
        """
        A failure counts as a latency of 30 s.
        """
        assert 600 == simulate(lambda: time_avoided(0.0, True))

    def test_are_avoided_for_less_with_the_newer_table(self) -> None:
        """
        From 550 ms 2 s, 1.8 s 5 s, 3 s 6 s, 5 s 10 s, 15 s 30 s; a failure counts as 10 s.
        """
        latencies = (0.6, 1.9, 3.1, 5.1, 15.5)
        found = [
            simulate(lambda latency=latency: time_avoided(latency, False, "5.1.4"))  # type: ignore[misc]
            for latency in latencies
        ]
        assert [2, 5, 6, 10, 30] == found
        assert 10 == simulate(lambda: time_avoided(0.0, True, "5.1.4"))

    def test_are_not_avoided_unless_asked_for(self, run: Run) -> None:
        """
        `latency_fault` is off by default.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "fast", "slow") as (fast, slow):
                slow.pause = 0.6
                async with cluster.producer() as producer:
                    for _ in range(8):
                        await producer.send(X)
                assert [4, 4] == tried([fast, slow])

        run(work, brokers=0)


async def time_avoided(latency: float, fails: bool, table: str = "4.9") -> int:
    """For how many seconds a broker gets nothing after one bad answer."""
    async with (
        Cluster(memory=True, brokers=0) as cluster,
        puppets(cluster, "good", "bad", queues=1) as (_, bad),
    ):
        bad.pause, bad.plan = latency, [1] if fails else []
        options = ProducerOptions(latency_fault=True, latency_table=table, send_timeout_ms=20_000)
        loop = asyncio.get_running_loop()
        async with cluster.producer(options=options) as producer:
            while not bad.sends:
                await producer.send(X)
            began, bad.pause = loop.time(), 0.0
            while True:
                for _ in range(2):  # both have their turn
                    await producer.send(X)
                if len(bad.sends) > 1:
                    return round(loop.time() - began)
                await asyncio.sleep(0.25)


class TestTheResult:
    def test_says_where_the_message_is_and_under_which_ids(self, run: Run) -> None:
        """
        The client's own id, the broker's id, the queue and the offset.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                first = await producer.send(X, selector=lambda queues: queues[2])
                second = await producer.send(X, queue=first.queue)
            assert Queue("orders", "broker-a", 2) == first.queue
            assert [0, 1] == [first.offset, second.offset]
            found = await stored(cluster)
            assert [first.msg_id, second.msg_id] == [message.msg_id for message in found]
            assert [first.offset_msg_id, second.offset_msg_id] == [
                message.offset_msg_id for message in found
            ]
            assert first.msg_id != first.offset_msg_id

        run(work)

    @pytest.mark.parametrize(
        "code, status",
        [
            (0, "SEND_OK"),
            (10, "FLUSH_DISK_TIMEOUT"),
            (12, "FLUSH_SLAVE_TIMEOUT"),
            (11, "SLAVE_NOT_AVAILABLE"),
        ],
    )
    def test_has_one_of_four_statuses(self, run: Run, code: int, status: str) -> None:
        """
        All four mean stored; three of them, less safely than asked for.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a") as (broker,):
                broker.plan = [code]
                async with cluster.producer() as producer:
                    result = await producer.send(X)
                assert (status, 0) == (result.status, result.offset)

        run(work, brokers=0)

    def test_is_flush_disk_timeout_when_the_disk_is_late(self, run: Run) -> None:
        """
        The message is stored and will be read once the disk has it.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                assert "FLUSH_DISK_TIMEOUT" == (await producer.send(X)).status
            async with asyncio.timeout(20):
                while len(await stored(cluster)) < 1:
                    await asyncio.sleep(0.1)

        run(
            work, flush_disk_type="SYNC_FLUSH", sync_flush_timeout=300, syncer=InlineSyncer(1.0)
        )  # fmt: skip


class TestANewTopic:
    @pytest.mark.parametrize("wanted, made", [(4, 4), (2, 2), (16, 8)])
    def test_gets_the_smaller_number_of_queues(self, run: Run, wanted: int, made: int) -> None:
        """
        The client's `default_topic_queue_nums` (4) or the broker's `defaultTopicQueueNums` (8).
        """

        async def work(cluster: Cluster) -> None:
            options = ProducerOptions(default_topic_queue_nums=wanted)
            async with cluster.producer(options=options) as producer, cluster.admin() as admin:
                await producer.send(X)
                address = f"127.0.0.1:{cluster.broker().config.listen_port}"
                topic = (await admin.topic_configs(address))["orders"]
            assert (made, made, 6) == (topic.read_queue_nums, topic.write_queue_nums, topic.perm)

        run(work)

    def test_is_made_with_four_queues_by_default(self, run: Run) -> None:
        """
        min(4, 8), perm 6.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer, cluster.admin() as admin:
                used = {(await producer.send(X)).queue.queue_id for _ in range(8)}
                address = f"127.0.0.1:{cluster.broker().config.listen_port}"
                topic = (await admin.topic_configs(address))["orders"]
            assert {0, 1, 2, 3} == used
            assert (4, 4, 6) == (topic.read_queue_nums, topic.write_queue_nums, topic.perm)

        run(work)

    def test_made_by_hand_has_eight(self, run: Run) -> None:
        """
        8 to read, 8 to write, perm 6.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                (address,) = (await admin.create_topic("orders")).values()
                topic = (await admin.topic_configs(address))["orders"]
            assert (8, 8, 6) == (topic.read_queue_nums, topic.write_queue_nums, topic.perm)

        run(work)


class TestPeers:
    def test_without_auto_creation_a_topic_must_be_made_first(self, run: Run) -> None:
        """
        The broker says that the topic does not exist.
        """

        async def work(cluster: Cluster) -> None:
            answer = await (await Peer.to(cluster)).send("orders", b"x")
            assert 17 == answer.code

        run(work, auto_create_topic_enable=False)
