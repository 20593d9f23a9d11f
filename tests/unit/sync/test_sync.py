"""The blocking client, over real sockets, with a cluster on a thread of its own."""

import inspect
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

import gantrymq.sync
from gantrymq import Message, SendResult
from gantrymq.base.errors import GantryError
from gantrymq.client.core.consumer_errors import AlreadyFinished
from gantrymq.client.core.errors import ForkedError, NotStarted
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.sync import (
    Admin,
    Consumer,
    Delivery,
    LitePullConsumer,
    Portal,
    Producer,
    PullConsumer,
)
from gantrymq.testing.plugin import GantryCluster

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
SECONDS_MAX = 20.0


def in_child(work: Callable[[], int]) -> int:
    """Run a function in a forked child; its exit code, 1 after an exception."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_messages_go_and_come_without_a_word_of_async(gantry: GantryCluster) -> None:
    """
    Admin, producer and consumer of `gantrymq.sync` send and receive without asyncio.
    """
    with Admin(gantry.namesrv) as admin:
        admin.create_topic("T", queues=2)
        assert "T" in admin.topics()
    with (
        Producer(gantry.namesrv, group="p") as producer,
        Consumer(gantry.namesrv, group="c", options=FIRST) as consumer,
    ):
        consumer.subscribe("T", tags="a")
        results = producer.send_many(Message("T", str(n), tags="a") for n in range(300))
        producer.send_batch([Message("T", "b", tags="b")] * 2)
        producer.send_all(Message("T", "b", tags="b") for _ in range(300)).raise_failures()
        producer.send_oneway(Message("T", "300", tags="a"))
        assert {r.status for r in results if isinstance(r, SendResult)} == {"SEND_OK"}
        assert len(producer.queues("T")) == 2

        bodies: set[int] = set()
        while len(bodies) < 301:
            messages = consumer.poll(100, timeout=SECONDS_MAX)
            assert messages, "no message in time"
            bodies |= {int(message.body) for message in messages}
            consumer.finish_many(messages)
        assert bodies == set(range(301))
        with pytest.raises(AlreadyFinished):
            messages[0].ack()
        assert consumer.poll(1, timeout=0.05) == []


def test_iteration_ends_when_another_thread_closes(gantry: GantryCluster) -> None:
    """
    A `for` loop over a consumer ends when another thread closes it.
    """
    gantry.create_topic("T", queues=1)
    with Producer(gantry.namesrv, group="p") as producer:
        for number in range(3):
            producer.send(Message("T", str(number)))
    consumer = Consumer(gantry.namesrv, group="c", options=FIRST)
    consumer.start()
    consumer.subscribe("T")
    seen = []
    for message in consumer:
        seen.append(message.body)
        message.ack()
        if len(seen) == 3:
            threading.Thread(target=consumer.close).start()
    assert seen == [b"0", b"1", b"2"]


def test_a_handler_runs_on_the_callers_thread_until_close(gantry: GantryCluster) -> None:
    """
    `run` calls the handler and returns when another thread has closed the consumer.
    """
    gantry.create_topic("T", queues=1)
    with Producer(gantry.namesrv, group="p") as producer:
        producer.send_many([Message("T", "1"), Message("T", "2")])
    consumer = Consumer(gantry.namesrv, group="c", options=FIRST)
    seen: list[bytes] = []

    @consumer.handler
    def handle(message: Delivery) -> None:
        seen.append(message.body)
        if len(seen) == 2:
            threading.Thread(target=consumer.close).start()

    with consumer:
        consumer.subscribe("T")
        consumer.run(threads=2)
    assert sorted(seen) == [b"1", b"2"]


def test_a_child_opens_its_own_client_and_the_parents_goes_on(gantry: GantryCluster) -> None:
    """
    A forked child cannot finish its parent's deliveries, and its own sends open a new client.
    """
    gantry.create_topic("T", queues=1)
    with (
        Producer(gantry.namesrv, group="p") as producer,
        Consumer(gantry.namesrv, group="c", options=FIRST) as consumer,
    ):
        consumer.subscribe("T")
        producer.send(Message("T", "parent"))
        (first,) = consumer.poll(1, timeout=SECONDS_MAX)

        def child() -> int:
            with pytest.raises(ForkedError):
                first.ack()
            assert producer.send(Message("T", "child")).status == "SEND_OK"
            producer.close()
            return 0

        assert in_child(child) == 0
        first.ack()
        (second,) = consumer.poll(1, timeout=SECONDS_MAX)
        assert second.body == b"child"
        assert producer.send(Message("T", "parent again")).status == "SEND_OK"


def test_a_child_does_not_keep_the_parents_connections_open() -> None:
    """
    A forked child does not keep the parent's connections open.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    reading, writing = os.pipe()
    admin = Admin(address)
    admin.start()
    admin._run(lambda target: target.instance.connections.get(address))
    peer, _ = listener.accept()
    child = os.fork()
    if child == 0:
        os.close(writing)
        peer.close()
        os.read(reading, 1)  # lives until the parent has seen the end of its connection
        os._exit(0)
    try:
        admin.close()
        peer.settimeout(SECONDS_MAX)
        assert peer.recv(1) == b""
    finally:
        os.close(writing)
        os.waitpid(child, 0)
        os.close(reading)
        peer.close()
        listener.close()


