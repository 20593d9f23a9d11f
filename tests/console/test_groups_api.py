"""Groups through the API: lists, one group, its members and lag, resets, settings, deletion."""

from collections.abc import Iterator
from typing import Any

import pytest
from consolekit import NAME, Site, console, until
from consumekit import member, read, send

from gantrymq.testing.threaded import GantryCluster

TOPICS, GROUPS = f"/clusters/{NAME}/topics", f"/clusters/{NAME}/groups"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def group_with(site: Site, field: str) -> Any:
    """The group `billing`, if it is there and has any of these."""
    reply = site.call("GET", f"{GROUPS}/billing")
    return reply.json() if reply.status == 200 and reply.json()[field] else None


def test_groups_are_listed_by_lag(site: Site, gantry: GantryCluster) -> None:
    """The list has the groups of users, the largest lag first, and finds words of names."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)
    send(gantry.namesrv, "orders", 2)
    read(gantry.namesrv, "orders", "billing", 2)
    send(gantry.namesrv, "orders", 4)
    site.api("POST", GROUPS, group="archive")
    site.api("POST", GROUPS, group="audit")

    found = site.api("GET", GROUPS)
    part = site.api("GET", GROUPS, search="A", sort="name", limit=1, offset=1)
    every = site.api("GET", GROUPS, kind="all")

    assert [("billing", 4, 0), ("archive", None, 0), ("audit", None, 0)] == [
        (each["group"], each["lag"], each["members"]) for each in found["groups"]
    ]
    assert (3, 4) == (found["count"], found["lag"])
    assert (["audit"], 2, 1) == (
        [each["group"] for each in part["groups"]], part["count"], part["offset"],
    )  # fmt: skip
    assert every["count"] == found["counts"]["own"] + found["counts"]["system"]


def test_a_group_shows_members_and_subscriptions(site: Site, gantry: GantryCluster) -> None:
    """A group has its members with address and version, and what they are subscribed to."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)

    with member(gantry.namesrv, "billing", "orders", tag="paid"):
        found = until(lambda: group_with(site, "members"))
        listed = site.api("GET", GROUPS)["groups"]
        client = found["members"][0]["clientId"]
        info = site.api("GET", f"{GROUPS}/billing/member", clientId=client, stacks=True)
        lag = until(
            lambda: [
                each
                for each in site.api("GET", f"{GROUPS}/billing/lag")["queues"]
                if each["holders"]
            ]
        )

    assert ("CLUSTERING", [], True) == (
        found["messageModel"], found["conflicts"], found["mayConsume"],
    )  # fmt: skip
    assert found["members"][0]["address"].startswith("127.0.0.1:")
    assert found["members"][0]["versionName"].startswith("V")
    assert ("orders", "paid", False) in [
        (each["topic"], each["expression"], each["inConflict"]) for each in found["subscriptions"]
    ]
    assert [1] == [each["members"] for each in listed if each["group"] == "billing"]
    assert "paid" == info["subscriptions"]["orders"]
    assert info["properties"]
    assert [client] == lag[0]["holders"]


def test_conflicts_are_marked(site: Site, gantry: GantryCluster) -> None:
    """Members that differ in a subscription are named with what each wants."""
    site.api("POST", TOPICS, topic="orders")
    with (
        member(gantry.namesrv, "billing", "orders", tag="paid"),
        member(gantry.namesrv, "billing", "orders", tag="new"),
    ):
        found = until(lambda: group_with(site, "conflicts"))
        listed = site.api("GET", GROUPS)["groups"]

    conflict = found["conflicts"][0]
    assert {"paid", "new"} == {conflict["olderExpression"], conflict["newerExpression"]}
    assert any(each["inConflict"] for each in found["subscriptions"])
    assert [1] == [each["conflicts"] for each in listed if each["group"] == "billing"]


def test_an_unknown_group_or_member_is_not_there(site: Site) -> None:
    """A group or member that does not exist is an error, not an empty page."""
    site.api("POST", GROUPS, group="billing")

    for path in ("", "/lag", "/member?clientId=x"):
        assert 404 == site.call("GET", f"{GROUPS}/nothing{path}").status
    gone = site.call("GET", f"{GROUPS}/billing/member", clientId="x")

    assert 409 == gone.status
    assert "no member 'x'" in gone.json()["error"]


def test_lag_by_queue(site: Site, gantry: GantryCluster) -> None:
    """The lag of a group is told by queue, with advice."""
    site.api("POST", TOPICS, topic="orders", readQueues=2, writeQueues=2)
    send(gantry.namesrv, "orders", 4)
    read(gantry.namesrv, "orders", "billing", 4)
    send(gantry.namesrv, "orders", 6)

    found = site.api("GET", f"{GROUPS}/billing/lag")

    assert (6, 0, 0) == (found["lag"], found["retry"], found["dead"])
    assert [3, 3] == [each["lag"] for each in found["queues"] if each["topic"] == "orders"]
    assert {"no member runs"} == {each["trouble"] for each in found["queues"] if each["lag"]}
    assert found["oldestMs"]
    assert found["advice"]


