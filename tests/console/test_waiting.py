"""What waits: delayed messages and their recall, and transactions without a decision."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from consolekit import NAME, Site, console, until
from consumekit import send_these

from gantrymq import Admin, Message, Producer
from gantrymq.client.admin.messages.delay_levels import waiting_levels
from gantrymq.client.produce.transactions import Decision
from gantrymq.protocol.waiting import WaitingTable
from gantrymq.testing.threaded import GantryCluster

BASE = f"/clusters/{NAME}"
PAGES = f"/c/{NAME}"
NASTY = '<script>alert(1)</script>"><img/src=x/onerror=alert(2)>'


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def begin_transaction(gantry: GantryCluster, *messages: Message) -> None:
    """Half messages whose producer does not decide, and goes."""

    async def run() -> None:
        async with Producer(gantry.namesrv, group="shop") as producer:
            for each in messages:
                await producer.send_transaction(each, lambda _: Decision.UNKNOWN)

    asyncio.run(run())


def waiting(site: Site, count: int, **question: object) -> dict[str, Any]:
    """What waits, once so many messages are in the timer: it takes them in a moment later."""

    def found() -> dict[str, Any]:
        page: dict[str, Any] = site.api("GET", f"{BASE}/waiting", **question)
        return page if len(page["messages"]) == count else {}

    return until(found)


def test_delayed_messages_are_listed_by_due_time(site: Site, gantry: GantryCluster) -> None:
    """Those of timers and delay levels, with counts by topic and room."""
    send_these(
        gantry.namesrv,
        Message("orders", b"late", delay=3600, keys=["k-2"]),
        Message("orders", b"soon", delay=60, tags="t"),
        Message("other", b"level", delay_level=5),
    )

    found = waiting(site, 3)

    assert [each["dueMs"] for each in found["messages"]] == sorted(
        each["dueMs"] for each in found["messages"]
    )
    assert found["waiting"] == 3
    assert {each["topic"]: each["count"] for each in found["topics"]} == {"orders": 2, "other": 1}
    recallable = {each["topic"]: each["canBeRecalled"] for each in found["messages"]}
    assert recallable == {"orders": True, "other": False}
    assert len(waiting(site, 2, topic="orders")["messages"]) == 2
    page = site.page(f"{PAGES}/waiting")
    assert "k-2" in page
    assert (
        page.count("/waiting/recall") == 4
    )  # two forms, each with an address for htmx and without


def test_a_long_list_goes_on(site: Site, gantry: GantryCluster) -> None:
    """The answer says from when on."""
    send_these(gantry.namesrv, *(Message("orders", b"x", delay=60 + number) for number in range(6)))
    waiting(site, 6)

    first = site.api("GET", f"{BASE}/waiting", count=4)
    rest = site.api("GET", f"{BASE}/waiting", fromMs=first["goOnFromMs"])

    ids = [each["msgId"] for each in first["messages"] + rest["messages"]]
    assert len(set(ids)) == len(ids) == 6
    assert rest["goOnFromMs"] is None


def test_a_list_goes_on_among_messages_that_are_due_together(
    site: Site, gantry: GantryCluster
) -> None:
    """None is passed over; where one page cannot hold them, the answer says so."""
    at_ms = gantry.clock.now_ms() + 600_000
    send_these(gantry.namesrv, *(Message("orders", b"x", deliver_at=at_ms + 1000 * (number // 3))
                   for number in range(6)))  # fmt: skip
    waiting(site, 6)

    first = site.api("GET", f"{BASE}/waiting", count=4)
    rest = site.api("GET", f"{BASE}/waiting", count=4, fromMs=first["goOnFromMs"])
    tight = site.api("GET", f"{BASE}/waiting", count=2)

    ids = [each["msgId"] for each in first["messages"] + rest["messages"]]
    assert len(set(ids)) == len(ids) == 6
    assert "this same time" in str(tight["silent"])


def test_a_waiting_message_is_recalled(site: Site, gantry: GantryCluster) -> None:
    """Through the API and from the page; an id that does not wait is refused."""
    send_these(
        gantry.namesrv, *(Message("orders", b"x", delay=600 + number) for number in range(2))
    )
    first, second = waiting(site, 2)["messages"]

    def question(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in ("broker", "topic", "msgId", "dueMs")}

    assert "recalled" in site.api("POST", f"{BASE}/waiting/recall", **question(first))["text"]
    waiting(site, 1)
    assert site.act(f"{PAGES}/waiting/recall", **question(second)).status == 200
    waiting(site, 0)
    nothing = question(first) | {"msgId": "0" * 32}
    assert site.call("POST", f"{BASE}/waiting/recall", **nothing).status == 400


def test_transactions_without_a_decision_are_listed(site: Site, gantry: GantryCluster) -> None:
    """With the group that has to decide, how often it was asked, and who is online."""
    begin_transaction(gantry, Message("orders", b"half", keys=["k-1"]))
    send_these(gantry.namesrv, Message("orders", b"whole"))

    found = site.api("GET", f"{BASE}/transactions")

    (half,) = found["halves"]
    assert (half["topic"], half["group"], half["row"]["preview"]) == ("orders", "shop", "half")
    assert (half["checks"], half["producers"], found["undecided"]) == (0, 0, 1)
    page = site.page(f"{PAGES}/transactions")
    assert "nobody online" in page
    assert "k-1" in page


def test_decided_transactions_are_not_listed(site: Site, gantry: GantryCluster) -> None:
    """Neither committed nor rolled back ones."""

    async def run() -> None:
        async with Producer(gantry.namesrv, group="shop") as producer:
            for decision in (Decision.COMMIT, Decision.ROLLBACK):
                message = Message("orders", b"x")
                await producer.send_transaction(message, lambda _, said=decision: said)

    asyncio.run(run())
    until(lambda: not site.api("GET", f"{BASE}/transactions")["undecided"])
    assert "Every transaction is decided" in site.page(f"{PAGES}/transactions")


def test_a_broker_asks_now(site: Site, gantry: GantryCluster) -> None:
    """The count of its questions says so; a form of the page does the same."""
    begin_transaction(gantry, Message("orders", b"half"))

    def half() -> dict[str, Any]:
        (found,) = site.api("GET", f"{BASE}/transactions")["halves"]
        return cast("dict[str, Any]", found)

    row = half()["row"]
    named = {"broker": row["broker"], "topic": "orders", "offsetMsgId": row["offsetMsgId"]}
    assert "asks now" in site.api("POST", f"{BASE}/transactions/check", **named)["text"]
    until(lambda: half()["checks"] >= 1)
    assert "asks now" in site.act(f"{PAGES}/transactions/check", **named).text
    other = named | {"topic": "x"}
    assert site.call("POST", f"{BASE}/transactions/check", **other).status == 409


def test_a_check_of_what_never_was_given_up_is_refused(site: Site, gantry: GantryCluster) -> None:
    """With the broker's sentence."""
    sent = send_these(gantry.namesrv, Message("orders", b"x"))[0]

    reply = site.act(
        f"{PAGES}/transactions/resume",
        broker=sent.queue.broker_name, topic="orders", offsetMsgId=sent.offset_msg_id,
    )  # fmt: skip

    assert reply.status == 409
    assert "TRANS_CHECK_MAX_TIME_TOPIC" in reply.text


