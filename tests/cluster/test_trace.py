"""Message trace: who sent and consumed what, written by our clients and found again."""

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest
from peer import Peer, Run, messages

from gantrymq import ConsumerOptions, Delivery, Message, Producer
from gantrymq.client import tracing
from gantrymq.client.admin.messages.trace_query import Trace, trace_of
from gantrymq.client.tracing import QUEUE_MAX
from gantrymq.model import TRACE_TOPIC, dead_topic, reply_topic
from gantrymq.protocol import trace
from gantrymq.protocol.command import Command
from gantrymq.protocol.trace import (
    ConsumeReturnType,
    MessageType,
    Pub,
    SubAfter,
    SubBefore,
    TraceCount,
)
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


async def traced(cluster: Cluster, msg_id: str, count: int, topic: str = TRACE_TOPIC) -> Trace:
    """The trace of a message once it has so many events; the index follows the log."""
    async with cluster.admin() as admin:
        while True:
            found = await trace_of(admin, msg_id, topic=topic)
            if len(found.events) >= count:
                return found
            await asyncio.sleep(0.05)


def records(found: Trace) -> list[Any]:
    return [event.record for event in found.events]


def test_a_send_and_its_consumption_are_traced(run: Run) -> None:
    """
    Three records: sent, handed out, finished; the last two belong together by their request id.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            sent = await producer.send(Message("T", b"hello", tags="a", keys=["k1", "k2"]))
        async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
            consumer.subscribe("T")
            await (await anext(consumer)).ack()
        found = await traced(cluster, sent.msg_id, 3)
        pub, before, after = records(found)
        address = f"127.0.0.1:{cluster.broker().config.listen_port}"

        assert (Pub, SubBefore, SubAfter) == (type(pub), type(before), type(after))
        assert ("shop", "T", "a", "k1 k2") == (pub.group, pub.topic, pub.tags, pub.keys)
        assert (address, 5, sent.offset_msg_id, True) == (
            pub.store_host, pub.body_bytes, pub.offset_msg_id, pub.ok,
        )  # fmt: skip
        assert ("billing", 0, "k1 k2") == (before.group, before.retry_times, before.keys)
        assert (before.request_id, True, ConsumeReturnType.SUCCESS) == (
            after.request_id, after.ok, after.outcome,
        )  # fmt: skip
        assert found.complete

    run(work, trace_topic_enable=True)


def test_the_trace_of_a_message_is_found_by_its_key(run: Run) -> None:
    """
    Keys of the traced message are keys of its trace message, as RocketMQ's tools expect.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            sent = await producer.send(Message("T", b"hello", keys=["order-7"]))
        await traced(cluster, sent.msg_id, 1)
        async with cluster.admin() as admin:
            (message,) = await admin.query(TRACE_TOPIC, "order-7")

        assert {sent.msg_id, "order-7"} == set(message.keys)
        assert [sent.msg_id] == [record.msg_id for record in trace.decode(message.body).records]

    run(work, trace_topic_enable=True)


def test_failed_attempts_say_how_they_failed(run: Run) -> None:
    """
    An exception, a wish to try again and a time-out are three different outcomes.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with cluster.producer("shop") as producer:
            sent = [await producer.send(Message("T", body)) for body in (b"raise", b"retry", b"ok")]
        done = asyncio.Event()
        async with cluster.consumer(
            "billing", trace=True, options=FIRST, max_retries=0
        ) as consumer:

            @consumer.handler
            async def handle(message: Delivery) -> None:
                if message.body == b"raise":
                    raise ValueError("no")
                if message.body == b"retry":
                    await message.retry()
                else:
                    done.set()

            consumer.subscribe("T")
            await done.wait()
        outcomes = []
        for result in sent:
            found = await traced(cluster, result.msg_id, 2)
            outcomes.append((records(found)[-1].ok, records(found)[-1].outcome))

        assert [
            (False, ConsumeReturnType.EXCEPTION),
            (False, ConsumeReturnType.FAILED),
            (True, ConsumeReturnType.SUCCESS),
        ] == outcomes

    run(work, trace_topic_enable=True)


def test_a_retried_message_has_one_pair_of_records_for_each_attempt() -> None:
    """
    The id stays the same over all copies, so one question shows all attempts.
    """

    async def main() -> None:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T", queues=1)
            async with cluster.producer("shop") as producer:
                sent = await producer.send(Message("T", b"x"))
            async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
                consumer.subscribe("T")
                for _ in range(2):
                    await (await anext(consumer)).retry()
                await (await anext(consumer)).ack()
            attempts = records(await traced(cluster, sent.msg_id, 6))
            pairs = zip(attempts[::2], attempts[1::2], strict=True)

            assert [(0, False), (1, False), (2, True)] == [
                (before.retry_times, after.ok) for before, after in pairs
            ]

    simulate(main)


def test_a_message_whose_holder_never_finished_it_timed_out() -> None:
    """
    What is taken back after the consume time-out is traced as TIME_OUT.
    """

    async def main() -> None:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T", queues=1)
            async with cluster.producer("shop") as producer:
                sent = await producer.send(Message("T", b"x"))
            async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
                consumer.subscribe("T")
                await anext(consumer)
                found = await traced(cluster, sent.msg_id, 2)

            assert ConsumeReturnType.TIMEOUT == records(found)[-1].outcome

    simulate(main)


def test_every_message_of_a_batch_is_found_by_its_own_id(run: Run) -> None:
    """
    RocketMQ writes one record with all ids, which no question for one of them finds.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            batch = [Message("T", b"one", tags="a"), Message("T", b"three", keys=["k"])]
            sent = await producer.send_batch(batch)
        ids, places = sent.msg_id.split(","), sent.offset_msg_id.split(",")
        found = [records(await traced(cluster, msg_id, 1))[0] for msg_id in ids]

        assert list(zip(ids, places, ["a", ""], ["", "k"], [3, 5], strict=True)) == [
            (pub.msg_id, pub.offset_msg_id, pub.tags, pub.keys, pub.body_bytes) for pub in found
        ]

    run(work, trace_topic_enable=True)