def test_a_reset_is_previewed_and_done(site: Site, gantry: GantryCluster) -> None:
    """A preview changes nothing and says what the reset then does; forwards needs force."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)
    send(gantry.namesrv, "orders", 5)
    read(gantry.namesrv, "orders", "billing", 5)
    url, wanted = f"{GROUPS}/billing/reset", {"topic": "orders", "to": "2"}

    preview = site.api("GET", url, **wanted)
    again = site.api("GET", url, **wanted)
    done = site.api("POST", url, **wanted, queue="broker-a:0")
    lag = site.api("GET", f"{GROUPS}/billing/lag")["lag"]
    forwards = site.api("GET", url, topic="orders", to="last")
    forced = site.api("POST", url, topic="orders", to="last", force=True)

    assert "1 of 1 queue would be moved: 3 messages again, 0 skipped" == preview["text"]
    assert preview == again
    assert "1 of 1 queue moved: 3 messages again, 0 skipped" == done["text"]
    assert 3 == lag
    assert [2] == [each["new"] for each in forwards["queues"]]
    assert "1 of 1 queue moved: 0 messages again, 3 skipped" == forced["text"]


@pytest.mark.parametrize(
    "wanted, status",
    [
        ({"topic": "orders", "to": "someday"}, 400),
        ({"topic": "orders", "to": "first", "queue": "broker-a"}, 400),
        ({"topic": "nothing", "to": "first"}, 404),
        ({"topic": "orders", "to": "2026-01-01", "zone": "Mars/Base"}, 400),
    ],
)
def test_a_reset_that_makes_no_sense(
    site: Site, gantry: GantryCluster, wanted: dict[str, str], status: int
) -> None:
    """A place, a queue, a topic or a zone that is none is refused before anything moves."""
    site.api("POST", TOPICS, topic="orders")
    site.api("POST", GROUPS, group="billing")

    assert status == site.call("GET", f"{GROUPS}/billing/reset", **wanted).status
    assert status == site.call("POST", f"{GROUPS}/billing/reset", **wanted).status


def test_settings_are_changed(site: Site) -> None:
    """Every setting of a group can be changed; what is left out stays."""
    made = site.api("POST", GROUPS, group="billing", retryMaxTimes=3)
    twice = site.call("POST", GROUPS, group="billing")
    nothing = site.call("PUT", f"{GROUPS}/billing")
    wanted = {
        "consumeEnable": True, "consumeFromMinEnable": False, "consumeBroadcastEnable": False,
        "consumeMessageOrderly": True, "retryQueueNums": 2, "brokerId": 1,
        "whichBrokerWhenConsumeSlowly": 2, "notifyConsumerIdsChangedEnable": False,
    }  # fmt: skip

    changed = site.api("PUT", f"{GROUPS}/billing", **wanted)
    shown = site.api("GET", f"{GROUPS}/billing")["settings"]

    assert [3] == [each["retryMaxTimes"] for each in made["settings"]]
    assert (400, 400) == (twice.status, nothing.status)
    assert [{"broker": "broker-a", "retryMaxTimes": 3, **wanted}] == shown == changed["settings"]


def test_a_group_is_paused_and_resumed(site: Site) -> None:
    """A paused group may not consume, and the answer warns of what that means."""
    site.api("POST", GROUPS, group="billing")

    paused = site.api("POST", f"{GROUPS}/billing/pause")
    while_paused = site.api("GET", f"{GROUPS}/billing")["mayConsume"]
    resumed = site.api("POST", f"{GROUPS}/billing/resume")

    assert "group billing is paused on broker-a" == paused["text"]
    assert ["members keep running and ask in vain, until the group is resumed"] == paused[
        "warnings"
    ]
    assert (False, "group billing is resumed on broker-a") == (while_paused, resumed["text"])


def test_progress_is_cloned(site: Site, gantry: GantryCluster) -> None:
    """Another group gets the progress of this one, and must exist."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)
    send(gantry.namesrv, "orders", 5)
    read(gantry.namesrv, "orders", "billing", 5)
    send(gantry.namesrv, "orders", 2)
    site.api("POST", GROUPS, group="audit")

    done = site.api("POST", f"{GROUPS}/billing/clone", topic="orders", target="audit")
    missing = site.call("POST", f"{GROUPS}/billing/clone", topic="orders", target="nobody")

    assert "audit has the progress of billing on orders" == done["text"]
    assert 404 == missing.status
    assert 2 == site.api("GET", f"{GROUPS}/audit/lag")["lag"]


def test_a_group_is_deleted_by_its_name(site: Site, gantry: GantryCluster) -> None:
    """Only who types the name deletes the group, and not while members run unless forced."""
    site.api("POST", TOPICS, topic="orders")
    mistyped = site.call("DELETE", f"{GROUPS}/billing", confirm="bill")
    with member(gantry.namesrv, "billing", "orders"):
        until(lambda: group_with(site, "members"))
        running = site.call("DELETE", f"{GROUPS}/billing", confirm="billing")

    deleted = site.api("DELETE", f"{GROUPS}/billing", confirm="billing", force=True)

    assert (400, 409) == (mistyped.status, running.status)
    assert "1 member of billing still runs" in running.json()["error"]
    assert "group billing is deleted" == deleted["text"]
    assert 404 == site.call("GET", f"{GROUPS}/billing").status