def test_keys_of_waiting_messages_are_masked_and_text(site: Site, gantry: GantryCluster) -> None:
    """Lists have no bodies, but keys and tags."""
    send_these(gantry.namesrv, Message("orders", b"x", delay=600, keys=["key-77"], tags=NASTY))
    begin_transaction(gantry, Message("pay", NASTY.encode(), keys=[NASTY]))
    waiting(site, 1)
    site.api("POST", f"{BASE}/masking", topic="orders", kind="property", what="KEYS")

    for path in (f"{PAGES}/waiting", f"{PAGES}/transactions", f"{PAGES}/waiting?topic={NASTY[:8]}"):
        text = site.ask("GET", path).text
        assert "key-77" not in text
        assert "<script>alert" not in text
        assert "<img/" not in text


def test_delay_levels_are_read_where_a_broker_has_no_request_for_them(
    gantry: GantryCluster,
) -> None:
    """From the levels' own queues and the offsets that are delivered, as on RocketMQ's brokers."""
    send_these(
        gantry.namesrv,
        Message("orders", b"second", delay_level=5, keys=["k"]),
        Message("orders", b"first", delay_level=4),
        Message("other", b"third", delay_level=6),
    )

    async def read(topic: str | None, count: int = 10, from_ms: int = 0) -> WaitingTable:
        async with Admin(gantry.namesrv) as admin:
            ((broker, address),) = (await admin.masters()).items()
            return await waiting_levels(admin, broker, address, topic, count, from_ms)

    whole, part = asyncio.run(read(None)), asyncio.run(read("orders"))

    assert [row.room for row in whole.messages] == ["level 4", "level 5", "level 6"]
    assert [(row.room, row.count) for row in whole.rooms] == [
        ("level 4", 1), ("level 5", 1), ("level 6", 1),
    ]  # fmt: skip
    assert whole.rooms[0].next_due_ms == whole.messages[0].due_ms
    assert [row.topic for row in part.messages] == ["orders", "orders"]
    assert part.messages[1].keys == ["k"]

    gantry.clock.advance(1)
    sent = send_these(gantry.namesrv, Message("orders", b"later", delay_level=4))[0]
    due_ms = whole.messages[0].due_ms + 1
    later = asyncio.run(read(None, 1, due_ms)).messages
    assert [row.msg_id for row in later] == [sent.msg_id]


def test_a_cluster_that_does_not_answer_says_so(gantry: GantryCluster) -> None:
    """Pages and API have the status and a sentence; other clusters go on."""
    with console(gantry, "127.0.0.1:1") as site:
        reply = site.call("GET", f"/clusters/{NAME}-1/waiting")
        assert reply.status == 503
        assert site.ask("GET", f"/c/{NAME}-1/waiting").status == 503
        assert site.api("GET", f"{BASE}/waiting")["silent"] == {}
