"""Topics through the API: lists, one topic, changes, messages, fewer and more queues."""

from collections.abc import Iterator

import pytest
from consolekit import NAME, Site, console, until
from consumekit import read, send

from gantrymq.client.admin.topics import shrink
from gantrymq.testing.threaded import GantryCluster

TOPICS = f"/clusters/{NAME}/topics"


@pytest.fixture
def site(gantry: GantryCluster) -> Iterator[Site]:
    with console(gantry) as site:
        yield site


def ended(site: Site, job: str) -> dict[str, object]:
    """The job when it has ended."""

    def found() -> dict[str, object]:
        view: dict[str, object] = site.api("GET", f"/clusters/{NAME}/jobs/{job}")
        return view if view["state"] != "running" else {}

    return until(found)


def test_topics_are_listed_by_kind_and_name(site: Site) -> None:
    """A list has the topics of users, counts those of each kind, and finds words of names."""
    for name in ("orders-paid", "orders-new", "stock"):
        site.api("POST", TOPICS, topic=name, readQueues=2, writeQueues=2)
    site.api("POST", TOPICS, topic="steps", messageType="fifo", order=True)

    own = site.api("GET", TOPICS)
    found = site.api("GET", TOPICS, search="NEW orders")
    fifo = site.api("GET", TOPICS, kind="fifo")
    second = site.api("GET", TOPICS, limit=2, offset=2)

    assert ["orders-new", "orders-paid", "steps", "stock"] == [t["topic"] for t in own["topics"]]
    assert own["counts"]["normal"] == 3
    assert own["counts"]["system"] > 0
    assert ["orders-new"] == [each["topic"] for each in found["topics"]]
    assert ["steps"] == [each["topic"] for each in fifo["topics"]]
    assert fifo["topics"][0]["order"]
    assert (["steps", "stock"], 4, 2) == (
        [each["topic"] for each in second["topics"]], second["count"], second["offset"],
    )  # fmt: skip


def test_a_page_beyond_the_end_is_the_last_page(site: Site) -> None:
    """Who was on a page that is gone sees the last one, with the offset where it begins."""
    for name in ("a", "b", "c"):
        site.api("POST", TOPICS, topic=name)

    found = site.api("GET", TOPICS, limit=2, offset=100)

    assert (["c"], 2) == ([each["topic"] for each in found["topics"]], found["offset"])


def test_a_topic_shows_settings_route_and_queues(site: Site, gantry: GantryCluster) -> None:
    """A topic has its settings by broker, the route, and what each queue holds."""
    site.api("POST", TOPICS, topic="orders", readQueues=2, writeQueues=1, permission="rw")
    send(gantry.namesrv, "orders", 3)

    found = site.api("GET", f"{TOPICS}/orders")

    assert ("orders", "normal", 3) == (found["topic"], found["kind"], found["stored"])
    assert [("broker-a", 2, 1, "rw")] == [
        (each["broker"], each["readQueues"], each["writeQueues"], each["permission"])
        for each in found["settings"]
    ]
    assert ["broker-a"] == [each["broker"] for each in found["route"]]
    assert [(0, 0, 3), (1, 0, 0)] == [
        (each["queueId"], each["first"], each["next"]) for each in found["queues"]
    ]


def test_an_unknown_topic_is_not_there(site: Site) -> None:
    """A topic that does not exist is 404, not an empty page."""
    reply = site.call("GET", f"{TOPICS}/nothing")

    assert (404, "there is no topic 'nothing'") == (reply.status, reply.json()["error"])


