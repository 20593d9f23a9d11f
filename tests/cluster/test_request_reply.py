"""Requests that get their reply: our client on both sides, our broker between them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread

import pytest
from peer import Peer, Run, messages

from gantrymq import (
    Consumer,
    ConsumerOptions,
    Delivery,
    Message,
    NotARequest,
    Producer,
    Queue,
    RequestTimeout,
    SendFailed,
    reply_to,
    sync,
)
from gantrymq.model import reply_topic
from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
REPLIES = reply_topic("DefaultCluster")
PUSH_REPLY, SEND_REPLY = 326, 325


@asynccontextmanager
async def answering(cluster: Cluster, topic: str = "T") -> AsyncIterator[Producer]:
    """Somebody who answers every request to a topic with its body in capitals."""
    async with (
        cluster.producer("answers") as producer,
        cluster.consumer("workers", options=FIRST) as consumer,
    ):

        @consumer.handler
        async def answer(request: Delivery) -> None:
            await producer.reply(request, request.body.upper())

        consumer.subscribe(topic)
        await consumer.wait_assigned()
        yield producer


async def next_request(consumer: Consumer) -> Delivery:
    request = await anext(consumer)
    await request.ack()
    return request


def test_a_request_gets_the_reply_of_its_consumer(run: Run) -> None:
    """
    What the consumer replied comes back to the caller, with the properties of a reply.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with answering(cluster), cluster.producer("asks") as producer:
            reply = await producer.request(Message("T", b"hello", tags="a"), timeout=5)

            assert (b"HELLO", REPLIES) == (reply.body, reply.topic)
            assert "reply" == reply.properties["MSG_TYPE"]
            assert producer.instance.client_id == reply.properties["REPLY_TO_CLIENT"]
            assert "5000" == reply.properties["TTL"]
            assert reply.properties.keys() >= {"PUSH_REPLY_TIME", "ARRIVE_TIME", "CORRELATION_ID"}
            assert str(reply.arrived_ms) == reply.properties["ARRIVE_TIME"]

    run(work)


def test_many_requests_at_once_each_get_their_own_reply(run: Run) -> None:
    """
    Correlation ids keep them apart, whatever order the replies come in.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with answering(cluster), cluster.producer("asks") as producer:
            bodies = [f"question {number}".encode() for number in range(200)]
            asked = [producer.request(Message("T", body), timeout=20) for body in bodies]
            replies = await asyncio.gather(*asked)

        assert [body.upper() for body in bodies] == [reply.body for reply in replies]

    run(work)


def test_a_topic_is_made_by_the_first_request(run: Run) -> None:
    """
    A request is a send: it goes by the template's route where the topic does not exist yet.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.producer("asks") as producer:
            asking = asyncio.create_task(producer.request(Message("New", b"x"), timeout=30))
            async with answering(cluster, "New"):
                reply = await asking

        assert b"X" == reply.body

    run(work)


def test_a_request_that_nobody_answers_times_out_with_a_clear_error(run: Run) -> None:
    """
    The error says that the request was sent, and where to; what comes later is only counted.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with (
            cluster.producer("asks") as producer,
            cluster.producer("answers") as other,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            with pytest.raises(
                RequestTimeout, match=r"was sent .*T@broker-a:0.* no reply .*0\.5 s"
            ):
                await producer.request(Message("T", b"x"), timeout=0.5)
            requests = producer.instance.requests
            before = requests.late
            await other.reply(await next_request(consumer), b"too late")

            assert (0, 1) == (before, requests.late)

    run(work)


def test_a_request_that_cannot_be_sent_says_so() -> None:
    """
    No broker, no reply: the caller reads what kept the request from leaving.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("T")
            async with cluster.producer("asks") as producer:
                await producer.queues("T")
                await cluster.stop_broker()
                with pytest.raises(SendFailed, match="'T' not sent"):
                    await producer.request(Message("T", b"x"), timeout=20)

    simulate(main)


