"""What servers and clients say of themselves is text on every page, whatever it would like to be.

Messages have tests of their own: test_messages_pages, test_letters_pages and test_waiting.
"""

import asyncio
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from consolekit import NAME, Site, console, until
from consumekit import send_these
from roguekit import rogue_broker, rogue_member

from gantrymq import Consumer, Message
from gantrymq.testing.threaded import GantryCluster

NASTY = "<script>alert(1)<script>\"'><img src=x onerror=alert(2)>{{7*7}}"
"""Without a slash, with which no page of a name could be asked for."""
SHOWN = "&lt;script&gt;alert(1)&lt;script&gt;"
PAGES = f"/c/{NAME}"
LISTS = ("overview", "topics", "groups")
NAMED = quote(NASTY, safe="")


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    gantry.create_topic("orders", 1)
    with console(gantry) as site:
        yield site


def looked_at(site: Site, path: str, *statuses: int) -> str:
    """The text of a page or of an error, in which nothing is markup that should be text."""
    reply = site.ask("GET", path)
    assert reply.status in (statuses or (200,)), f"{path}: {reply.status} {reply.text}"
    text = reply.text
    assert "<script>alert" not in text, path
    assert "<img" not in text.replace('<img src="/static', ""), path
    assert "{49}" not in text, path
    assert "\"'>" not in text, path
    return text


def broker_of(gantry: GantryCluster) -> str:
    return gantry.cluster.broker().address


def test_a_member_says_it_of_itself(site: Site, gantry: GantryCluster) -> None:
    """Its client id, its expression, its properties, queues and threads; a producer's, too."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))
    place = f"{PAGES}/messages/orders/broker-a/{sent.queue.queue_id}/{sent.offset}"
    with rogue_member(broker_of(gantry), "billing", NASTY):
        until(lambda: SHOWN in site.page(f"{PAGES}/groups/billing"))
        for path in (
            f"{PAGES}/groups/billing",
            f"{PAGES}/groups/billing/member?clientId={NAMED}",
            f"{PAGES}/groups/billing/member?clientId={NAMED}&stacks=true",
            f"{PAGES}/brokers/broker-a/0",
            f"{place}/consumers?group=billing&origin={NAMED}",
        ):
            assert SHOWN in looked_at(site, path), path
        done = site.act(f"{place}/consume", group="billing", clientId=NASTY)
        looked_at(site, f"{PAGES}/groups")

    assert (200, True) == (done.status, SHOWN in done.text)
    assert "<script>alert" not in done.text


def test_a_broker_says_it_of_itself(site: Site, gantry: GantryCluster) -> None:
    """Its name and cluster, figures and settings, topics, groups and errors, and what is found."""
    with rogue_broker(gantry.namesrv, NASTY):
        # The console keeps lists for some seconds.
        until(lambda: all(SHOWN in site.page(f"{PAGES}/{each}") for each in LISTS))
        for path in (
            f"{PAGES}/overview",
            f"{PAGES}/overview/findings",
            f"{PAGES}/brokers/{NAMED}/0",
            f"{PAGES}/topics",
            f"{PAGES}/topics?search={NAMED}",
            f"{PAGES}/groups",
            f"{PAGES}/letters",
            f"{PAGES}/letters/{NAMED}",
            f"{PAGES}/waiting",
            f"{PAGES}/transactions",
            f"{PAGES}/rights",
            f"{PAGES}/messages?topic=t{NAMED}",
        ):
            assert SHOWN in looked_at(site, path), path
        for path in (
            f"{PAGES}/topics/t{NAMED}",
            f"{PAGES}/groups/{NAMED}",
            f"{PAGES}/groups/{NAMED}/member?clientId={NAMED}",
        ):  # it refuses what they ask for
            assert SHOWN in looked_at(site, path, 409), path
        looked_at(site, f"{PAGES}/alarms")


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_broker_refuses_with_it(site: Site, gantry: GantryCluster, language: str) -> None:
    """What it says then stands in findings, beside its name and above lists."""
    site.headers["accept_language"] = language
    with rogue_broker(gantry.namesrv, NASTY, tells=False):
        until(lambda: SHOWN in site.page(f"{PAGES}/overview"))
        assert SHOWN in looked_at(site, f"{PAGES}/overview/findings")
        until(lambda: SHOWN in looked_at(site, f"{PAGES}/topics"))
        until(lambda: SHOWN in looked_at(site, f"{PAGES}/groups"))
        assert SHOWN in looked_at(site, f"{PAGES}/brokers/{NAMED}/0", 409)


def test_nobody_is_there_by_such_a_name(site: Site) -> None:
    """Errors repeat what was asked for, as text."""
    for path in (
        f"groups/{NAMED}",
        f"groups/{NAMED}/member?clientId={NAMED}",
        f"brokers/{NAMED}/0",
        f"topics/{NAMED}",
        f"jobs/{NAMED}",
        f"rights/users/{NAMED}",
        NAMED,
    ):
        assert SHOWN in looked_at(site, f"{PAGES}/{path}", 400, 404), path
    assert SHOWN in looked_at(site, f"/c/{NAMED}/overview", 404)


def test_a_consumer_gives_it_as_its_reason(site: Site, gantry: GantryCluster) -> None:
    """Why a letter died stands in causes, lists, on its page and in its history."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))

    async def give_up() -> None:
        async with Consumer(gantry.namesrv, group="billing", start="first") as consumer:
            consumer.subscribe("orders")
            await (await anext(consumer)).dead(reason=NASTY)

    asyncio.run(give_up())
    letters = f"/clusters/{NAME}/groups/billing/dead-letters"

    def found() -> list[str]:
        reply = site.call("GET", letters)
        rows = reply.json()["letters"] if reply.status == 200 else []
        return [each["deadId"] for each in rows]

    (letter,) = until(found)
    for path in (
        f"{PAGES}/letters/billing",
        f"{PAGES}/letters/billing/{letter}",
        f"{PAGES}/message-history/{sent.msg_id}?topic=orders",
    ):
        assert SHOWN in looked_at(site, path), path