def test_a_delayed_message_is_traced_as_one(run: Run) -> None:
    """
    The kind of message is part of the record.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            sent = await producer.send(Message("T", b"x", delay_level=1))
        (pub,) = records(await traced(cluster, sent.msg_id, 1))

        assert MessageType.DELAY == pub.message_type

    run(work, trace_topic_enable=True)


def test_trace_goes_to_a_topic_of_ones_own(run: Run) -> None:
    """
    `trace="name"`: brokers without the trace topic can be traced as well.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        await cluster.create_topic("MyTrace", queues=1)
        async with cluster.producer("shop", trace="MyTrace") as producer:
            sent = await producer.send(Message("T", b"x"))
            await producer.send(Message("MyTrace", b"never traced itself"))
        found = await traced(cluster, sent.msg_id, 1, "MyTrace")
        peer = await Peer.to(cluster)
        bodies = [message.body for message in messages(await peer.pull("MyTrace", 0))]
        peer.close()

        assert [Pub] == [type(record) for record in records(found)]
        assert 2 == len(bodies)

    run(work)


class Untraced:
    """A broker that wants no trace: traceOn=false."""

    def before_request(self, address: str, command: Command) -> None:
        pass

    def after_response(self, address: str, command: Command, response: Command) -> None:
        response.ext["TRACE_ON"] = "false"


