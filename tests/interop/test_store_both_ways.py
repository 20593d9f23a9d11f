"""One store, opened in turn by RocketMQ's broker and by ours."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toolchain
from clients import JavaClient, Line
from expect import bodies
from real import OurServers, RealCluster

from gantrymq import sync
from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

pytestmark = pytest.mark.timeout(400)

QUEUES = 4
EACH = 20
BATCH = 5
OURS = "ours"
KEEPS_ATTRIBUTES = "5.3.3"
ATTRIBUTES = {"message.type": "FIFO", "reserve.time": "3600000"}


class Story:
    """One store and what was put into it, however many brokers have had it."""

    def __init__(self, store: Path) -> None:
        self.store = store
        # The port is part of each message id, so every broker of this story has the same.
        self.port = free_port("127.0.0.1", OTHER_PORTS)
        self.java = JavaClient("4.9.8")
        self.topic = "StoryTopic"
        self.sent: list[Line] = []
        self.expected: list[str] = []
        self.depth = [0] * QUEUES

    @contextlib.contextmanager
    def opened_by(self, who: str, *, crash: bool = False) -> Iterator[str]:
        """A broker over the store: ours, or RocketMQ's of a release; yields its name server."""
        servers: OurServers | RealCluster = (
            OurServers(store=self.store, broker_port=self.port)
            if who == OURS
            else RealCluster(who, store=self.store, broker_port=self.port)
        )
        with servers as cluster:
            yield cluster.namesrv
            if crash:
                cluster.kill_broker()

    def ask(self, verb: str, namesrv: str, **arguments: Any) -> Any:
        return self.java.run(verb, namesrv=namesrv, topic=self.topic, **arguments)

    def write(self, namesrv: str, part: str) -> None:
        """Ordinary, compressed and batched messages; their offsets follow what is there."""
        self.ask("create-topic", namesrv, queues=QUEUES)
        sent = self.ask(
            "send-sync", namesrv, count=EACH, shards=QUEUES, body=part, keys=f"{part}-k", tags=["a"]
        ).sent
        sent += self.ask("send-sync", namesrv, count=1, body=f"{part}big", size=100_000).sent
        for line in sent:
            assert line["queueOffset"] == self.depth[line["queueId"]]
            self.depth[line["queueId"]] += 1
        (batch,) = self.ask("send-batch", namesrv, count=BATCH, body=f"{part}batch").sent
        assert batch["queueOffset"] == self.depth[batch["queueId"]]
        self.depth[batch["queueId"]] += BATCH
        self.sent += sent
        self.expected += [f"{part}-{index % QUEUES}-{index}" for index in range(EACH)]
        self.expected += [f"{part}big-0".ljust(100_000, "."), *bodies(BATCH, f"{part}batch")]

    def check(self, namesrv: str, group: str) -> None:
        """Everything written so far, by whomever, is found in every way there is."""
        status = self.ask("topic-status", namesrv).value
        assert [status[str(queue)]["maxOffset"] for queue in range(QUEUES)] == self.depth
        assert [status[str(queue)]["minOffset"] for queue in range(QUEUES)] == [0] * QUEUES

        got = self.ask("consume-concurrently", namesrv, group=group, expected=len(self.expected))
        assert sorted(got.bodies) == sorted(self.expected)
        assert {line["offsetMsgId"] for line in self.sent} <= {
            line["offsetMsgId"] for line in got.messages
        }

        for line in (self.sent[0], self.sent[-2]):
            body = next(m["body"] for m in got.messages if m["msgId"] == line["msgId"])
            seen = self.ask("view-message", namesrv, id=line["offsetMsgId"]).value
            assert (seen["body"], seen["msgId"]) == (body, line["msgId"])
            key = next(m["keys"] for m in got.messages if m["msgId"] == line["msgId"])
            found = self.ask("query-by-key", namesrv, key=key).value
            assert [message["msgId"] for message in found] == [line["msgId"]]

    def check_progress(self, namesrv: str, group: str, depth: list[int]) -> None:
        """A group that was at these offsets under another broker still is."""
        rows = self.ask("consume-stats", namesrv, group=group).value
        found = {
            row["queueId"]: row["consumerOffset"] for row in rows if row["topic"] == self.topic
        }
        assert [found[queue] for queue in range(QUEUES)] == depth


def set_attributes(namesrv: str) -> None:
    with sync.Admin(namesrv) as admin:
        admin.create_topic("StoryTyped", queues=1, attributes=ATTRIBUTES)


def attributes(namesrv: str) -> dict[str, str]:
    with sync.Admin(namesrv) as admin:
        (address,) = admin.masters().values()
        return admin.topic_configs(address)["StoryTyped"].attributes


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "store")


@pytest.mark.parametrize("version", toolchain.JAVA_SERVERS)
@pytest.mark.parametrize("ours_first", [False, True], ids=["theirs-first", "ours-first"])
def test_a_store_changes_hands_and_back(story: Story, version: str, ours_first: bool) -> None:
    """
    Messages, ids, keys, offsets, progress and attributes survive two changes of the broker.
    """
    first, second = (OURS, version) if ours_first else (version, OURS)
    with story.opened_by(first) as namesrv:
        story.write(namesrv, "one")
        story.check(namesrv, "GroupOne")
        progress = list(story.depth)
        set_attributes(namesrv)
    with story.opened_by(second) as namesrv:
        if version == KEEPS_ATTRIBUTES:
            assert ATTRIBUTES == attributes(namesrv)
        story.check_progress(namesrv, "GroupOne", progress)
        story.write(namesrv, "two")
        story.check(namesrv, "GroupTwo")
    with story.opened_by(first) as namesrv:
        story.check_progress(namesrv, "GroupOne", progress)
        story.write(namesrv, "three")
        story.check(namesrv, "GroupThree")


@pytest.mark.parametrize("version", toolchain.JAVA_SERVERS)
@pytest.mark.parametrize("ours_dies", [False, True], ids=["theirs-dies", "ours-dies"])
def test_a_store_is_recovered_by_the_other(story: Story, version: str, ours_dies: bool) -> None:
    """
    A broker is killed; the other one finds every message that was acknowledged.
    """
    first, second = (OURS, version) if ours_dies else (version, OURS)
    with story.opened_by(first, crash=True) as namesrv:
        story.write(namesrv, "one")
    with story.opened_by(second) as namesrv:
        story.check(namesrv, "GroupOne")
        story.write(namesrv, "two")
        story.check(namesrv, "GroupTwo")
