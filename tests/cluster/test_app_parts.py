"""What an app puts around and behind its handlers: middleware, dependencies, published results."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import fastapi
import msgspec
import pytest

from gantrymq import (
    App,
    ConsumeStatus,
    Delivery,
    Depends,
    GantryError,
    HandlerRefused,
    Message,
    Once,
    Producer,
    SqliteStore,
    SqliteTransaction,
    sync,
)
from gantrymq.base.offload import InlineOffload
from gantrymq.model import dead_topic
from gantrymq.testing import Cluster, GantryCluster

Simulate = Callable[..., None]
SECONDS_MAX = 20.0


class Order(msgspec.Struct):
    number: int


class Bill(msgspec.Struct):
    number: int
    cents: int


def make_app(**options: Any) -> App:
    return App("nowhere:1", group="billing", start="first", **options)


async def send(cluster: Cluster, number: int) -> None:
    async with cluster.producer("sender") as producer:
        await producer.send(Message("orders", f'{{"number": {number}}}', keys=f"order-{number}"))


async def read(cluster: Cluster, topic: str) -> Delivery:
    async with cluster.consumer("reader", start="first") as reader:
        reader.subscribe(topic)
        async with asyncio.timeout(600):
            message = await anext(reader)
        await message.ack()
        return message


def test_middleware_stands_around_every_handler(gantry_sim: Simulate) -> None:
    """
    The first one is outermost; it sees what the handler raises, and its own exceptions count.
    """
    app, seen = make_app(), []

    @app.middleware
    async def outer(message: Delivery, call_next: Callable[[Delivery], Any]) -> None:
        seen.append(f"outer {message.keys[0]}")
        try:
            await call_next(message)
        except KeyError as error:
            seen.append(f"saw {error}")
            raise
        seen.append("outer ends")

    @app.middleware
    async def inner(message: Delivery, call_next: Callable[[Delivery], Any]) -> None:
        seen.append("inner")
        await call_next(message)

    @app.on("orders", retries=1)
    async def paid(order: Order, message: Delivery) -> None:
        seen.append(f"paid {message.reconsume_times}")
        if not message.reconsume_times:
            raise KeyError("customer")

    async def story(cluster: Cluster) -> None:
        await send(cluster, 1)
        async with app.test(cluster):
            await asyncio.sleep(30)

    gantry_sim(story)
    first = ["outer order-1", "inner", "paid 0", "saw 'customer'"]
    assert [*first, "outer order-1", "inner", "paid 1", "outer ends"] == seen


def test_parameters_are_given_what_they_depend_on(gantry_sim: Simulate) -> None:
    """
    As a default or in Annotated; each function once a message; one that yields ends afterwards.
    """
    app, seen = make_app(), []

    def settings() -> dict[str, int]:
        seen.append("settings")
        return {"price": 250}

    async def connect(settings: Annotated[dict[str, int], Depends(settings)]) -> AsyncIterator[str]:
        seen.append(f"connect {settings['price']}")
        try:
            yield "db"
        except ValueError as error:
            seen.append(f"roll back: {error}")
            raise
        seen.append("commit")

    def who(message: Delivery) -> Iterator[str]:
        yield f"key {message.keys[0]}"
        seen.append("forgotten")

    @app.on("orders", retries=1)
    async def paid(
        order: Order,
        db: Annotated[str, Depends(connect)],
        message: Delivery,
        producer: Producer,
        name: str = Depends(who),
        *,
        options: Annotated[dict[str, int], Depends(settings)],
    ) -> None:
        seen.append(f"{order.number} {db} {name} {options['price']} {producer.group}")
        if not message.reconsume_times:
            raise ValueError("no money")

    async def story(cluster: Cluster) -> None:
        await send(cluster, 7)
        async with app.test(cluster):
            await asyncio.sleep(30)

    gantry_sim(story)
    handled = ["settings", "connect 250", "7 db key order-7 250 billing"]
    # The first failure: dependencies end in turn, the last one first.
    assert [*handled, "roll back: no money", *handled, "forgotten", "commit"] == seen


def test_a_result_is_published_where_the_handler_says(gantry_sim: Simulate) -> None:
    """
    In either order of decorators, as JSON, with the keys of its cause; None publishes nothing.
    """
    app = make_app()

    @app.on("orders")
    @app.publish("bills", tags="new")
    async def bill(order: Order) -> Bill | None:
        return Bill(order.number, 250) if order.number else None

    @app.publish("texts")
    @app.on("bills")
    def text(bill: Bill) -> str:
        return f"{bill.cents} cents"

    async def story(cluster: Cluster) -> None:
        await send(cluster, 0)
        await send(cluster, 7)
        async with app.test(cluster):
            sent = await read(cluster, "bills")
            assert (b'{"number":7,"cents":250}', "new", ["order-7"]) == (
                sent.body, sent.tags, list(sent.keys),
            )  # fmt: skip
            assert b"250 cents" == (await read(cluster, "texts")).body

    gantry_sim(story)


def test_a_result_without_a_place_is_a_mistake_and_a_status_is_none(gantry_sim: Simulate) -> None:
    """
    A handler whose result no publish names fails its message; a returned ConsumeStatus is no
    result.
    """
    app = make_app()

    @app.on("orders", retries=0)
    async def paid(order: Order) -> Any:
        return ConsumeStatus.DEAD if order.number else "a result"

    async def story(cluster: Cluster) -> None:
        await send(cluster, 0)
        await send(cluster, 1)
        reasons = set()
        async with app.test(cluster):
            await asyncio.sleep(10)
        async with cluster.consumer("reader", start="first") as reader:
            reader.subscribe(dead_topic("billing"))
            for _ in range(2):
                letter = await anext(reader)
                said = letter.properties
                reasons.add(said.get("GANTRY_ERROR_TEXT") or said["GANTRY_REASON"])
        (mistake,) = reasons - {"the handler returned DEAD"}
        assert '@app.publish("topic")' in mistake

    gantry_sim(story)


def test_a_transaction_is_known_by_its_type(gantry_sim: Simulate, tmp_path: Path) -> None:
    """
    Wherever it stands, and in dependencies too.
    """
    path = tmp_path / "once.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE paid (number int)")
    once = Once(SqliteStore(str(path), offload=InlineOffload()), transaction=True)
    app = make_app(once=once)

    def table(transaction: SqliteTransaction) -> SqliteTransaction:
        return transaction

    @app.on("orders")
    async def paid(
        order: Order, tx: SqliteTransaction, same: Annotated[SqliteTransaction, Depends(table)]
    ) -> None:
        assert tx is same
        await tx.execute("INSERT INTO paid VALUES (?)", (order.number,))

    async def story(cluster: Cluster) -> None:
        await send(cluster, 7)
        await send(cluster, 7)
        async with app.test(cluster):
            while not once.suppressed_count:
                await asyncio.sleep(0.1)

    gantry_sim(story)
    with sqlite3.connect(path) as db:
        assert [(7,)] == db.execute("SELECT number FROM paid").fetchall()


def test_what_cannot_work_is_refused_where_it_is_declared() -> None:
    """
    A handler, dependency or middleware with wrong parameters is refused at its decorator.
    """
    app = make_app()

    def needs_more(number: int) -> None: ...
    async def swapped(message: Delivery, order: Order) -> None: ...
    async def bad(order: Order, db: Annotated[str, Depends(needs_more)]) -> None: ...
    async def tx(order: Order, tx: SqliteTransaction) -> None: ...
    def waits_not(message: Delivery, call_next: Any) -> None: ...
    async def alone(message: Delivery) -> None: ...

    for function, words in [
        (swapped, "parameter order would be given the message"),
        (bad, "needs_more must take a message"),
        (tx, "parameter tx would be given the message"),
    ]:
        with pytest.raises(HandlerRefused, match=words):
            app.on("orders")(function)
    with pytest.raises(HandlerRefused, match="must be `async`"):
        app.middleware(waits_not)  # type: ignore[type-var]
    with pytest.raises(HandlerRefused, match="call_next"):
        app.middleware(alone)  # type: ignore[type-var]
    with pytest.raises(HandlerRefused, match="Depends takes a function"):
        Depends("connect")  # type: ignore[arg-type]
    with pytest.raises(GantryError, match="illegal characters"):
        app.publish("a b")


def test_an_app_lives_inside_a_fastapi_program(gantry: GantryCluster) -> None:
    """
    The recipe of the guide: the app starts and stops with the API, and both share a producer.
    """
    gantry.create_topic("orders")
    app = App(gantry.namesrv, group="billing", start="first")
    paid: list[int] = []

    @app.on("orders")
    async def pay(order: Order) -> None:
        paid.append(order.number)

    @asynccontextmanager
    async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
        async with app:
            yield

    api = fastapi.FastAPI(lifespan=lifespan)

    @api.post("/orders/{number}")
    async def order(number: int) -> str:
        sent = await app.producer.send(Message("orders", f'{{"number": {number}}}'))
        return sent.status

    async def main() -> None:
        async with api.router.lifespan_context(api):
            assert '"SEND_OK"' == await posted(api, "/orders/7")
            async with asyncio.timeout(SECONDS_MAX):
                while not paid:
                    await asyncio.sleep(0.01)
        with pytest.raises(GantryError):
            await app.producer.send(Message("orders", "x"))

    asyncio.run(main())
    assert [7] == paid


async def posted(api: fastapi.FastAPI, path: str) -> str:
    """The answer's body, by the ASGI protocol itself."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
        "scheme": "http", "server": ("test", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip
    body = b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def take(event: dict[str, Any]) -> None:
        nonlocal body
        body += event.get("body", b"")

    await api(scope, receive, take)
    return body.decode()


def test_a_blocking_app_runs_its_functions_on_threads(gantry: GantryCluster) -> None:
    """
    Handlers, dependencies and middleware of `sync.App` run on threads, several at once.
    """
    gantry.create_topic("orders", queues=1)
    app = sync.App(gantry.namesrv, group="billing", start="first")
    seen: list[Any] = []
    together = threading.Barrier(3)

    def connect() -> Iterator[str]:
        yield threading.current_thread().name
        seen.append("closed")

    @app.middleware
    def around(message: sync.Delivery, call_next: Callable[[sync.Delivery], None]) -> None:
        call_next(message)
        seen.append("around")

    @app.on("orders")
    @app.publish("bills")
    def paid(order: Order, message: sync.Delivery, db: Annotated[str, Depends(connect)]) -> Bill:
        together.wait(SECONDS_MAX)  # all three at once
        assert "gantrymq-handler" in db
        message.ack()
        return Bill(order.number, 250)

    @app.on("bills")
    def billed(bill: Bill, producer: Producer) -> None:
        producer.send(Message("done", str(bill.number)))
        seen.append(bill.number)
        if len([each for each in seen if isinstance(each, int)]) == 3:
            app.stop()

    @app.on_start
    def begin() -> None:
        app.producer.send_many(Message("orders", f'{{"number": {n}}}') for n in range(3))

    with pytest.raises(HandlerRefused, match="without `async`"):

        @app.on("others")
        async def waits(order: Order) -> None: ...

    async def hook(*_: object) -> None: ...

    for declare in (app.on_start, app.on_stop, lambda each: app.on("others", dead=each)):
        with pytest.raises(HandlerRefused, match="without `async`"):
            declare(hook)  # type: ignore[arg-type]

    began = time.monotonic()
    app.run()
    assert time.monotonic() - began < SECONDS_MAX
    assert {0, 1, 2} == {each for each in seen if isinstance(each, int)}
    assert 3 == seen.count("closed")
    assert 3 <= seen.count("around") <= 6
