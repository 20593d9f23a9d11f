"""An app of typed handlers, in memory and over real TCP."""

import asyncio
import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from once_member import FIRST, until
from peer import Run

from gantrymq.app.app import App
from gantrymq.base.errors import GantryError
from gantrymq.base.offload import InlineOffload
from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.core.errors import NotStarted
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.failures import failure_in
from gantrymq.client.once.guard import Once
from gantrymq.client.once.sqlite_store import SqliteStore, SqliteTransaction
from gantrymq.model import Message, dead_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


class Order(msgspec.Struct):
    number: int
    item: str = "book"


@dataclasses.dataclass
class Payment:
    number: int


class Shipment(pydantic.BaseModel):
    number: int


def make_app(**options: Any) -> App:
    return App("nowhere:1", group="billing", options=FIRST, **options)


async def send(cluster: Cluster, topic: str, body: str | bytes, tags: str | None = None) -> None:
    async with cluster.producer("sender") as producer:
        await producer.send(Message(topic, body, tags=tags, keys="k"))


async def dead_letters(cluster: Cluster, count: int = 1) -> list[Delivery]:
    found: list[Delivery] = []
    async with cluster.consumer("undertaker", options=FIRST) as reader:
        reader.subscribe(dead_topic("billing"))
        async with asyncio.timeout(60):
            while len(found) < count:
                found.append(await anext(aiter(reader)))
    return found


def test_handlers_get_what_their_annotation_says(run: Run) -> None:
    """
    A struct, a dataclass, a pydantic model, plain JSON, text, bytes, or the message itself.
    """
    app, got = make_app(), {}

    @app.on("topic", tags="struct")
    async def struct(order: Order) -> None:
        got["struct"] = order

    @app.on("topic", tags="dataclass")
    def payment(payment: Payment) -> None:
        got["dataclass"] = payment

    @app.on("topic", tags="pydantic")
    async def shipment(shipment: "Shipment") -> None:
        got["pydantic"] = shipment

    @app.on("topic", tags="dict")
    async def plain(fields: dict[str, int]) -> None:
        got["dict"] = fields

    @app.on("topic", tags="text")
    async def text(body: str, message: Delivery) -> None:
        got["text"] = (body, message.tags)

    @app.on("topic", tags="bytes || raw")
    async def raw(body: bytes) -> None:
        got["bytes"] = body

    @app.on("topic", tags="message")
    async def message(message: Delivery) -> None:
        got["message"] = message.body

    @app.on("other")
    async def anything(message) -> None:  # type: ignore[no-untyped-def]
        got["other"] = message.body

    async def story(cluster: Cluster) -> None:
        for tag in ("struct", "dataclass", "pydantic", "dict", "text", "raw", "message", "none"):
            await send(cluster, "topic", '{"number": 7}', tag)
        await send(cluster, "other", b"\xff")
        async with app.test(cluster):
            await until(lambda: len(got) == 8)

    run(story)
    body = '{"number": 7}'
    assert {
        "struct": Order(7), "dataclass": Payment(7), "pydantic": Shipment(number=7),
        "dict": {"number": 7}, "text": (body, "text"), "bytes": body.encode(),
        "message": body.encode(), "other": b"\xff",
    } == got  # fmt: skip


@pytest.mark.parametrize(
    "wanted, body",
    [(Order, b'{"number": "x"}'), (Payment, b"{}"), (Shipment, b"nonsense"), (str, b"\xff")],
)
def test_a_body_that_cannot_be_read_goes_to_the_dead_letters_at_once(
    run: Run, wanted: type, body: bytes
) -> None:
    """
    Trying again would change nothing; the reason travels with it, and the hook hears of it.
    """
    app, heard = make_app(), []

    async def bury(message: Delivery, error: Exception) -> None:
        heard.append((message.body, str(error)))

    async def handle(payload: Any) -> None:
        raise AssertionError("never called")

    handle.__annotations__["payload"] = wanted
    app.on("orders", dead=bury)(handle)

    async def story(cluster: Cluster) -> None:
        await send(cluster, "orders", body)
        async with app.test(cluster):
            (letter,) = await dead_letters(cluster)
            failure = failure_in(letter.properties)
            assert failure is not None
            assert failure.reason.startswith(f"the body is no {wanted.__name__}: ")
            assert (body, [(body, failure.text)]) == (letter.body, heard)

    run(story)


def test_an_unreadable_body_can_be_retried_instead() -> None:
    """
    For whoever mends the handler faster than sixteen tries take.
    """
    app, tries = make_app(), []

    class Later(msgspec.Struct):
        number: int

        def __post_init__(self) -> None:
            tries.append(self.number)
            if len(tries) < 3:
                raise ValueError("not yet")

    async def handle(payload: Later) -> None:
        tries.append(0)

    handle.__annotations__["payload"] = Later
    app.on("orders", undecodable="retry")(handle)

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            await send(cluster, "orders", '{"number": 1}')
            async with app.test(cluster):
                await asyncio.sleep(120)

    simulate(story)
    assert [1, 1, 1, 0] == tries


