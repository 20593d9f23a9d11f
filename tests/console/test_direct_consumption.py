"""A stored message is handed to one member of a group, by the API and by the page."""

from collections.abc import Iterator
from typing import Any

import pytest
from consolekit import NAME, Site, console, until
from consumekit import member, send_these

from gantrymq import Message, SendResult
from gantrymq.client.messages.delivery import Delivery
from gantrymq.console.api.direct_consumption import consumption
from gantrymq.testing.threaded import GantryCluster

GROUPS = f"/clusters/{NAME}/groups"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    gantry.create_topic("orders", 1)
    gantry.create_topic("others", 1)
    with console(gantry) as site:
        yield site


def place(result: SendResult) -> str:
    queue = result.queue
    return f"messages/{queue.topic}/{queue.broker_name}/{queue.queue_id}/{result.offset}"


def client_of(site: Site, group: str) -> str:
    """The client id of the only member of a group, once it is connected."""

    def members() -> Any:
        reply = site.call("GET", f"{GROUPS}/{group}")
        return reply.json()["members"] if reply.status == 200 else None

    return str(until(members)[0]["clientId"])


def test_a_member_consumes_a_message_now(site: Site, gantry: GantryCluster) -> None:
    """Whatever it is subscribed to; the group's progress stays, and the trail knows who did it."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))
    seen: list[bytes] = []

    def handle(message: Delivery) -> None:
        seen.append(message.body)

    with member(gantry.namesrv, "billing", "others", handle=handle):
        client = client_of(site, "billing")
        found = site.api(
            "POST", f"/clusters/{NAME}/{place(sent)}/consume", group="billing", clientId=client
        )

    assert [b"order 7"] == seen
    assert ("CR_SUCCESS", True, "") == (found["result"], found["isTaken"], found["remark"])
    assert found["tookMs"] >= 0
    assert f"{client} consumed it after {found['tookMs']} ms: CR_SUCCESS" == found["text"]
    queues = site.api("GET", f"{GROUPS}/billing/lag")["queues"]
    assert "orders" not in {each["topic"] for each in queues}
    entry = site.api("GET", "/audit")["entries"][0]
    assert ("consume_directly", "billing", client) == (
        entry["act"], entry["asked"]["group"], entry["asked"]["clientId"],
    )  # fmt: skip


def test_a_member_that_fails_says_so(site: Site, gantry: GantryCluster) -> None:
    """The answer is a success of the console, and not of the member."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))

    def handle(message: Delivery) -> None:
        raise ValueError("no such customer")

    with member(gantry.namesrv, "billing", "others", handle=handle):
        client = client_of(site, "billing")
        found = site.api(
            "POST", f"/clusters/{NAME}/{place(sent)}/consume", group="billing", clientId=client
        )

    assert ("CR_LATER", False) == (found["result"], found["isTaken"])
    assert "did not take it" in found["text"]


def test_who_or_what_is_not_there_is_said(site: Site, gantry: GantryCluster) -> None:
    """A group, a member and a message that nobody knows; and an empty name."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))
    site.api("POST", GROUPS, group="billing")
    base = f"/clusters/{NAME}"

    def status(at: str, **asked: str) -> int:
        return site.call("POST", f"{base}/{at}/consume", **asked).status

    assert 404 == status(place(sent), group="nothing", clientId="x")
    assert 409 == status(place(sent), group="billing", clientId="x")
    assert 404 == status("messages/orders/broker-a/0/99", group="billing", clientId="x")
    assert 400 == status(place(sent), group="", clientId="x")
    assert 400 == status(place(sent), group="billing")


def test_readers_may_not(gantry: GantryCluster) -> None:
    """Handing out a message is a change, and its form is not there for them."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))
    with console(gantry, is_read_only=True) as site:
        at = f"/clusters/{NAME}/{place(sent)}/consume"
        assert 403 == site.call("POST", at, group="billing", clientId="x").status
        assert "/consumers" not in site.page(f"/c/{NAME}/{place(sent)}")


def test_the_page_offers_groups_then_members(site: Site, gantry: GantryCluster) -> None:
    """First those that read the topic, then the members of the chosen one; each step has a form."""
    (sent,) = send_these(gantry.namesrv, Message("orders", b"order 7"))
    page = f"/c/{NAME}/{place(sent)}"
    with member(gantry.namesrv, "billing", "orders"):
        client = client_of(site, "billing")
        assert f"{page}/consumers?origin=orders" in site.page(page)
        groups = site.page(f"{page}/consumers?origin=orders")
        members = site.page(f"{page}/consumers?origin=orders&group=billing")
        reply = site.act(f"{page}/consume", group="billing", clientId=client)

    assert '<option value="billing">' in groups
    assert "<select" not in groups
    assert f'<option value="{client}">' in members
    assert (200, True) == (reply.status, f"{client} consumed it" in reply.text)
    gone = site.page(f"{page}/consumers?origin=orders&group=nothing")
    assert "there is no group" in gone


def test_what_a_foreign_member_answers_is_read_with_care() -> None:
    """Fields that are missing or odd, and an exception that quotes what rules mask."""
    odd = consumption("c", {"spentTimeMills": "soon", "remark": 7}, str.upper)
    java = {"consumeResult": "CR_THROW_EXCEPTION", "spentTimeMills": 3, "remark": "card 4111"}
    masked = consumption("c", java, lambda text: text.replace("4111", "***"))

    assert ("unknown", None, "", False) == (odd.result, odd.took_ms, odd.remark, odd.is_taken)
    assert ("CR_THROW_EXCEPTION", 3, "card ***") == (masked.result, masked.took_ms, masked.remark)
