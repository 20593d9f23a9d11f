"""Blocking handlers on threads, and the rest of the client without `async`."""

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gantrymq import ConsumeStatus, Message, Once, SqliteStore
from gantrymq.client.admin.letters.dead_letters import DeadLetterFilter
from gantrymq.client.core.options import ProducerOptions
from gantrymq.sync import Admin, Consumer, DeadLetters, Delivery, Finder, Producer
from gantrymq.testing.plugin import GantryCluster

SECONDS_MAX = 20.0


def send(gantry: GantryCluster, count: int, queues: int = 1) -> None:
    gantry.create_topic("T", queues=queues)
    with Producer(gantry.namesrv, group="p") as producer:
        producer.send_many(Message("T", str(n), keys=f"k{n}") for n in range(count))


def running(consumer: Consumer, **how: Any) -> threading.Thread:
    thread = threading.Thread(target=consumer.run, kwargs=how, daemon=True)
    thread.start()
    return thread


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)


def test_a_slow_handler_holds_nobody_up(gantry: GantryCluster) -> None:
    """
    A handler that blocks its thread does not hold up messages on other threads.
    """
    send(gantry, 10)
    consumer = Consumer(gantry.namesrv, group="c", start="first")
    seen: list[bytes] = []
    rest_is_done = threading.Event()

    @consumer.handler
    def handle(message: Delivery) -> None:
        if message.body == b"0":
            assert rest_is_done.wait(SECONDS_MAX)
        seen.append(message.body)

    with consumer:
        consumer.subscribe("T")
        thread = running(consumer, threads=2)
        until(lambda: len(seen) == 9)
        rest_is_done.set()
        until(lambda: len(seen) == 10)
    thread.join(SECONDS_MAX)
    assert b"0" == seen[-1]


def test_twenty_run_at_once_unless_told_otherwise(gantry: GantryCluster) -> None:
    """
    By default twenty handlers run at the same time.
    """
    send(gantry, 20)
    consumer = Consumer(gantry.namesrv, group="c", start="first")
    together = threading.Barrier(20)
    passed: list[int] = []

    @consumer.handler
    def handle(message: Delivery) -> None:
        passed.append(together.wait(SECONDS_MAX))

    with consumer:
        consumer.subscribe("T")
        running(consumer)
        until(lambda: len(passed) == 20)


def test_a_handler_may_close_its_consumer(gantry: GantryCluster) -> None:
    """
    A handler may close its consumer without waiting for itself.
    """
    send(gantry, 1)
    consumer = Consumer(gantry.namesrv, group="c", start="first", close_grace=SECONDS_MAX)

    @consumer.handler
    def handle(message: Delivery) -> None:
        message.ack()
        consumer.close()

    began = time.monotonic()
    consumer.start()
    consumer.subscribe("T")
    consumer.run()
    assert time.monotonic() - began < SECONDS_MAX / 2


def test_a_failure_is_kept_and_a_status_counts(gantry: GantryCluster) -> None:
    """
    An exception of a handler is stored in its dead letter; a returned status is obeyed.
    """
    send(gantry, 3)
    consumer = Consumer(gantry.namesrv, group="c", start="first", max_retries=0)
    seen: list[bytes] = []

    @consumer.handler
    def handle(message: Delivery) -> ConsumeStatus:
        seen.append(message.body)
        if message.body == b"0":
            raise ValueError("no such customer")
        return ConsumeStatus.DEAD if message.body == b"1" else ConsumeStatus.SUCCESS

    with consumer:
        consumer.subscribe("T")
        running(consumer)
        until(lambda: len(seen) == 3)
    with DeadLetters(gantry.namesrv, group="c") as letters:
        until(lambda: len(list(letters.all())) == 2)
        causes = {cause.error: cause.count for cause in letters.statistics()}
        assert {"ValueError": 1, "": 1} == causes
        print_of = next(c.fingerprint for c in letters.statistics() if c.error)
        (letter,) = letters.page(DeadLetterFilter(fingerprint=print_of)).letters
        assert b"0" == letter.message.body
        assert letters.resend(letter) is not None
        assert letters.resend(letter) is None
        assert 1 == letters.resend_all(rate=1000).resent