def test_nothing_is_traced_where_the_broker_says_so(run: Run) -> None:
    """
    TRACE_ON=false in the answer to a send, and in a message, switches tracing off, as in RocketMQ.
    """

    async def work(cluster: Cluster) -> None:
        peer, topic = await Peer.to(cluster), reply_topic("DefaultCluster")
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True, hooks=[Untraced()]) as producer:
            sent = await producer.send(Message("T", b"x"))
        header = {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
        for props in ("TRACE_ON\x01false\x02UNIQ_KEY\x01A1\x02", "UNIQ_KEY\x01A2\x02"):
            # Replies are stored with just the properties they have.
            await peer.call(325, b"x", i=props, **header)
        peer.close()
        async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
            consumer.subscribe(topic)
            for _ in range(2):
                await (await anext(consumer)).ack()
        traced_one = await traced(cluster, "A2", 2)
        async with cluster.admin() as admin:
            untraced = [await trace_of(admin, msg_id) for msg_id in ("A1", sent.msg_id)]

        assert (2, [[], []]) == (len(traced_one.events), [found.events for found in untraced])

    run(work, trace_topic_enable=True)


def test_a_full_queue_drops_trace_and_counts_it() -> None:
    """
    Trace is never worth a message: the sends go on, what was not noted is known as a number.
    """

    async def main() -> tuple[int, int, int]:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T")
            async with cluster.producer("shop", trace=True) as producer:
                await producer.send(Message("T", b"x"))
                notes = producer.tracing
                assert notes is not None
                sent = await producer.send(Message("T", b"y"))
                for _ in range(QUEUE_MAX + 7):
                    notes.recalled("T", sent.msg_id, ok=True)
                dropped = notes.dropped
            return dropped, notes.dropped, notes.lost

    before, after, lost = simulate(main)

    assert (before, 0) == (after, lost)
    assert 7 <= before <= 9


async def bodies(cluster: Cluster) -> list[bytes]:
    """All trace messages."""
    async with cluster.consumer("auditor", options=FIRST) as consumer:
        consumer.subscribe(TRACE_TOPIC)
        found = []
        while True:
            try:
                async with asyncio.timeout(2):
                    message = await anext(consumer)
            except TimeoutError:
                return found
            found.append(message.body)
            await message.ack()


def numbered(found: list[bytes], side: str) -> list[TraceCount]:
    """The counts of the only writer of a side, in its order."""
    counts = [count for body in found for count in trace.decode_counts(body)]
    return sorted((each for each in counts if each.side == side), key=lambda each: each.first)


def test_twenty_thousand_messages_in_a_second_are_traced_to_the_last() -> None:
    """
    Sent and consumed in a burst over a network that takes its time, nothing is dropped; the numbers
    of records follow each other without a hole, and the last one is marked.
    """
    count = 20_000

    async def main() -> tuple[int, list[bytes]]:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            assert isinstance(cluster.network, MemoryNetwork)
            cluster.network.set_delay(0.005, 0.01)
            await cluster.create_topic("T")
            async with cluster.producer("shop", trace=True) as producer:
                sent = []
                for _ in range(count):
                    await producer.room()
                    sent.append(producer.submit(Message("T", b"x")))
                await asyncio.gather(*sent)
            async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
                consumer.subscribe("T")
                for _ in range(count):
                    await (await anext(consumer)).ack()
            assert producer.tracing is not None
            assert consumer.tracing is not None
            dropped = producer.tracing.dropped + consumer.tracing.dropped
            return dropped, await bodies(cluster)

    dropped, found = simulate(main)

    told = Counter(type(record) for body in found for record in trace.decode(body).records)
    assert ({Pub: count, SubBefore: count, SubAfter: count}, 0) == (told, dropped)
    for side, records in (("PRODUCE", count), ("CONSUME", 2 * count)):
        counts = numbered(found, side)
        ends = [each.first + each.records for each in counts]
        assert [0, *ends[:-1]] == [each.first for each in counts]
        assert (records, True, 0) == (ends[-1], counts[-1].closed, counts[-1].waiting)
        assert not any(each.closed for each in counts[:-1])


def test_trace_messages_tell_what_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The number is in the records themselves, for whoever reads them later.
    """
    monkeypatch.setattr(tracing, "QUEUE_MAX", 5)

    async def main() -> tuple[int, list[bytes]]:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T")
            async with cluster.producer("shop", trace=True) as producer:
                await asyncio.gather(*(producer.send(Message("T", b"x")) for _ in range(12)))
            assert producer.tracing is not None
            return producer.tracing.dropped, await bodies(cluster)

    dropped, found = simulate(main)
    counts = numbered(found, "PRODUCE")

    assert dropped > 0
    assert (dropped, 12) == (
        counts[-1].dropped, counts[-1].dropped + sum(each.records for each in counts),
    )  # fmt: skip


def test_a_traced_consumer_names_every_member_that_it_met_once() -> None:
    """
    Also one that does not trace and leaves again, and also when there is nothing else to trace.
    """

    async def main() -> tuple[list[str], list[bytes]]:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T")
            async with cluster.consumer("billing", trace=True) as traced_one:
                traced_one.subscribe("T")
                await asyncio.sleep(5)
                async with cluster.consumer("billing") as silent:
                    silent.subscribe("T")
                    await asyncio.sleep(5)
                    ids = [traced_one.instance.client_id, silent.instance.client_id]
                await asyncio.sleep(30)
            return ids, await bodies(cluster)

    ids, found = simulate(main)
    counts = numbered(found, "CONSUME")

    assert len(set(ids)) == 2
    assert [(1, (ids[0],)), (2, (ids[1],)), (2, ())] == [
        (each.met, each.members) for each in sorted(counts, key=lambda each: each.at_ms)
    ]
    assert [False, False, True] == sorted(each.closed for each in counts)


def test_trace_that_cannot_be_stored_is_counted_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    No topic for it and none to be made: a warning a minute, and the number of records lost.
    """

    async def main() -> int:
        async with Cluster(memory=True, auto_create_topic_enable=False) as cluster:
            await cluster.create_topic("T")
            async with cluster.producer("shop", trace=True) as producer:
                for _ in range(3):
                    await producer.send(Message("T", b"x"))
                    await asyncio.sleep(1)
                assert producer.tracing is not None
                return producer.tracing.lost

    with caplog.at_level(logging.WARNING, "gantrymq.client.tracing"):
        lost = simulate(main)

    assert 3 == lost
    assert 1 == len([entry for entry in caplog.records if "trace of shop" in entry.message])


def test_a_close_writes_what_was_noted(run: Run) -> None:
    """
    A program that ends at once leaves its trace all the same.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            results = await producer.send_many(Message("T", f"{n}") for n in range(300))
        last = results[-1]
        assert not isinstance(last, Exception)

        assert 1 == len((await traced(cluster, last.msg_id, 1)).events)

    run(work, trace_topic_enable=True)


def test_a_question_without_a_trace_topic_says_why_nothing_is_known(run: Run) -> None:
    """
    The answer is empty and not complete, with the setting that would change that.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            found = await trace_of(admin, "A" * 32)

        assert ([], False) == (found.events, found.complete)
        assert "traceTopicEnable" in found.gaps[0]

    run(work)


def test_the_inner_producer_is_known_by_rocketmqs_name(run: Run) -> None:
    """
    Brokers see who writes trace: `_INNER_TRACE_PRODUCER-<group>-PRODUCE-1`.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        producer: Producer
        async with cluster.producer("shop", trace=True) as producer, cluster.admin() as admin:
            await producer.send(Message("T", b"x"))
            await producer.instance.heartbeat_now()
            inner = await admin.producers("_INNER_TRACE_PRODUCER-shop-PRODUCE-1", "T")

            assert [producer.instance.client_id] == [row.client_id for row in inner.connection_set]

    run(work, trace_topic_enable=True)


def test_dead_letters_keep_the_trace_of_their_life() -> None:
    """
    The last attempt of a message that ends among the dead letters is FAILED as well.
    """

    async def main() -> None:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T", queues=1)
            async with cluster.producer("shop") as producer:
                sent = await producer.send(Message("T", b"x"))
            async with cluster.consumer("billing", trace=True, options=FIRST) as consumer:
                consumer.subscribe("T")
                await (await anext(consumer)).dead()
            found = records(await traced(cluster, sent.msg_id, 2))
            async with cluster.admin() as admin:
                dead = await admin.message(sent.msg_id, topic=dead_topic("billing"))

            assert (False, ConsumeReturnType.FAILED) == (found[-1].ok, found[-1].outcome)
            assert sent.msg_id == dead.msg_id

    simulate(main)


def test_a_transaction_is_traced_with_its_decision(run: Run) -> None:
    """
    The half message is one record, the producer's word another; a question asked is marked.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        ids = []
        async with cluster.producer("bank", trace=True) as producer:
            async with producer.transaction(Message("T", b"x", tags="a", keys=["k"])) as tx:
                ids.append(tx.transaction_id)
            async with producer.transaction(Message("T", b"x")) as tx:
                ids.append(tx.transaction_id)
                tx.rollback()
        found = [records(await traced(cluster, msg_id, 2)) for msg_id in ids]
        address = f"127.0.0.1:{cluster.broker().config.listen_port}"

        assert [MessageType.HALF] * 2 == [pub.message_type for pub, _ in found]
        assert ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE"] == [end.state for _, end in found]
        assert ("bank", "T", "a", "k", address, ids[0], False) == (
            found[0][1].group, found[0][1].topic, found[0][1].tags, found[0][1].keys,
            found[0][1].store_host, found[0][1].transaction_id, found[0][1].from_check,
        )  # fmt: skip

    run(work, trace_topic_enable=True)


def test_a_decision_that_a_broker_had_to_ask_for_says_so() -> None:
    """
    from_check tells the two kinds apart.
    """

    async def main() -> list[Any]:
        async with Cluster(memory=True, trace_topic_enable=True) as cluster:
            await cluster.create_topic("T", queues=1)
            async with cluster.producer("bank", trace=True) as producer:
                producer.check(lambda message: "commit")
                async with producer.transaction(Message("T", b"x")) as tx:
                    tx.unknown()
                return records(await traced(cluster, tx.transaction_id, 3))

    _, unknown, asked = simulate(main)

    assert [("UNKNOW", False), ("COMMIT_MESSAGE", True)] == [
        (end.state, end.from_check) for end in (unknown, asked)
    ]


def test_a_recall_is_traced(run: Run) -> None:
    """
    The trace says who took it back.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop", trace=True) as producer:
            sent = await producer.send(Message("T", b"x", delay=3600))
            assert sent.recall_handle is not None
            await producer.recall("T", sent.recall_handle)
        _, recall = records(await traced(cluster, sent.msg_id, 2))

        assert ("shop", "T", True) == (recall.group, recall.topic, recall.ok)

    run(work, trace_topic_enable=True)