def test_retries_are_each_handlers_own() -> None:
    """
    Two handlers of one group: one gives up after one retry, the other after three.
    """
    app, tries, heard = make_app(), {"few": 0, "many": 0}, []

    def bury(message: Delivery, error: Exception) -> None:
        heard.append((message.tags, str(error)))
        raise RuntimeError("a hook that fails changes nothing")

    @app.on("orders", tags="few", retries=1, dead=bury)
    async def few(message: Delivery) -> None:
        tries["few"] += 1
        raise ValueError("few")

    @app.on("orders", tags="many", retries=3, dead=bury)
    async def many(message: Delivery) -> None:
        tries["many"] += 1
        raise ValueError("many")

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            for tag in ("few", "many"):
                await send(cluster, "orders", "x", tag)
            async with app.test(cluster):
                await asyncio.sleep(600)
                letters = await dead_letters(cluster, 2)
        reasons = [failure_in(letter.properties) for letter in letters]
        found = sorted((f.error, f.text, f.reason) for f in reasons if f is not None)
        assert [
            ("ValueError", "few", "failed after 2 tries"),
            ("ValueError", "many", "failed after 4 tries"),
        ] == found

    simulate(story)
    assert {"few": 2, "many": 4} == tries
    assert [("few", "few"), ("many", "many")] == sorted(heard)


def test_concurrency_is_each_handlers_own(run: Run) -> None:
    """
    A slow handler does not take more than its share.
    """
    app = make_app()
    running, most = {"one": 0, "three": 0}, {"one": 0, "three": 0}

    async def work(name: str) -> None:
        running[name] += 1
        most[name] = max(most[name], running[name])
        await asyncio.sleep(0.05)
        running[name] -= 1

    done: list[str] = []

    @app.on("orders", tags="one", concurrency=1)
    async def one(message: Delivery) -> None:
        await work("one")
        done.append("one")

    @app.on("orders", tags="three", concurrency=3)
    async def three(message: Delivery) -> None:
        await work("three")
        done.append("three")

    async def story(cluster: Cluster) -> None:
        async with cluster.producer("sender") as producer:
            for tag in ("one", "three") * 6:
                await producer.send(Message("orders", b"x", tags=tag))
        async with app.test(cluster):
            await until(lambda: len(done) == 12)

    run(story)
    assert most["one"] == 1
    assert 2 <= most["three"] <= 3


def test_hooks_and_a_producer_frame_the_handlers(run: Run) -> None:
    """
    Start hooks run before the first message, stop hooks after the last; both can send.
    """
    app, story_told = make_app(), []

    @app.on_start
    async def begin() -> None:
        story_told.append("start")
        await app.producer.send(Message("orders", b"1"))

    @app.on_stop
    def end() -> None:
        story_told.append("stop")

    @app.on("orders")
    async def order(number: int) -> None:
        story_told.append(f"order {number}")
        await app.producer.send(Message("receipts", str(number)))

    @app.on("receipts", group="archive", ordered=True)
    async def receipt(number: int) -> None:
        story_told.append(f"receipt {number}")
        app.stop()

    async def story(cluster: Cluster) -> None:
        app._namesrv, app._shared = cluster.namesrv, {**app._shared, **cluster._ports}
        async with asyncio.timeout(30):
            await app.run()

    with pytest.raises(NotStarted):
        _ = app.producer
    run(story)
    assert ["start", "order 1", "receipt 1", "stop"] == story_told


def test_a_transaction_is_the_third_argument(run: Run, tmp_path: Path) -> None:
    """
    With `once` in a transaction, effectively once holds for typed handlers as well.
    """
    path = tmp_path / "once.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE paid (number int)")
    once = Once(SqliteStore(str(path), offload=InlineOffload()), transaction=True)
    app = make_app(once=once)

    @app.on("orders")
    async def order(order: Order, message: Delivery, transaction: SqliteTransaction) -> None:
        await transaction.execute("INSERT INTO paid VALUES (?)", (order.number,))

    async def story(cluster: Cluster) -> None:
        for _ in range(3):
            await send(cluster, "orders", '{"number": 7}')
        async with app.test(cluster):
            await until(lambda: once.suppressed_count == 2)

    run(story)
    with sqlite3.connect(path) as db:
        assert [(7,)] == db.execute("SELECT number FROM paid").fetchall()


# what is refused


async def takes_order(order: Order) -> None:
    """A handler."""


async def takes_transaction(order: Order, message: Delivery, transaction: Any) -> None:
    """A handler."""


def refused(app: App) -> str:
    async def main() -> str:
        with pytest.raises(GantryError) as caught:
            await app.run()
        return str(caught.value)

    return asyncio.run(main())


@pytest.mark.parametrize("one, other", [("*", "paid"), ("paid || new", "old||paid"), ("*", "*")])
def test_two_handlers_for_the_same_message_are_refused(one: str, other: str) -> None:
    """
    Before anything starts, with both names.
    """
    app = make_app()
    app.on("orders", tags=one)(takes_order)
    app.on("orders", tags=other)(takes_order)

    assert "want the same messages" in refused(app)