def test_a_handler_gets_lists_on_request(gantry: GantryCluster) -> None:
    """
    No list is longer than was asked for, and all messages of one that fails are tried again.
    """
    send(gantry, 25)
    consumer = Consumer(gantry.namesrv, group="c", start="first")
    seen: list[list[bytes]] = []
    failed: list[bytes] = []

    @consumer.handler(batch=10)
    def handle(messages: list[Delivery]) -> None:
        bodies = [message.body for message in messages]
        if not failed:
            failed.extend(bodies)
            raise RuntimeError("not yet")
        seen.append(bodies)

    with consumer:
        consumer.subscribe("T")
        thread = running(consumer, threads=1)
        until(lambda: sum(map(len, seen)) == 25 - len(failed))
        gantry.clock.advance(60)
        until(lambda: sum(map(len, seen)) == 25)
    thread.join(SECONDS_MAX)
    assert {str(n).encode() for n in range(25)} == {body for bodies in seen for body in bodies}
    assert 1 < max(map(len, [failed, *seen])) <= 10


def test_a_handler_of_lists_shares_one_transaction(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    A handler of lists gets one transaction for all messages of its list.
    """
    send(gantry, 6)
    send(gantry, 6)
    path = tmp_path / "once.db"
    once = Once(SqliteStore(str(path)), transaction=True)
    consumer = Consumer(gantry.namesrv, group="c", start="first", once=once)
    seen: list[str] = []

    @consumer.handler(batch=4)
    def handle(messages: list[Delivery], transaction: Any) -> None:
        transaction.execute("CREATE TABLE IF NOT EXISTS work (key TEXT)")
        for message in messages:
            transaction.execute("INSERT INTO work VALUES (?)", (message.keys[0],))
            seen.append(message.keys[0])

    with consumer:
        consumer.subscribe("T")
        thread = running(consumer)
        until(lambda: once.suppressed_count == 6)
    thread.join(SECONDS_MAX)
    keys = sorted(f"k{n}" for n in range(6))
    with sqlite3.connect(path) as db:
        assert keys == sorted(key for (key,) in db.execute("SELECT key FROM work"))
    assert keys == sorted(seen)


def test_work_is_done_once(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    With `once` a message with a known key is not handled again, with or without a transaction.
    """
    send(gantry, 5)
    send_again = [Message("T", "again", keys="k3")]
    for transaction in (False, True):
        store = SqliteStore(str(tmp_path / f"{transaction}.db"))
        once = Once(store, transaction=transaction)
        consumer = Consumer(gantry.namesrv, group=f"c{transaction}", start="first", once=once)
        seen: list[bytes] = []

        def plain(message: Delivery, seen: list[bytes] = seen) -> None:
            seen.append(message.body)

        def inside(message: Delivery, tx: Any, seen: list[bytes] = seen) -> None:
            tx.execute("create table if not exists bills (body text)")
            tx.execute("insert into bills values (?)", (message.body,))
            assert tx.execute("select count(*) from bills")[0][0] == len(seen) + 1
            seen.append(message.body)

        consumer.handler(inside if transaction else plain)
        with consumer:
            consumer.subscribe("T")
            running(consumer, threads=1 if transaction else 4)
            until(lambda seen=seen: len(seen) == 5)  # type: ignore[misc]
            with Producer(gantry.namesrv, group="p") as producer:
                producer.send_many(send_again)
            until(lambda once=once: once.suppressed_count >= 1)  # type: ignore[misc]
        assert 5 == len(seen)


def test_sends_are_begun_without_waiting(gantry: GantryCluster) -> None:
    """
    `submit` returns a future for each message, and all are found afterwards.
    """
    gantry.create_topic("T", queues=2)
    options = ProducerOptions(window_messages=8)
    with Producer(gantry.namesrv, group="p", options=options) as producer:
        called: list[str] = []
        futures = [producer.submit(Message("T", str(n), keys=f"key-{n % 2}")) for n in range(200)]
        futures[0].add_done_callback(lambda future: called.append(future.result().status))
        results = [future.result(SECONDS_MAX) for future in futures]
        assert {"SEND_OK"} == {result.status for result in results}
        until(lambda: called == ["SEND_OK"])
    with Admin(gantry.namesrv) as admin:
        finder = Finder(admin)
        until(lambda: len(finder.by_key("T", "key-1").messages) == 100)
        assert b"7" == finder.by_id(results[7].offset_msg_id).messages[0].body
        assert b"7" == finder.at(results[7].queue, results[7].offset).messages[0].body
        assert 200 == len(finder.by_time("T", 0, 2**62).messages)
