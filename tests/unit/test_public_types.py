"""A user's program under `mypy --strict`: the public names mean to a type checker what they are."""

import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 100

PROGRAM = """
import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, assert_type

from psycopg import AsyncConnection

from gantrymq import (
    Admin, App, Consumer, ConsumerOptions, DeadLetters, Decision, Delivery, Finder, Found,
    GantryError, LitePullConsumer, Message, Once, Popped, PostgresStore, Producer, PullConsumer,
    Queue, RecallResult, Received, RedisStore, Reply, SendResult, SendResults, SimpleConsumer,
    SqliteStore, Transaction, Unfinished, ack_first, by_keys, reply_to,
)
from gantrymq import ConsumeStatus, Depends, sync
from gantrymq.app.app import CallNext
from gantrymq.testing import GantryCluster
from gantrymq.client import DeadLetterFilter, Letter
from gantrymq.client.once.sqlite_store import SqliteTransaction


@dataclass
class Order:
    id: int


app = App("localhost:9876", group="g", once=Once(SqliteStore("x.db"), key=by_keys))


@app.on("orders", tags="paid", retries=5)
async def paid(order: Order, message: Delivery) -> None:
    await app.producer.send(Message("done", str(order.id)))


@app.on("refunds")
def refunded(body: bytes) -> None:
    print(body)


@app.on("typed")
@app.publish("results")
async def typed(order: Order, prices: Annotated[dict[int, int], Depends(dict)]) -> Order:
    return order


@app.middleware
async def around(message: Delivery, call_next: CallNext) -> None:
    await call_next(message)


@app.on_start
async def begin() -> None:
    print("up")




def test_over_tcp(gantry: GantryCluster) -> None:
    assert_type(gantry.namesrv, str)
    gantry.clock.advance(3600)


async def listen(message: Delivery) -> ConsumeStatus:
    return ConsumeStatus.SUCCESS


Consumer(group="g", start="first", start_timeout=5).handler(listen)
ConsumerOptions(consume_from_where="FIRST")  # type: ignore[arg-type]
ConsumerOptions(message_model="clustering")  # type: ignore[arg-type]


async def produce() -> None:
    async with Producer("localhost:9876", group="p") as producer:
        result = await producer.send(Message("T", b"x", keys=["k"], delay=timedelta(seconds=5)))
        assert_type(result, SendResult)
        if result.recall_handle is not None:
            recalled = await producer.recall("T", result.recall_handle)
            assert_type(recalled, RecallResult)
            assert_type(recalled.msg_id, str)
        async with producer.transaction(Message("T", "x")) as tx:
            assert_type(tx, Transaction)
            tx.commit()

        @producer.check
        async def check(message: Unfinished) -> Decision:
            return Decision.COMMIT

        @producer.check
        def check_too(message: Unfinished) -> Decision:
            return Decision.ROLLBACK

        reply = await producer.request(Message("T", "x"), timeout=3)
        assert_type(reply, Reply)
        for each in await producer.send_many([Message("T", "x")]):
            if isinstance(each, GantryError):
                print(each)
            else:
                assert_type(each, SendResult)
        results = await producer.send_all([Message("T", "x")])
        assert_type(results, SendResults)
        assert_type(results[0], SendResult | GantryError)


async def consume() -> None:
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    async with (
        Consumer("localhost:9876", group="g", options=options) as consumer,
        Producer("localhost:9876", group="p") as producer,
    ):
        consumer.subscribe("T", sql="a > 3")

        @consumer.handler
        async def handle(message: Delivery) -> None:
            await producer.reply(message, b"answer")
            await producer.send(reply_to(message, "answer"))

        @consumer.handler(batch=10)
        async def many(messages: list[Delivery]) -> None:
            print(len(messages))

        async for message in consumer:
            assert_type(message, Delivery)
            await message.retry(reason="why")
        async for message in ack_first(consumer):
            assert_type(message.body, bytes)


async def once() -> None:
    consumer = Consumer(group="g", once=Once(SqliteStore("x"), transaction=True))

    assert_type(consumer, Consumer[SqliteTransaction])

    @consumer.handler
    async def handle(message: Delivery, transaction: SqliteTransaction) -> None:
        await transaction.execute("SELECT 1")

    @consumer.handler
    def listen_in(message: Delivery, transaction: object) -> ConsumeStatus:
        return ConsumeStatus.SUCCESS

    @consumer.handler(batch=10)
    async def many(messages: list[Delivery], transaction: SqliteTransaction) -> None:
        print(len(messages))

    postgres = Consumer(group="g", once=Once(PostgresStore("postgresql://x"), transaction=True))

    @postgres.handler
    async def bill(message: Delivery, transaction: AsyncConnection[Any]) -> None:
        await transaction.execute("SELECT 1")

    claims = Consumer(group="g", once=Once(RedisStore("redis://x"), key=by_keys))

    @claims.handler
    async def claimed(message: Delivery) -> None:
        print(message)

    async with consumer as same:
        await first_of(same)
    await first_of(Consumer(group="g"))


async def first_of(consumer: Consumer) -> None:
    print(consumer.group, Once(SqliteStore("x"), at_most_once=True).suppressed_count)


async def borrow() -> None:
    async with SimpleConsumer("localhost:9876", group="g", invisible=30) as simple:
        simple.subscribe("T")
        found = await simple.receive()
        assert_type(found, list[Popped])
        await simple.ack_many(found)
        async for one in simple:
            assert_type(one, Popped)
            await one.extend(30)


async def look() -> None:
    async with Admin("localhost:9876") as admin:
        found = await Finder(admin).by_key("T", "k")
        assert_type(found, Found)
        assert_type(found.messages, list[Received])
    async with DeadLetters("localhost:9876", group="g") as letters:
        async for letter in letters.all(DeadLetterFilter(topic="T")):
            assert_type(letter, Letter)
            await letters.resend(letter)
    async with PullConsumer("localhost:9876", group="g") as puller:
        queue = (await puller.queues("T"))[0]
        assert_type(queue, Queue)
        assert_type((await puller.pull(queue, 0)).messages, list[Received])
    async with LitePullConsumer("localhost:9876", group="g") as lite:
        assert_type(await lite.poll(), list[Received])


def block() -> None:
    with sync.Producer("localhost:9876", group="p") as producer:
        assert_type(producer.send(Message("T", "x"), timeout=3), SendResult)
        assert_type(producer.request(Message("T", "x")), Reply)
        with producer.transaction(Message("T", "x")) as tx:
            tx.rollback()

        @producer.check
        def check(message: Unfinished) -> Decision:
            return Decision.UNKNOWN

    with sync.Consumer("localhost:9876", group="g") as consumer:
        for message in consumer:
            assert_type(message, sync.Delivery)
            message.ack()
        assert_type(consumer.assignment, list[Queue])

        @consumer.handler(batch=10)
        def many(messages: list[sync.Delivery]) -> None:
            print(len(messages))

    with sync.SimpleConsumer("localhost:9876", group="g") as simple:
        assert_type(simple.receive(), list[sync.Popped])
    with sync.PullConsumer("localhost:9876", group="g") as puller:
        assert_type(puller.queues("T"), list[Queue])
    assert_type(sync.Admin("localhost:9876", portal=sync.Portal()), sync.Admin)
    sync.Consumer(group="g", once=Once(SqliteStore("x")), close_grace=1.5, options=None)
    sync.SimpleConsumer(group="g", invisible=timedelta(seconds=5))


blocking = sync.App("localhost:9876", group="g", start="first")


def died(message: sync.Delivery, error: Exception) -> None:
    print(message, error)


@blocking.on("orders", tags="paid", dead=died)
@blocking.publish("results")
def paid_too(order: Order, message: sync.Delivery) -> Order:
    return order


@blocking.middleware
def around_too(message: sync.Delivery, call_next: Callable[[sync.Delivery], None]) -> None:
    call_next(message)


@blocking.on_start
def begin_too() -> None:
    assert_type(blocking.producer.send(Message("T", "x")), SendResult)
    assert_type(paid_too(Order(1), next(iter(()))), Order)


if __name__ == "__main__":
    asyncio.run(produce())
"""

