"""A raft group of ours for those who know nothing of it: clients, name servers, admin tools."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from clients import Client, GoClient, JavaClient, Line, NodeClient, Running
from raft_group import GROUP, MEMBERS, OURS, RaftGroup, until
from wire import Connection

from gantrymq import sync

pytestmark = pytest.mark.timeout(240)

CLIENTS: list[Client] = [JavaClient("4.9.8"), JavaClient("5.3.3"), GoClient(), NodeClient()]
NAME_SERVERS = ["4.9.7", "5.3.3"]
COUNT, BEFORE = 120, 20
"""Messages of each producer, and how many each consumer has when the leader is killed."""
PAUSE_MS = 100
STORY_SECONDS_MAX = 100
LEARNT_SECONDS_MAX = 1.0
REGISTER = 103


@dataclass
class Pair:
    """A producer and a consumer of one client library, on a topic of their own."""

    client: Client
    topic: str
    group: str
    consumer: Running
    producer: Running
    bodies: list[str] = field(default_factory=list)
    sent: list[Line] = field(default_factory=list)
    unsent: list[Line] = field(default_factory=list)

    def read_until(self, count: int) -> None:
        """Until so many different messages have come."""
        while len(set(self.bodies)) < count:
            self.bodies.append(self.consumer.until("message")["body"])


@dataclass(frozen=True)
class Survivors:
    """What clients did while the leader was lost."""

    pairs: dict[str, Pair]
    lag: dict[str, int]
    """What a group has not committed, as the new leader knows it."""


def _start(client: Client, namesrv: str, stack: ExitStack) -> Pair:
    label = client.name.replace(".", "-")
    topic, group = f"Through_{label}", f"through_{label}"
    ask = {"namesrv": namesrv, "topic": topic, "timeout": STORY_SECONDS_MAX}
    consumer = client.start(
        "consume-concurrently", group=group, **{"from": "first"}, expected=10 * COUNT, **ask
    )
    stack.callback(consumer.kill)
    producer = client.start(
        "send-sync", producer=f"{group}_p", body=label, count=COUNT, pauseMs=PAUSE_MS,
        againMs=200, **ask,
    )  # fmt: skip
    stack.callback(producer.kill)
    return Pair(client, topic, group, consumer, producer)


@pytest.fixture(scope="module")
def group() -> Iterator[RaftGroup]:
    with RaftGroup(OURS) as running:
        yield running


@pytest.fixture(scope="module")
def survivors(group: RaftGroup) -> Survivors:
    """All clients at once: each waits up to 30 s for its next look at the route."""
    with ExitStack() as stack:
        with sync.Admin(group.namesrv) as admin:
            for client in CLIENTS:
                admin.create_topic(f"Through_{client.name.replace('.', '-')}", queues=4)
        pairs = [_start(client, group.namesrv, stack) for client in CLIENTS]
        for pair in pairs:
            pair.read_until(BEFORE)
        leader = group.leader
        assert leader is not None
        group.kill(leader)
        for pair in pairs:
            lines = pair.producer.finish()
            pair.sent, pair.unsent = lines.sent, lines.of("unsent")
        for pair in pairs:
            pair.read_until(COUNT)
        lag = _lag_when_read(group.namesrv, pairs)
    return Survivors({pair.client.name: pair for pair in pairs}, lag)


def _lag_when_read(namesrv: str, pairs: list[Pair]) -> dict[str, int]:
    """What is not committed yet, once nothing is or time is up; clients commit every 5 s."""
    end = time.monotonic() + 20
    with sync.Admin(namesrv) as admin:
        while True:
            lag = {p.client.name: admin.consume_stats(p.group, p.topic).lag for p in pairs}
            if not any(lag.values()) or time.monotonic() > end:
                return lag
            time.sleep(0.2)


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_clients_go_on_without_the_leader(survivors: Survivors, client: Client) -> None:
    """
    After a kill of the leader producers send and consumers read on by themselves; whatever was
    acknowledged is consumed, and the progress of the group is kept by the new leader.
    """
    pair = survivors.pairs[client.name]
    acknowledged = {f"{client.name.replace('.', '-')}-{line['index']}" for line in pair.sent}

    assert len(acknowledged) == COUNT
    assert {line["status"] for line in pair.sent} == {"SEND_OK"}
    assert acknowledged == set(pair.bodies)
    assert pair.unsent, "the producer did not notice that its broker was gone"
    assert survivors.lag[client.name] == 0


@pytest.mark.parametrize("java", [JavaClient("4.9.8"), JavaClient("5.3.3")], ids=repr)
def test_admin_tools_show_the_group(group: RaftGroup, java: JavaClient) -> None:
    """
    `clusterList` has the leader with id 0; `haStatus`, which 5.x has, shows who follows it.
    """
    for member in MEMBERS:
        if member not in group.known().values():
            group.start(member)
    until(group.is_complete)
    leader = group.leader
    assert leader is not None
    ask = {"namesrv": group.namesrv, "topic": "none"}
    listed = java.run("mqadmin", words=["clusterList"], **ask).value
    rows = {words[3]: words[2] for line in listed.splitlines() if (words := line.split())}

    assert {rows[group.address(member)] for member in MEMBERS if member != leader} <= set("123")
    assert rows[group.address(leader)] == "0"
    if java.version == "5.3.3":
        words = ["haStatus", "-b", group.address(leader)]
        status = java.run("mqadmin", words=words, **ask).value
        assert f"#MasterAddr\t{group.address(leader)}" in status
        assert "#InSyncSlaveNum\t2" in status


@pytest.mark.parametrize("version", NAME_SERVERS)
def test_a_name_server_of_theirs_follows_the_leader(version: str) -> None:
    """
    It has the new leader within a second of the election, after a kill as after a leader that
    hung; of 5.x it does not believe the old one, when that comes back and thinks it still leads.
    """
    with RaftGroup(OURS, version) as group:
        first = group.leader
        assert first is not None
        group.kill(first)
        second = _learnt_in_time(group)
        group.start(first)
        until(group.is_complete)

        group.freeze(second)
        third = _learnt_in_time(group)
        group.thaw(second)
        until(group.is_complete)

        assert group.leader == third
        if version == "5.3.3":
            _register_late(group, second)
            assert group.leader == third


def _learnt_in_time(group: RaftGroup) -> str:
    """The new leader; how long the name server took is measured from the line in its log."""
    before = max(group.elections())
    until(lambda: max(group.elections()) > before)
    elected = time.monotonic()
    leader = group.elections()[max(group.elections())]
    until(lambda: group.leader == leader)
    assert time.monotonic() - elected < LEARNT_SECONDS_MAX
    return leader


def _register_late(group: RaftGroup, old: str) -> None:
    """Say as an old leader of the first term would that it is the master."""
    topic = {"topicName": "Late", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    body = {
        "filterServerList": [],
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": 1000, "stateVersion": 1, "timestamp": 1},
            "topicConfigTable": {name: {**topic, "topicName": name} for name in ("Late", "Later")},
        },
    }
    ext = {
        "brokerName": GROUP, "brokerAddr": group.address(old), "clusterName": "DefaultCluster",
        "brokerId": "0", "haServerAddr": "127.0.0.1:1", "compressed": "false", "bodyCrc32": "0",
    }  # fmt: skip
    with Connection(group.namesrv) as connection:
        connection.ask(REGISTER, ext, json.dumps(body).encode())