def test_readers_have_their_lag(site: Site, gantry: GantryCluster) -> None:
    """The groups of a topic are listed with the messages that they have not read."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)
    send(gantry.namesrv, "orders", 2)
    read(gantry.namesrv, "orders", "billing", 2)
    send(gantry.namesrv, "orders", 5)

    found = site.api("GET", f"{TOPICS}/orders/groups")

    assert [{"group": "billing", "lag": 5}] == found["readers"]


def test_a_topic_is_created_once(site: Site, gantry: GantryCluster) -> None:
    """Creating a topic that exists is refused and says so, also one that has just come."""
    assert [] == site.api("GET", TOPICS)["topics"]
    gantry.create_topic("orders", queues=1)

    reply = site.call("POST", TOPICS, topic="orders")

    assert 400 == reply.status
    assert "has topic 'orders' already" in reply.json()["error"]


def test_a_topic_is_changed(site: Site) -> None:
    """What is given is changed, and the rest stays; fewer read queues need force."""
    site.api("POST", TOPICS, topic="orders", readQueues=4, writeQueues=4)

    site.api("PUT", f"{TOPICS}/orders", permission="r", messageType="DELAY")
    refused = site.call("PUT", f"{TOPICS}/orders", readQueues=2)
    forced = site.call("PUT", f"{TOPICS}/orders", readQueues=2, brokers=["broker-a"], force=True)
    nothing = site.call("PUT", f"{TOPICS}/orders")
    settings = site.api("GET", f"{TOPICS}/orders")["settings"]

    assert (409, 200, 400) == (refused.status, forced.status, nothing.status)
    assert [
        {
            "broker": "broker-a", "readQueues": 2, "writeQueues": 4, "permission": "r",
            "order": False, "attributes": {"message.type": "DELAY"},
        }
    ] == settings  # fmt: skip


def test_a_topic_is_deleted_by_its_name(site: Site) -> None:
    """Only who types the name deletes the topic; a topic of the brokers stays."""
    site.api("POST", TOPICS, topic="orders")

    mistyped = site.call("DELETE", f"{TOPICS}/orders", confirm="order")
    of_brokers = site.call("DELETE", f"{TOPICS}/SELF_TEST_TOPIC", confirm="SELF_TEST_TOPIC")
    loss = site.api("GET", f"{TOPICS}/orders/deletion")
    deleted = site.api("DELETE", f"{TOPICS}/orders", confirm="orders")

    assert (400, 409) == (mistyped.status, of_brokers.status)
    assert {"text": "0 messages"} == loss
    assert "topic orders is deleted with 0 messages" == deleted["text"]
    assert 404 == site.call("GET", f"{TOPICS}/orders").status


def test_a_message_is_sent(site: Site) -> None:
    """A message goes to the topic with all its fields; one that cannot be is refused with why."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)

    sent = site.api(
        "POST", f"{TOPICS}/orders/messages", body="paid", tags="new", keys=["k1", "k2"],
        properties={"region": "north"},
    )  # fmt: skip
    raw = site.api("POST", f"{TOPICS}/orders/messages", bodyBase64="AAEC")
    later = site.api("POST", f"{TOPICS}/orders/messages", body="later", delaySeconds=60)
    refused = site.call("POST", f"{TOPICS}/orders/messages", body="x", delayLevel=3, delaySeconds=1)

    assert ("SEND_OK", "broker-a", 0, 0) == (
        sent["status"], sent["broker"], sent["queueId"], sent["offset"],
    )  # fmt: skip
    assert 1 == raw["offset"]
    assert later["recallHandle"]
    assert 400 == refused.status
    assert 2 == site.api("GET", f"{TOPICS}/orders")["stored"]


def test_a_topic_is_shrunk_by_a_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shrink is a job that says its steps; afterwards the topic has fewer queues."""
    monkeypatch.setattr(shrink, "SETTLE_SECONDS", 0.1)
    site.api("POST", TOPICS, topic="orders", readQueues=4, writeQueues=4)

    plan = site.api("GET", f"{TOPICS}/orders/shrink", queues=2)
    job = site.api("POST", f"{TOPICS}/orders/shrink", queues=2)["job"]
    end = ended(site, job)

    assert {"unread": {}, "text": "nothing unread is in the way"} == plan
    assert ("done", "topic orders has 2 queues on each broker") == (end["state"], end["text"])
    assert "broker-a: write queues 4 to 2" in str(end["lines"])
    assert [2] == [s["readQueues"] for s in site.api("GET", f"{TOPICS}/orders")["settings"]]


def test_a_backlog_is_spread_by_a_job(site: Site, gantry: GantryCluster) -> None:
    """A spread moves what a group has not read into a topic with more queues."""
    site.api("POST", TOPICS, topic="orders", readQueues=1, writeQueues=1)
    send(gantry.namesrv, "orders", 1)
    read(gantry.namesrv, "orders", "billing", 1)
    send(gantry.namesrv, "orders", 7)
    wanted = {"group": "billing", "to": "orders-wide", "queues": 3}

    plan = site.api("GET", f"{TOPICS}/orders/spread", **wanted)
    end = ended(site, site.api("POST", f"{TOPICS}/orders/spread", **wanted)["job"])

    assert 7 == plan["waiting"]
    assert "done" == end["state"], end
    assert 7 == site.api("GET", f"{TOPICS}/orders-wide")["stored"]


def test_a_job_can_be_stopped(site: Site) -> None:
    """A job that was stopped ends, and is listed with that; only one runs about a topic."""
    site.api("POST", TOPICS, topic="orders", readQueues=4, writeQueues=4)
    job = site.api("POST", f"{TOPICS}/orders/shrink", queues=2)["job"]

    second = site.call("POST", f"{TOPICS}/orders/shrink", queues=1)
    site.api("DELETE", f"/clusters/{NAME}/jobs/{job}")

    assert 400 == second.status
    assert "a job about topic orders runs already" in second.json()["error"]
    listed = site.api("GET", f"/clusters/{NAME}/jobs", subject="topic orders")["jobs"]
    assert [(job, "stopped")] == [(each["job"], each["state"]) for each in listed]
    assert 404 == site.call("GET", f"/clusters/{NAME}/jobs/none").status
