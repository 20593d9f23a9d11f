"""The demonstration's checks must be able to fail: each is shown what it looks for."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from demo.__main__ import main
from demo.afterwards import Again, Told
from demo.books import Books
from demo.claims import Claim
from demo.cluster import Cluster
from demo.payments import Payments, outcome
from demo.proof import Archive, Found, prove
from demo.readers import AsTheyCome, InOrder, Readers
from demo.reminders import RECALLED, Reminders
from demo.shop import STEPS, Shop, events_of, split_id
from demo.warehouse import Warehouse
from rich.console import Console
from sparkkit import BROKER, Processes

from gantrymq import Decision, Message, Queue
from gantrymq.client.admin.letters.dead_letters import Cause

pytestmark = pytest.mark.timeout(240)

NAMESRV = "127.0.0.1:1"
"""Nobody is asked: the parts below are told what happened."""
PAYMENTS = 20


class Delivered:
    """As much of a message as its readers look at."""

    def __init__(self, event_id: str, transaction_id: str = "") -> None:
        self.keys = (event_id,)
        self.transaction_id = transaction_id


class Word:
    """As much of a transaction as the bank looks at."""

    def __init__(self, transaction_id: str) -> None:
        self.transaction_id = transaction_id
        self.decision = Decision.COMMIT

    def rollback(self) -> None:
        self.decision = Decision.ROLLBACK

    def unknown(self) -> None:
        self.decision = Decision.UNKNOWN


def test_a_customers_events_are_numbered_in_the_order_of_the_steps() -> None:
    """Every order is created, paid and shipped before the next one."""
    events = list(events_of("c1", [7, 8]))

    assert [event.step for event in events] == [*STEPS, *STEPS]
    assert [split_id(event.id) for event in events] == [("c1", number) for number in range(1, 7)]


def test_readers_notice_what_is_early_and_what_comes_again() -> None:
    """Number 3 before number 2 is a skip, a number seen before is a repeat."""
    ordered, plain = InOrder(), AsTheyCome()
    for event_id in ("a/1", "b/1", "a/3", "a/2", "b/1"):
        ordered.take(Delivered(event_id))  # type: ignore[arg-type]
        plain.take(Delivered(event_id))  # type: ignore[arg-type]

    assert (ordered.seen, ordered.skips, ordered.repeats) == (3, 1, 2)
    assert (plain.seen, plain.repeats) == (4, 1)


def test_a_reminder_is_early_when_broker_or_consumer_was_ahead_of_its_time() -> None:
    """Both the time of storing and that of delivery are held against the due time."""
    reminders = Reminders(NAMESRV, 3, lambda: 1.0)
    reminders.due = {"punctual": 1_000, "stored early": 1_000, "taken early": 1_000}
    reminders.take("punctual", 1_000, 1_005)
    reminders.take("stored early", 999, 1_005)
    reminders.take("taken early", 1_000, 999)

    assert (2, [0, -1, 0]) == (reminders.early, reminders.late)


def test_the_bank_answers_from_its_database_and_keeps_its_word() -> None:
    """What the bank did it says; what it did not know when asked it never does."""
    payments = Payments(NAMESRV, PAYMENTS, lambda: 1.0)
    for number in range(3):
        assert payments._act(Word(f"tx-{number}"), number)  # type: ignore[arg-type]
    late = Word("tx-late")
    answers = [
        payments.answer(Delivered("payment-0", "tx-0")),  # type: ignore[arg-type]
        payments.answer(Delivered("payment-4", "tx-late")),  # type: ignore[arg-type]
    ]

    assert [Decision.COMMIT, Decision.ROLLBACK] == answers
    assert not payments._act(late, 4)  # type: ignore[arg-type]
    assert Decision.ROLLBACK is late.decision
    assert {"payment-0", "payment-1", "payment-2"} == payments.books.expected


# The verdict


def exit_code(claims: list[Claim]) -> int:
    """What the program ends with when its story ends with these claims."""

    async def telling(folder: Path, console: Console) -> list[Claim]:
        return claims

    return main(telling)


def test_one_broken_claim_is_enough_for_exit_code_1() -> None:
    """0 means that everything held, and that there was something to hold."""
    held, broken = Claim("water is wet", "1", True), Claim("pigs fly", "0", False)

    assert 0 == exit_code([held, held])
    assert 1 == exit_code([held, broken, held])
    assert 1 == exit_code([])


def test_the_process_ends_with_that_code() -> None:
    """What `make` sees: the module's own last line hands the code on."""
    script = (
        "import runpy, demo.story as story\n"
        "from demo.claims import Claim\n"
        "async def run(self): return [Claim('pigs fly', '0', False)]\n"
        "story.Story.run = run\n"
        "runpy.run_module('demo', run_name='__main__', alter_sys=True)\n"
    )
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )

    assert (1, True) == (ended.returncode, "pigs fly" in ended.stdout), ended.stderr