MISTAKES = """
import asyncio
from gantrymq import Consumer, Message, Producer, sync

async def main() -> None:
    async with Producer(group=1) as producer:
        text: str = await producer.send(Message("T", "x"))
    async for message in Consumer(group="g"):
        message.ack(1)

sync.Producer(group="p").send("x")
blocking = sync.App(group="g")

@blocking.on_start
async def begin() -> None: ...

blocking.on("orders", retries="5")
sync.Producer(group=1)
sync.Consumer(group="g", order=True)
sync.LitePullConsumer("localhost:9876")
sync.Admin(portal="x")
"""


OTHER_STORE = """
from typing import Any
from psycopg import AsyncConnection
from gantrymq import Consumer, Delivery, Once, RedisStore, SqliteStore

consumer = Consumer(group="g", once=Once(SqliteStore("x"), transaction=True))
claims = Consumer(group="g", once=Once(SqliteStore("x")))

@consumer.handler
async def bill(message: Delivery, transaction: AsyncConnection[Any]) -> None: ...

@consumer.handler(batch=10)
async def many(messages: list[Delivery], transaction: AsyncConnection[Any]) -> None: ...

@claims.handler
async def claimed(message: Delivery, transaction: AsyncConnection[Any]) -> None: ...

Once(RedisStore("redis://x"), transaction=True)
"""


def mypy(folder: Path, program: str) -> tuple[int, str]:
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary",
         "--cache-dir", folder / "cache", path.name],
        cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def wrong_lines(folder: Path, program: str) -> list[int]:
    _, said = mypy(folder, program)
    return sorted({int(line.split(":")[1]) for line in said.splitlines() if "error:" in line})


def test_a_program_with_types_is_checked_against_ours(tmp_path: Path) -> None:
    """
    Right uses pass, and what is wrong is told, in the blocking client as well.
    """
    assert (0, "") == mypy(tmp_path, PROGRAM)
    assert [6, 7, 9, 11, 14, 17, 18, 19, 20, 21] == wrong_lines(tmp_path, MISTAKES)


def test_a_handler_written_for_another_store_is_told_by_its_type(tmp_path: Path) -> None:
    """
    The second parameter of a handler is a transaction of the store that its consumer's `once` has.
    """
    assert [9, 12, 15, 18] == wrong_lines(tmp_path, OTHER_STORE)
