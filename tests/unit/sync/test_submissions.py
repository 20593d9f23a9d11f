"""Messages that threads submit, over real sockets."""

import concurrent.futures
import threading

import pytest

from gantrymq import GantryError, Message, ProducerOptions, SendResult
from gantrymq.client.core.errors import Closed, MessageRefused
from gantrymq.sync import Portal, Producer, PullConsumer
from gantrymq.testing.plugin import GantryCluster

SECONDS_MAX = 20.0
SMALL = ProducerOptions(window_messages=20, window_bytes=100)


def test_messages_of_each_thread_are_stored_in_their_order(gantry: GantryCluster) -> None:
    """
    With a window that is always full, what a thread submits is stored in its order.
    """
    gantry.create_topic("T", queues=1)
    found: list[bytes] = []
    with Producer(gantry.namesrv, group="p", options=SMALL) as producer:

        def submit(name: str) -> list[SendResult]:
            futures = [producer.submit(Message("T", f"{name}{n:030}")) for n in range(100)]
            return [future.result(SECONDS_MAX) for future in futures]

        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            results = list(threads.map(submit, "abc"))
        (queue,) = producer.queues("T")
    assert len({result.offset for each in results for result in each}) == 300
    with PullConsumer(gantry.namesrv, group="r") as consumer:
        while pulled := consumer.pull(queue, len(found)).messages:
            found += [message.body for message in pulled]
    assert len(found) == 300
    for name in b"abc":
        bodies = [body for body in found if body[0] == name]
        assert bodies == sorted(bodies)


def test_what_is_refused_fails_its_future_alone(gantry: GantryCluster) -> None:
    """
    A message that is refused fails its own future, and those around it are sent.
    """
    options = ProducerOptions(max_message_bytes=100)
    with Producer(gantry.namesrv, group="p", options=options) as producer:
        bodies = ["x", "x" * 200, "x", "x" * 200]
        futures = [producer.submit(Message("T", body)) for body in bodies]
        for body, future in zip(bodies, futures, strict=True):
            if len(body) > 100:
                with pytest.raises(MessageRefused):
                    future.result(SECONDS_MAX)
            else:
                assert future.result(SECONDS_MAX).status == "SEND_OK"
    with pytest.raises(Closed):
        producer.submit(Message("T", "x")).result(SECONDS_MAX)


def test_a_message_that_was_cancelled_in_time_is_not_sent(gantry: GantryCluster) -> None:
    """
    What is cancelled before it has crossed is not sent; what was sent keeps its cancelled future.
    """
    portal, gate = Portal(), threading.Event()
    with Producer(gantry.namesrv, group="p", portal=portal) as producer:
        assert producer.send(Message("T", "first")).offset >= 0
        portal.post(gate.wait)
        futures = [producer.submit(Message("T", str(n))) for n in range(4)]
        assert futures[1].cancel()
        gate.set()
        done, _ = concurrent.futures.wait(futures, SECONDS_MAX)
        assert len(done) == 4
        assert [future.cancelled() for future in futures] == [False, True, False, False]
        assert [each.result().status for each in futures if not each.cancelled()] == ["SEND_OK"] * 3
        late = producer.submit(Message("T", "late"))
        late.cancel()
        assert producer.send(Message("T", "last")).status == "SEND_OK"
    portal.close()


def test_before_the_start_a_submission_fails(gantry: GantryCluster) -> None:
    """
    A producer that is not started says so through the future.
    """
    producer = Producer(gantry.namesrv, group="p")
    with pytest.raises(GantryError, match="not started"):
        producer.submit(Message("T", "x")).result(SECONDS_MAX)