class Parts(NamedTuple):
    """Everybody who claims something, after a day on which all went well."""

    cluster: Cluster
    shop: Shop
    readers: Readers
    reminders: Reminders
    payments: Payments
    warehouse: Warehouse
    archives: list[Archive]
    agains: list[Again]
    tellings: list[Told]

    def broken(self) -> list[str]:
        """The claims that did not hold."""
        claims = [claim for part in self[:-3] for claim in part.claims()]  # type: ignore[attr-defined]
        for part in (self.archives[0], self.agains[0], self.tellings[0]):
            claims += part.claims()
        assert (0 if all(claim.held for claim in claims) else 1) == exit_code(claims)
        return [claim.sentence for claim in claims if not claim.held]

    def archived(self, **changes: int) -> None:
        """Let Spark have found something else in one of the topics."""
        archive = self.archives[0]
        orders = replace(archive.topics["orders"], **changes)
        self.archives[0] = replace(archive, topics={**archive.topics, "orders": orders})


def good_day() -> Parts:
    shop = Shop(NAMESRV, customers=1, orders=100)
    shop.books.expected |= {event.id for event in shop.events()}
    readers = Readers(NAMESRV, shop.total)
    for event in shop.events():
        readers.ordered.take(Delivered(event.id))  # type: ignore[arg-type]
        readers.plain.take(Delivered(event.id))  # type: ignore[arg-type]
    reminders = Reminders(NAMESRV, 1, lambda: 1.0)
    reminders.due["r"] = 1_000
    reminders.recalled |= {f"regretted-{number}" for number in range(RECALLED)}
    reminders.books.expected.add("r")
    reminders.take("r", 1_001, 1_002)
    payments = Payments(NAMESRV, PAYMENTS, lambda: 1.0)
    for number in range(PAYMENTS):
        payments._act(Word(f"tx-{number}"), number)  # type: ignore[arg-type]
    payments.asked |= payments.silent
    payments.delivered.update(payments.books.expected)
    warehouse = Warehouse(NAMESRV, shop.events())
    warehouse.packed |= warehouse.orders
    warehouse.came_again |= warehouse.out_of_stock
    warehouse.causes = [
        (Cause("f", error, "", ""), set(ids)) for error, ids in warehouse.flawed.items()
    ]
    warehouse.resent = len(warehouse.books.expected)
    fine = Found(rows=1, lost=0, strangers=0, repeats=0, doubled=0)
    archive = Archive({"orders": fine, "payments": fine}, misplaced=0, second_run=0)
    cluster = Cluster(Path("nowhere"))
    cluster.away = 1.5
    return Parts(
        cluster, shop, readers, reminders, payments, warehouse, [archive],
        [Again(meant=3, rows=3, originals=3, turned=0)],
        [Told(pictures=1, doubled=2, otherwise=0, repeats=2)],
    )  # fmt: skip


def test_on_a_good_day_every_claim_holds() -> None:
    """Else the next test would prove nothing."""
    assert [] == good_day().broken()


def _refused(parts: Parts) -> None:
    number = next(each for each in range(PAYMENTS) if outcome(each) is Decision.ROLLBACK)
    parts.payments.delivered[f"payment-{number}"] += 1