def test_a_client_that_is_not_started_says_so() -> None:
    """
    A client that is not started raises NotStarted.
    """
    with pytest.raises(NotStarted):
        Producer("127.0.0.1:1", group="p").send(Message("T", "x"))


def test_a_portal_of_ones_own_can_be_closed(gantry: GantryCluster) -> None:
    """
    A client can be given a portal, which its owner closes.
    """
    portal = Portal()
    with Admin(gantry.namesrv, portal=portal) as admin:
        assert admin.topics()
    portal.close()


def test_a_blocking_call_on_the_clients_own_thread_is_refused() -> None:
    """
    A blocking call from the portal's own event loop raises an error instead of waiting for
    ever.
    """
    portal = Portal()

    async def inner() -> None:
        pass

    async def outer() -> None:
        portal.run(inner())

    with pytest.raises(GantryError, match="own event loop"):
        portal.run(outer())
    portal.close()


def test_finishing_needs_one_of_the_three_verbs() -> None:
    """
    `finish_many` accepts ack, retry and dead only.
    """
    with pytest.raises(ValueError, match="ack, retry or dead"):
        Consumer("127.0.0.1:1", group="c").finish_many([], "forget")


def test_importing_the_package_loads_nothing_heavy() -> None:
    """
    Importing `gantrymq` and `gantrymq.sync` imports no heavy library.
    """
    script = (
        "import sys, gantrymq\n"
        "assert 'msgspec' not in sys.modules\n"
        "gantrymq.Producer, gantrymq.Consumer, gantrymq.Admin, gantrymq.Message\n"
        "import gantrymq.sync\n"
        "heavy = {'numpy', 'uvloop', 'rich', 'click', 'lz4', 'zstandard'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.stderr.decode() == ""
    assert done.returncode == 0


def send_to_one_queue(gantry: GantryCluster, count: int) -> None:
    gantry.create_topic("T", queues=1)
    with Producer(gantry.namesrv, group="p") as producer:
        for number in range(count):
            producer.send(Message("T", str(number)))


def test_an_ordered_consumer_keeps_the_order_on_any_number_of_threads(
    gantry: GantryCluster,
) -> None:
    """
    An ordered consumer keeps the order of a queue on several threads.
    """
    send_to_one_queue(gantry, 12)
    consumer = Consumer(gantry.namesrv, group="c", options=FIRST, ordered=True)
    seen: list[int] = []

    @consumer.handler
    def handle(message: Delivery) -> None:
        number = int(message.body)
        time.sleep(0 if number % 4 else 0.02)  # who comes first is the last to be ready
        seen.append(number)
        if len(seen) == 12:
            threading.Thread(target=consumer.close).start()

    with consumer:
        consumer.subscribe("T")
        consumer.run(threads=4)
    assert seen == list(range(12))


def test_nothing_overtakes_a_message_that_an_ordered_loop_tries_again(
    gantry: GantryCluster,
) -> None:
    """
    A retried message of an ordered loop is delivered before the next one.
    """
    send_to_one_queue(gantry, 3)
    seen = []
    with Consumer(gantry.namesrv, group="c", options=FIRST, ordered=True) as consumer:
        consumer.subscribe("T")
        for message in consumer:
            seen.append(message.body)
            if len(seen) == 1:
                message.retry()
            else:
                message.ack()
            if len(seen) == 4:
                break
    assert seen == [b"0", b"0", b"1", b"2"]


def test_a_loop_that_is_left_leaves_the_rest_to_whoever_comes_next(gantry: GantryCluster) -> None:
    """
    After `break` the messages that were not delivered are delivered by the next loop or poll.
    """
    send_to_one_queue(gantry, 5)
    seen = []
    with Consumer(gantry.namesrv, group="c", options=FIRST) as consumer:
        consumer.subscribe("T")
        consumer.wait_assigned()
        time.sleep(0.2)
        for _ in range(3):
            for message in consumer:
                seen.append(message.body)
                message.ack()
                break
        while len(seen) < 5:
            found = consumer.poll(timeout=SECONDS_MAX)
            assert found, "no message in time"
            seen += [message.body for message in found]
            consumer.finish_many(found)
        assert message.finished == "ack"
    assert sorted(seen) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_consumer_rests_and_tells_what_it_holds(gantry: GantryCluster) -> None:
    """
    `pause`, `resume`, `assignment` and `wait_assigned` work without asyncio.
    """
    send_to_one_queue(gantry, 1)
    with Consumer(gantry.namesrv, group="c", options=FIRST) as consumer:
        consumer.pause(60)
        consumer.subscribe("T")
        assert consumer.wait_assigned() == consumer.assignment
        assert consumer.poll(timeout=0.3) == []
        consumer.resume()
        (message,) = consumer.poll(timeout=SECONDS_MAX)
        assert message.finished is None
        message.ack()


def test_whoever_pulls_can_do_it_without_async(gantry: GantryCluster) -> None:
    """
    PullConsumer and LitePullConsumer work without asyncio.
    """
    send_to_one_queue(gantry, 3)
    with PullConsumer(gantry.namesrv, group="pull") as consumer:
        (queue,) = consumer.queues("T")
        found = consumer.pull(queue, consumer.min_offset(queue))
        assert [m.body for m in found.messages] == [b"0", b"1", b"2"]
        consumer.commit(queue, found.next_offset)
        assert consumer.committed(queue) == 3
    with LitePullConsumer(gantry.namesrv, group="lite") as lite:
        lite.assign([queue])
        lite.wait_assigned()
        lite.seek(queue, 1)
        bodies: list[bytes] = []
        while len(bodies) < 2:
            bodies += [message.body for message in lite.poll(SECONDS_MAX)]
        assert bodies == [b"1", b"2"]
        lite.commit()
        assert (lite.position(queue), lite.assignment) == (3, [queue])
        lite.seek_to_begin(queue)
        lite.pause([queue])
        assert lite.poll(0.1) == []
        lite.resume([queue])
        assert lite.poll(SECONDS_MAX)[0].body == b"0"


def test_progress_is_moved_without_async(gantry: GantryCluster) -> None:
    """
    `preview_reset` and `reset` work without asyncio.
    """
    send_to_one_queue(gantry, 2)
    with (
        Consumer(gantry.namesrv, group="c", options=FIRST) as consumer,
        Admin(gantry.namesrv) as admin,
    ):
        consumer.subscribe("T")
        consumer.finish_many(consumer.poll(timeout=SECONDS_MAX))
        consumer.commit()
        (before,) = admin.preview_reset("c", "T", "first")
        assert (before.new, bool(before.again)) == (0, True)
        assert len(admin.reset("c", "T", "first")) == 1


@pytest.mark.parametrize(
    "name", sorted({*gantrymq.sync.__all__} - {"Delivery", "Finder", "Popped", "Portal"})
)
def test_a_constructor_shows_the_arguments_of_the_asynchronous_one(name: str) -> None:
    """
    What `help` and editors show is what the class takes: the same arguments, and a portal.
    """
    shown = dict(inspect.signature(getattr(gantrymq.sync, name)).parameters)

    assert shown.pop("portal").default is None
    assert list(inspect.signature(getattr(gantrymq, name)).parameters) == list(shown)
