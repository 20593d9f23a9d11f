"""The pages of topics: what they show, and what their forms do."""

import re
from collections.abc import Iterator

import pytest
from consolekit import NAME, Site, console
from consumekit import send

from gantrymq.testing.threaded import GantryCluster

TOPICS = f"/clusters/{NAME}/topics"
PAGE = f"/c/{NAME}/topics"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def test_the_list_is_searched_and_paged(site: Site) -> None:
    """The list shows what matches, a part at a time, and links to the next part."""
    for name in ("orders-a", "orders-b", "stock"):
        site.api("POST", TOPICS, topic=name)

    first = site.page(f"{PAGE}?search=orders&limit=1")
    second = site.page(f"{PAGE}?search=orders&limit=1&offset=1")

    assert "orders-a" in first
    assert "orders-b" not in first
    assert 'rel="next" href="?search=orders&amp;limit=1&amp;offset=1"' in first
    assert "orders-b" in second
    assert "stock" not in first + second


def test_a_form_makes_a_topic(site: Site) -> None:
    """The form of a new topic makes it, with attributes a line each, on the chosen broker."""
    said = site.act(
        f"/c/{NAME}/new-topic", topic="orders", readQueues="2", writeQueues="2", permission="rw",
        messageType="DELAY", order="true", brokers="broker-a", attributes="cleanup.policy=DELETE\n",
    )  # fmt: skip
    page = site.page(f"{PAGE}/orders")

    assert (200, True) == (said.status, "topic orders is on broker-a" in said.text)
    assert "changed" == said.headers["hx-trigger"]
    assert "cleanup.policy=DELETE" in page
    assert "message.type=DELAY" in page
    assert site.page(f"/c/{NAME}/new-topic")


def test_forms_of_a_topic(site: Site, gantry: GantryCluster) -> None:
    """A message is sent, settings are changed, a shrink begins, and the topic is deleted."""
    site.api("POST", TOPICS, topic="orders", readQueues=4, writeQueues=4)
    send(gantry.namesrv, "orders", 16)
    page = f"{PAGE}/orders"

    sent = site.act(f"{page}/send", body="x", keys="a b", properties="region=north\nsize=3")
    wrong = site.act(f"{page}/send", body="x", properties="region")
    changed = site.act(f"{page}/change", permission="r", order="true")
    plan = site.page(f"{page}/shrink?queues=2")
    begun = site.act(f"{page}/shrink", queues="2")
    job = re.search(rf'href="(/c/{NAME}/jobs/[^"]+)"', site.page(page))
    assert job is not None
    running = site.page(job[1])
    stopped = site.act(f"{job[1]}/stop")
    loss = site.page(f"{page}/deletion")
    refused = site.act(f"{page}/delete", confirm="order")
    deleted = site.act(f"{page}/delete", confirm="orders")

    assert (200, 200, 200, 200, 200) == tuple(
        each.status for each in (sent, changed, begun, stopped, deleted)
    )
    assert (400, 400) == (wrong.status, refused.status)
    assert "is not NAME=VALUE" in wrong.text
    assert "waits until these are read: nobody reads it: " in plan
    assert "waiting 35 s for producers to notice" in running
    assert "17 messages" in loss
    assert 404 == site.ask("GET", page).status


def test_a_spread_is_planned_and_begun(site: Site) -> None:
    """The forms of a spread say why nothing can be moved for a group that never read the topic."""
    site.api("POST", TOPICS, topic="orders")
    wanted = "group=billing&to=orders-wide&queues=3&rate=100"

    plan = site.ask("GET", f"{PAGE}/orders/spread?{wanted}")
    begun = site.act(f"{PAGE}/orders/spread", group="billing", to="orders-wide", queues="3")

    assert (409, 409) == (plan.status, begun.status)
    assert "has never read" in plan.text
    assert "has never read" in begun.text


def test_names_from_an_address_are_shown_as_text(site: Site) -> None:
    """A search with markup is shown as it was typed and runs nothing."""
    page = site.page(f"{PAGE}?search=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    missing = site.ask("GET", f"{PAGE}/%3Cscript%3E")

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert 404 == missing.status
    assert "<script>'" not in missing.text


def test_readers_have_no_forms(gantry: GantryCluster) -> None:
    """A console for reading shows topics without forms, and refuses what forms would send."""
    gantry.create_topic("orders")
    with console(gantry, is_read_only=True) as site:
        page = site.page(f"{PAGE}/orders")
        refused = site.act(f"{PAGE}/orders/delete", confirm="orders")

    assert "<form" not in page
    assert 403 == refused.status
