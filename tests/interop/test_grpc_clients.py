"""The official clients for gRPC through Apache's own proxy, unchanged, in front of the cluster.

The proxy asks brokers for the type of a topic and refuses messages of another one; it forwards
what brokers ask about transactions to the client that sent them.
"""

import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from clients import Client, GrpcJavaClient, GrpcPythonClient, Line, Lines
from clusters import AGAINST, Clusters
from expect import by_shard
from proxy import Proxy

from gantrymq import sync
from gantrymq.model import GroupConfig, dead_topic

pytestmark = pytest.mark.timeout(240)

CLIENTS: list[Client] = [GrpcJavaClient(), GrpcPythonClient()]
TYPES = {"normal": "NORMAL", "dead": "NORMAL", "fifo": "FIFO", "delay": "DELAY",
         "transaction": "TRANSACTION"}  # fmt: skip
EXPECTED = {
    "normal": [f"normal-{index}" for index in range(6)],
    "push": [f"normal-{index}" for index in range(0, 6, 2)],
    "fifo": [f"fifo-{index % 2}-{index}" for index in range(8)],
    "delay": ["delay-0"],
    "transaction": ["transaction-commit", "transaction-unknown"],
}
FAILS_ONCE = "normal-2"
DEAD_SECONDS_MAX = 40
Stories = dict[str, Lines]


def _groups(client: Client) -> dict[str, str]:
    return {kind: f"{client.name}_{kind}_group" for kind in (*EXPECTED, "dead")}


@pytest.fixture(scope="module")
def namesrv_of_proxy(clusters: Clusters) -> str:
    return clusters.of(AGAINST).namesrv


@pytest.fixture(scope="module")
def stories(namesrv_of_proxy: str) -> Iterator[Stories]:
    """Both clients at once, each with its own topics and groups: what they printed."""
    topics = {
        client: {kind: f"{client.name}_{kind}" for kind in TYPES} for client in CLIENTS
    }  # fmt: skip
    with sync.Admin(namesrv_of_proxy) as admin:
        for client in CLIENTS:
            for kind, name in topics[client].items():
                admin.create_topic(name, queues=2, attributes={"message.type": TYPES[kind]})
            groups = _groups(client)
            admin.update_group(GroupConfig(group_name=groups["fifo"], consume_message_orderly=True))
            admin.update_group(GroupConfig(group_name=groups["dead"], retry_max_times=1))
    told: dict[str, Any] = {
        "expected": EXPECTED, "fails": [FAILS_ONCE], "delayMs": 3000, "lingerMs": 8000,
        "timeout": 60,
    }  # fmt: skip
    with Proxy(namesrv_of_proxy) as proxy:
        running = {
            client.name: client.start(
                "story",
                endpoints=proxy.endpoints,
                topics=topics[client],
                groups=_groups(client),
                **told,
            )
            for client in CLIENTS
        }
        found: Stories = {}
        for name, story in running.items():
            with story:
                found[name] = story.finish()
        yield found


@pytest.fixture(params=CLIENTS, ids=repr)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture
def story(stories: Stories, client: Client) -> Lines:
    return stories[client.name]


def _came(story: Lines, kind: str) -> list[Line]:
    return [line for line in story.messages if line["kind"] == kind]


def test_simple_and_push_consumers_get_normal_messages(story: Lines) -> None:
    """
    With tags, keys and properties; a simple consumer everything, a push consumer its tag.
    """
    simple, push = _came(story, "normal"), _came(story, "push")

    assert EXPECTED["normal"] == sorted(line["body"] for line in simple)
    assert {(f"k{i}",): "ab"[i % 2] for i in range(6)} == {
        tuple(line["keys"]): line["tag"] for line in simple
    }
    assert {"blue"} == {line["properties"]["color"] for line in simple}
    assert EXPECTED["push"] == sorted(line["body"] for line in push)


def test_a_failed_message_comes_again(story: Lines) -> None:
    """
    Its second delivery is counted as such.
    """
    failed = [line for line in story.of("failed") if line["kind"] == "push"]
    again = [line for line in _came(story, "push") if line["body"] == FAILS_ONCE]

    assert [(FAILS_ONCE, 1)] == [(line["body"], line["attempt"]) for line in failed]
    assert [2] == [line["attempt"] for line in again]


def test_fifo_messages_come_in_order(story: Lines) -> None:
    """
    Within their message group, each of them once.
    """
    came = _came(story, "fifo")

    assert {"0": [0, 2, 4, 6], "1": [1, 3, 5, 7]} == by_shard(came)
    assert {"shard0", "shard1"} == {line["messageGroup"] for line in came}


def test_delayed_messages_come_when_they_are_due(story: Lines) -> None:
    """
    Not earlier; and one that was recalled does not come.
    """
    (due,) = [line["due"] for line in story.sent if line["body"] == "delay-0"]
    (came,) = _came(story, "delay")

    assert "delay-0" == came["body"]
    assert 0 <= came["at"] - due < 10_000


def test_transactions_are_decided_and_checked_back(story: Lines) -> None:
    """
    Committed ones come, rolled back ones do not, and about the others the producer is asked.
    """
    asked = [body for body, _ in groupby(line["body"] for line in story.of("checked"))]
    came = [line["body"] for line in _came(story, "transaction")]

    assert ["transaction-unknown"] == asked
    assert EXPECTED["transaction"] == sorted(came)


def test_a_topic_takes_its_own_type_of_messages_only(story: Lines) -> None:
    """
    Clients learn the type from the broker, through the proxy.
    """
    (refused,) = story.of("refused")

    assert "FIFO" in refused["error"]
    assert "NORMAL" in refused["error"]


def test_what_fails_too_often_is_a_dead_letter(
    story: Lines, client: Client, namesrv_of_proxy: str
) -> None:
    """
    After the group's retries the proxy sends it to the dead letters.
    """
    letters = dead_topic(_groups(client)["dead"])
    end = time.monotonic() + DEAD_SECONDS_MAX
    with sync.Admin(namesrv_of_proxy) as admin:
        while letters not in admin.topics() and time.monotonic() < end:
            time.sleep(0.2)
        offsets = admin.topic_stats(letters)

    assert 1 == sum(row.max_offset for row in offsets.values())