@pytest.mark.parametrize(
    ("claim", "mishap"),
    [
        ("the broker was killed and came back", lambda p: setattr(p.cluster, "away", 0.0)),
        ("every event was acknowledged in the end", lambda p: p.shop.books.expected.pop()),
        ("ordered consumers read all of it in order",
         lambda p: setattr(p.readers.ordered, "skips", 1)),
        ("plain consumers read all of it", lambda p: p.readers.plain.ids.pop()),
        ("reminders: acknowledged is kept", lambda p: p.reminders.came.clear()),
        ("reminders: nothing before its time", lambda p: p.reminders.take("r", 999, 1_001)),
        ("reminders: withdrawn is never delivered",
         lambda p: p.reminders.came.add("regretted-0")),
        ("payments: acknowledged is kept", lambda p: p.payments.delivered.popitem()),
        ("payments: withdrawn is never delivered", _refused),
        ("the broker asked about the undecided ones", lambda p: p.payments.asked.pop()),
        ("what was out of stock was tried again", lambda p: p.warehouse.came_again.clear()),
        ("dead letters are the flawed orders, by cause",
         lambda p: p.warehouse.causes[0][1].add("c0/2000")),
        ("dead letters are the flawed orders, by cause", lambda p: p.warehouse.causes.pop()),
        ("after mending they were resent, once",
         lambda p: setattr(p.warehouse, "resent_again", 1)),
        ("in the end every order was packed",
         lambda p: p.warehouse.packed.difference_update(p.warehouse.books.expected)),
        ("Spark: acknowledged is kept", lambda p: p.archived(lost=1)),
        ("Spark: nothing from nowhere", lambda p: p.archived(strangers=1)),
        ("Spark: sent once, stored once",
         lambda p: p.archived(repeats=1, doubled=1)),
        ("Spark: order is kept",
         lambda p: p.archives.insert(0, replace(p.archives[0], misplaced=1))),
        ("a second archive run adds nothing",
         lambda p: p.archives.insert(0, replace(p.archives[0], second_run=1))),
        ("an hour again: every order once, marked",
         lambda p: p.agains.insert(0, replace(p.agains[0], rows=4))),
        ("an hour again: every order once, marked",
         lambda p: p.agains.insert(0, replace(p.agains[0], originals=2))),
        ("an hour again: each customer's order is kept",
         lambda p: p.agains.insert(0, replace(p.agains[0], turned=1))),
        ("the report's ledger finds those repeats, and no loss",
         lambda p: p.tellings.insert(0, replace(p.tellings[0], doubled=1))),
        ("the report's ledger finds those repeats, and no loss",
         lambda p: p.tellings.insert(0, replace(p.tellings[0], otherwise=1))),
    ],
)  # fmt: skip
def test_a_mishap_breaks_the_claim_about_it(claim: str, mishap: Callable[[Parts], object]) -> None:
    """One thing went wrong: that claim fails, no other does, and the exit code is 1."""
    parts = good_day()
    mishap(parts)

    assert [claim] == parts.broken()


def test_the_archive_shows_what_went_wrong(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Lost, doubled, strange and misplaced messages are counted, each in its topic."""
    other = f"{topic}-other"
    queues = {
        Queue(topic, BROKER, 0): ["a/1", "a/2", "a/2", "b/2", "b/1"],
        Queue(topic, BROKER, 1): ["c/1", "a/3"],
        Queue(other, BROKER, 0): ["p1", "p2", "p2", "p2", "b/2"],
    }
    for each in (topic, other):
        cluster.create_topic(each, queues=2)
    for queue, stored in queues.items():
        cluster.send([Message(queue.topic, b"x", keys=[each]) for each in stored], queue)
    books = {
        topic: Books({"a/1", "a/2", "a/3", "b/1", "b/2", "d/1"}),
        other: Books({"p1", "p2", "p3"}, doubtful={"p2"}),
    }

    found = prove(spark, cluster.namesrv, books, topic, tmp_path)

    assert found == Archive(
        {
            topic: Found(rows=7, lost=1, strangers=1, repeats=1, doubled=1),
            other: Found(rows=5, lost=1, strangers=1, repeats=2, doubled=0),
        },
        misplaced=2,
        second_run=0,
    )
