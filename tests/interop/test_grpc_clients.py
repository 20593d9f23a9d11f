"""The official clients for gRPC through Apache's own proxy, unchanged, in front of the cluster.

The proxy asks brokers for the type of a topic and refuses messages of another one; it forwards
what brokers ask about transactions to the client that sent them.
"""

import time
from itertools import groupby

import pytest
from clients import Client, Line, Lines
from expect import by_shard
from grpc_stories import CLIENTS, EXPECTED, FAILS_ONCE, GrpcStories, groups_of

from gantrymq import sync
from gantrymq.model import dead_topic

pytestmark = pytest.mark.timeout(240)

DEAD_SECONDS_MAX = 40


@pytest.fixture(params=CLIENTS, ids=repr)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture
def story(grpc_stories: GrpcStories, client: Client) -> Lines:
    return grpc_stories.of(client)


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
    story: Lines, client: Client, grpc_stories: GrpcStories
) -> None:
    """
    After the group's retries the proxy sends it to the dead letters.
    """
    letters = dead_topic(groups_of(client)["dead"])
    end = time.monotonic() + DEAD_SECONDS_MAX
    with sync.Admin(grpc_stories.namesrv) as admin:
        while letters not in admin.topics() and time.monotonic() < end:
            time.sleep(0.2)
        offsets = admin.topic_stats(letters)

    assert 1 == sum(row.max_offset for row in offsets.values())