def test_a_group_is_ordered_as_a_whole() -> None:
    """
    And the way out is named.
    """
    app = make_app()
    app.on("orders")(takes_order)
    app.on("payments", ordered=True)(takes_order)

    assert "group of its own" in refused(app)


def test_an_app_that_cannot_work_says_why() -> None:
    """
    No handler, no transaction.
    """
    assert "no handler" in refused(make_app())
    app = make_app()
    app.on("orders")(takes_transaction)
    assert "wants a transaction" in refused(app)


@pytest.mark.parametrize(
    "options",
    [{"tags": ""}, {"tags": "a || *"}, {"concurrency": 0}, {"retries": -1}, {"group": "b d"}],
)
def test_a_declaration_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    """
    At the line where it stands.
    """
    with pytest.raises(GantryError):
        make_app().on("orders", **options)(takes_order)


def test_a_handler_that_cannot_be_called_is_refused() -> None:
    """
    No parameter, too many, unknown types, types that JSON cannot be.
    """

    async def none() -> None:
        """A handler."""

    async def many(a: int, b: int, c: int, d: int) -> None:
        """A handler."""

    async def star(*a: int) -> None:
        """A handler."""

    async def unknown(a: "Nothing") -> None:  # type: ignore[name-defined]  # noqa: F821
        """A handler."""

    async def socket(a: asyncio.Event) -> None:
        """A handler."""

    for function in (none, many, star, unknown, socket):
        with pytest.raises(HandlerRefused, match=function.__name__):
            make_app().on("orders")(function)
    with pytest.raises(HandlerRefused, match="one message at a time"):
        App("x:1", group="g", options=ConsumerOptions(consume_batch_max=2))


def test_a_retry_for_a_handler_that_is_gone_is_not_lost(run: Run) -> None:
    """
    A newer version of the program no longer handles a tag: its retries become dead letters.
    """
    old, new = make_app(), make_app()
    new.on("orders", tags="b")(takes_order)

    @old.on("orders", tags="a || b")
    async def fail(message: Delivery) -> None:
        await message.retry(1)
        old.stop()

    async def story(cluster: Cluster) -> None:
        await send(cluster, "orders", "{}", "a")
        async with old.test(cluster):
            await asyncio.wait_for(old._stopping.wait(), 30)
        async with new.test(cluster):
            (letter,) = await dead_letters(cluster)
            failure = failure_in(letter.properties)
            assert failure is not None
            assert "no handler for orders, tag a" == failure.reason

    run(story)


# as a program of its own

PROGRAM = """
import asyncio
from pathlib import Path
from gantrymq import App, ConsumerOptions

app = App(group="billing", options=ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET"))

@app.on("orders")
async def order(body: str) -> None:
    Path("begun").write_text(body)
    await asyncio.sleep(1)
    with open("done", "a") as file:
        file.write(body)
"""


BLOCKING = (
    PROGRAM.replace("import asyncio", "import asyncio, time")
    .replace("from gantrymq import App, ", "from gantrymq.sync import App\nfrom gantrymq import ")
    .replace("async def", "def")
    .replace("await asyncio.sleep", "time.sleep")
)
"""The same without `async`."""


def start_program(folder: Path, target: str, namesrv: str) -> "subprocess.Popen[str]":
    code = "from gantrymq.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", target, "--namesrv", namesrv],
        cwd=folder, text=True, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize(
    "signum, text",
    [(signal.SIGTERM, PROGRAM), (signal.SIGINT, PROGRAM), (signal.SIGTERM, BLOCKING)],
    ids=["terminate", "interrupt", "blocking"],
)
def test_gantry_run_ends_what_it_is_doing_when_told_to_stop(
    signum: signal.Signals, text: str, tmp_path: Path
) -> None:
    """
    The running handler ends, its acknowledgement is stored: the next start has nothing to repeat.
    """
    (tmp_path / "shop.py").write_text(text)

    async def story() -> None:
        async with Cluster() as cluster:
            await send(cluster, "orders", "x")
            program = start_program(tmp_path, "shop:app", cluster.namesrv)
            await until((tmp_path / "begun").exists)
            os.kill(program.pid, signum)
            assert 0 == await asyncio.to_thread(program.wait, 20)
            async with cluster.admin() as admin:
                progress = await admin.consume_stats("billing", "orders")
            assert 0 == progress.lag

    asyncio.run(story())
    assert "x" == (tmp_path / "done").read_text()


@pytest.mark.parametrize(
    "target, text",
    [("nothing:app", "No module named 'nothing'"), ("shop:other", "no App called 'other'"),
     ("shop:asyncio", "no App called 'asyncio'")],
)  # fmt: skip
def test_gantry_run_names_what_it_cannot_find(target: str, text: str, tmp_path: Path) -> None:
    """
    A mistake on the command line is exit code 2.
    """
    (tmp_path / "shop.py").write_text(PROGRAM)
    program = start_program(tmp_path, target, "127.0.0.1:1")
    _, errors = program.communicate(timeout=30)

    assert (2, True) == (program.returncode, text in errors), errors
