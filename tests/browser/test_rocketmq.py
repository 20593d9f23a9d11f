"""The main pages on real RocketMQ 4.9.7 and 5.3.3."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from consolekit import Site, console, until
from playwright.sync_api import Browser
from world import run

from conftest import Watched, watched
from gantrymq import Admin, Consumer, ConsumerOptions, Decision, Message, Producer

sys.path.append(str(Path(__file__).parents[1] / "interop"))

from clients import JavaClient
from real import RealCluster

VERSIONS = ("4.9.7", "5.3.3")
API = "/clusters/test"


@pytest.fixture(scope="module", params=VERSIONS)
def rocketmq(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A console on a name server and broker of RocketMQ with some messages in them."""
    with RealCluster(request.param) as cluster:
        run(fill(cluster.namesrv))
        with console(cluster.namesrv) as site:
            yield site


async def fill(namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic("orders", queues=4)
    async with Producer(namesrv, group="shop") as producer:
        for number in range(10):
            await producer.send(Message("orders", f"order {number}", keys=(f"k{number}",)))
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    async with Consumer(namesrv, group="billing", options=options) as consumer:
        consumer.subscribe("orders")
        async for message in consumer:
            await message.dead(reason="declined")
            break
    async with Producer(namesrv, group="shop") as producer:
        await producer.send(Message("orders", "tomorrow", delay_level=18, keys=("tomorrow",)))
    async with Producer(namesrv, group="clearing") as producer:
        half = Message("orders", "half 7", keys=("half-7",))
        await producer.send_transaction(half, lambda _: Decision.UNKNOWN)


@pytest.fixture(scope="module")
def named(rocketmq: Site) -> dict[str, str]:
    """The letter and its message, by the words for them in the addresses below."""
    letters = until(lambda: rocketmq.api("GET", f"{API}/groups/billing/dead-letters")["letters"])
    row = letters[0]["row"]
    found = rocketmq.api("GET", f"{API}/message-ids/{row['msgId']}", topic="orders")["messages"][0]
    return {
        "letter": letters[0]["deadId"],
        "id": row["msgId"],
        "offset_id": found["offsetMsgId"],
        "key": row["keys"][0],
        "place": f"{found['broker']}/{found['queueId']}/{found['offset']}",
    }


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/overview", r"V(4_9_7|5_3_3)"),
        ("/brokers/broker-a/0", r"(?s)msgPutTotalTodayNow.*brokerClusterName"),
        ("/topics", r"orders"),
        ("/topics/orders", r"billing"),
        ("/groups", r"billing"),
        ("/groups/billing", r"orders"),
        ("/messages?topic=orders", r"order \d"),
        ("/messages?by=id&topic=orders&id={id}", r"order \d"),
        ("/messages?by=id&id={offset_id}", r"order \d"),
        ("/messages?by=key&topic=orders&key={key}", r"order \d"),
        ("/messages/orders/{place}", r"(?s)order \d.*UNIQ_KEY"),
        ("/message-history/{id}?topic=orders", r"(?s)stored.*billing.*%DLQ%billing"),
        ("/letters", r"billing"),
        ("/letters/billing", r"(?s)no cause is known.*order \d"),  # these brokers keep no reasons
        ("/letters/billing/{letter}", r"(?s)no cause is known.*order \d"),
        ("/waiting", r"(?s)level 18.*tomorrow"),
        ("/transactions", r"(?s)clearing.*half 7"),
        ("/alarms", r"\d groups, looked at last"),
    ],
)
def test_a_page_shows_what_is_there(
    chromium: Browser, rocketmq: Site, named: dict[str, str], path: str, shown: str
) -> None:
    """
    The page loads from RocketMQ's servers without a fault, and has what was put there.
    """
    address = path.format_map({word: quote(name, safe="/") for word, name in named.items()})
    with watched(chromium) as visitor:
        # In its first seconds a broker of 4.9.7 fails when it is asked for its figures.
        until(lambda: re.search(shown, _text_of(visitor, rocketmq, address)) is not None)
        page, text = visitor.page, visitor.page.locator("main").inner_text()
        assert not page.locator("p.said.error").count(), text
        assert [] == visitor.faults


def _text_of(visitor: Watched, rocketmq: Site, path: str) -> str:
    return visitor.open(f"{rocketmq.url}/c/test{path}").locator("main").inner_text()


def test_a_half_message_is_asked_about_at_the_brokers_interval(rocketmq: Site) -> None:
    """
    These brokers know no request for it, and the console says so.
    """
    clusters = "/clusters/test"
    (member,) = rocketmq.api("GET", f"{clusters}/members")["members"]
    half = {"broker": member["broker"], "topic": "orders", "offsetMsgId": "0" * 32}
    reply = rocketmq.call("POST", f"{clusters}/transactions/check", **half)

    assert (400, True) == (reply.status, "at its own interval only" in reply.text)


def test_a_java_member_tells_what_its_threads_do(chromium: Browser, rocketmq: Site) -> None:
    """
    The page of a member of RocketMQ's own client has the queues that it holds, and its stacks.
    """
    namesrv = rocketmq.api("GET", "/clusters/test/members")["nameServers"][0]
    with (
        JavaClient("5.3.3").start(
            "consume-concurrently", namesrv=namesrv, topic="orders", group="java", expected=1_000
        ) as member,
        watched(chromium) as visitor,
    ):
        member.until("message")
        found = rocketmq.api("GET", "/clusters/test/groups/java")["members"]
        client = quote(found[0]["clientId"], safe="")
        address = f"{rocketmq.url}/c/test/groups/java/member?clientId={client}"
        page = visitor.open(address)
        assert "orders" in page.locator("main").inner_text()
        page.get_by_role("link", name="With stacks").click()
        visitor.settle()
        assert "ConsumeMessageThread" in page.locator("pre.stacks").inner_text()
        assert [] == visitor.faults
        member.kill()