def test_a_reply_to_somebody_who_left_fails_and_is_still_stored(run: Run) -> None:
    """
    The answering side learns that nobody heard it; the reply topic keeps the reply.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with (
            cluster.producer("answers") as other,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            peer = await Peer.to(cluster)
            asker = "REPLY_TO_CLIENT\x0110.0.0.1@gone\x02CORRELATION_ID\x011\x02TTL\x013000\x02"
            await peer.send("T", b"x", props=asker)
            request = await next_request(consumer)
            with pytest.raises(SendFailed, match=r"channel of <10\.0\.0\.1@gone> not found"):
                await other.reply(request, b"hello?")
            stored = messages(await peer.pull(REPLIES, 0, hold=3000))
            peer.close()

        assert [b"hello?"] == [message.body for message in stored]
        assert "10.0.0.1@gone" == stored[0].properties["REPLY_TO_CLIENT"]

    run(work)


def test_replies_are_not_stored_where_that_is_switched_off(run: Run) -> None:
    """
    storeReplyMessageEnable=false: the reply arrives, its id is a plain 0, the topic stays empty.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with (
            cluster.producer("asks") as producer,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            asking = asyncio.create_task(producer.request(Message("T", b"x"), timeout=20))
            sent = await producer.reply(await next_request(consumer), b"y")
            reply = await asking
            async with cluster.admin() as admin:
                end = await admin.max_offset(Queue(REPLIES, "broker-a", 0))

        assert (b"y", "0", 0) == (reply.body, sent.offset_msg_id, end)

    run(work, store_reply_message_enable=False)


def test_a_reply_by_way_of_another_broker_arrives(run: Run) -> None:
    """
    The topic is on one broker, the reply goes to the other: the asker is known there, too.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("T", queues=1, broker="broker-a")
        async with (
            cluster.producer("asks") as producer,
            cluster.producer("answers") as other,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            for broker in ("broker-b", "broker-a"):
                asking = asyncio.create_task(producer.request(Message("T", b"x"), timeout=20))
                reply = reply_to(await next_request(consumer), broker, tags="far", keys=["k"])
                sent = await other.send(reply, queue=Queue(reply.topic, broker, 0))
                answer = await asking

                assert (broker.encode(), "far", ("k",)) == (answer.body, answer.tags, answer.keys)
                assert broker == sent.queue.broker_name

    run(work, brokers=2)


def test_the_reply_goes_by_the_broker_the_request_came_from(run: Run) -> None:
    """
    That broker has heard of the asker; others may not have.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with (
            cluster.producer("asks") as producer,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            for broker in ("broker-a", "broker-b"):
                place = Queue("T", broker, 0)
                asking = asyncio.create_task(
                    producer.request(Message("T", b"x"), queue=place, timeout=20)
                )
                sent = await producer.reply(await next_request(consumer), b"y")
                await asking

                assert broker == sent.queue.broker_name

    run(work, brokers=2)


def test_a_large_reply_is_packed_and_unpacked(run: Run) -> None:
    """
    Compression works for replies as for all messages.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with answering(cluster), cluster.producer("asks") as producer:
            body = b"abc" * 10_000
            reply = await producer.request(Message("T", body), timeout=10)

            assert body.upper() == reply.body

    run(work)


def test_replies_still_arrive_after_another_producer_of_the_client_closed(run: Run) -> None:
    """
    Producers of one program share a connection; one that closes takes nothing from the others.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with answering(cluster), cluster.producer("asks") as producer:
            await producer.request(Message("T", b"one"), timeout=10)
            async with cluster.producer("short") as short:
                await short.send(Message("T2", b"x"))
                same = short.instance is producer.instance
            reply = await producer.request(Message("T", b"two"), timeout=10)

            assert (True, b"TWO") == (same, reply.body)

    run(work)


def test_only_a_request_can_be_replied_to(run: Run) -> None:
    """
    A plain message asks for nothing: the error names what it lacks.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with (
            cluster.producer("asks") as producer,
            cluster.consumer("workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")
            await producer.send(Message("T", b"x"))
            with pytest.raises(NotARequest, match="REPLY_TO_CLIENT"):
                await producer.reply(await next_request(consumer), b"y")

    run(work)


def test_an_asker_that_does_not_take_its_reply_holds_nobody_longer_than_ten_seconds() -> None:
    """
    The broker waits for the asker's word for 10 s, then tells the other side that it failed.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            asker, other = await Peer.to(cluster), await Peer.to(cluster)
            beat = {"clientID": "deaf", "producerDataSet": [{"groupName": "asks"}]}
            await asker.call(34, fastjson.dumps(beat))
            loop = asyncio.get_running_loop()
            began = loop.time()
            answer = await other.call(
                SEND_REPLY, b"y", a="answers", b=REPLIES, c="TBW102", d=4, e=0, f=0, g=1, h=0,
                i="REPLY_TO_CLIENT\x01deaf\x02",
            )  # fmt: skip

            assert (1, 10) == (answer.code, round(loop.time() - began))
            assert "did not answer in time" in (answer.remark or "")
            assert [PUSH_REPLY] == [push.code for push in asker.pushed]

    simulate(main)


def test_the_blocking_client_asks_and_replies() -> None:
    """
    `request` and `reply` without asyncio, over TCP.
    """
    ready, done = asyncio.Event(), asyncio.Event()
    addresses: list[str] = []

    async def serve() -> None:
        async with Cluster() as cluster:
            await cluster.create_topic("T")
            addresses.append(cluster.namesrv)
            ready.set()
            await done.wait()

    def program(namesrv: str) -> bytes:
        with (
            sync.Producer(namesrv, group="asks") as producer,
            sync.Consumer(namesrv, group="workers", options=FIRST) as consumer,
        ):
            consumer.subscribe("T")

            def answer_one() -> None:
                (request,) = consumer.poll(1, timeout=20)
                producer.reply(request, request.body[::-1])
                request.ack()

            other = Thread(target=answer_one)
            other.start()
            reply = producer.request(Message("T", b"abc"), timeout=20)
            other.join()
            return reply.body

    async def main() -> bytes:
        async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
            tasks.create_task(serve())
            await ready.wait()
            try:
                return await asyncio.to_thread(program, addresses[0])
            finally:
                done.set()

    assert b"cba" == asyncio.run(main())
