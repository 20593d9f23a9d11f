"""What the checks of a cluster find in a snapshot, and what they say mends it."""

import re
import shlex
from dataclasses import replace
from typing import Any

import click
import pytest

from gantrymq.cli.main import main
from gantrymq.cli.mqadmin.main import find as mqadmin_command
from gantrymq.client.admin.doctor import group_checks, server_checks, topic_checks
from gantrymq.client.admin.doctor.checks import CHECKS, examine
from gantrymq.client.admin.doctor.findings import DoctorFinding, Severity
from gantrymq.client.admin.doctor.snapshot import (
    BrokerView,
    ClusterSnapshot,
    GroupView,
    NameServerView,
)
from gantrymq.client.admin.groups.members import HeldQueue, Member, Members
from gantrymq.console.texts.sentences import CHINESE
from gantrymq.model import GroupConfig, Queue, TopicConfig
from gantrymq.protocol.bodies import (
    ClientConnection,
    HaConnectionInfo,
    HaStatus,
    OffsetWrapper,
    RaftStatus,
    SubscriptionConflict,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def topic(name: str = "orders", reads: int = 4, writes: int = 4, perm: int = 6) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=reads, write_queue_nums=writes, perm=perm)


def broker(name: str = "a", number: int = 0, **more: Any) -> BrokerView:
    """A broker that is well; `figures` and `config` are added to what it says."""
    figures = {"bootTimestamp": str(NOW - 60_000), "commitLogDiskRatio": "0.2"}
    figures["runtime"] = "[ 0 days, 0 hours, 1 minutes, 0 seconds ]"
    view = BrokerView(
        name,
        number,
        f"10.0.0.{number + 1}:10911",
        figures=figures | more.pop("figures", {}),
        config={"fileReservedTime": "72"} | more.pop("config", {}),
        asked_ms=NOW,
        answered_ms=NOW,
        topics={"orders": topic()},
        groups={"g": GroupConfig(group_name="g")},
    )
    return replace(view, **more)


def place(queue_id: int = 0) -> Queue:
    return Queue("orders", "a", queue_id)


def row(end: int, read: int, last_ms: int = NOW - 1000) -> OffsetWrapper:
    return OffsetWrapper(broker_offset=end, consumer_offset=read, last_timestamp=last_ms)


def client(name: str = "c1", version: int = 409) -> ClientConnection:
    return ClientConnection(client_addr="", client_id=name, language="JAVA", version=version)


def group(*rows: OffsetWrapper, **more: Any) -> GroupView:
    progress = {place(number): each for number, each in enumerate(rows)}
    return replace(
        GroupView("g", progress, clients=(client(),), topics=("orders", "%RETRY%g")), **more
    )


def cluster(*brokers: BrokerView, **more: Any) -> ClusterSnapshot:
    groups = {each.name: each for each in more.pop("groups", ())}
    return ClusterSnapshot(NOW, brokers=brokers or (broker(),), groups=groups, **more)


def held(**fields: int) -> Members:
    queues = {place(): HeldQueue(**fields)}
    return Members((Member("c1", queues=queues),), topics=("orders",))


def slave_row(diff: int, in_sync: bool = True) -> HaConnectionInfo:
    return HaConnectionInfo(addr="10.0.0.2:5000", slave_ack_offset=0, diff=diff, in_sync=in_sync)


def copies(in_sync: int, *rows: HaConnectionInfo) -> HaStatus:
    return HaStatus(
        master=True,
        master_commit_log_max_offset=1 << 40,
        in_sync_slave_nums=in_sync,
        ha_connection_info=list(rows),
    )


RAFT = {"enableDLegerCommitLog": "true", "dLegerPeers": "n0-a:1;n1-b:1;n2-c:1"}


def raft(serves: bool = False, trouble: str = "") -> RaftStatus:
    return RaftStatus(
        group="a", me="n0", role="follower", serves=serves, term=1, leader=None, may_vote=True,
        log_first=0, log_end=0, committed=0, trouble=trouble,
    )  # fmt: skip


def server(address: str, *names: str, topics: tuple[str, ...] = (), **more: Any) -> NameServerView:
    brokers = {name: {0: f"{name}:10911"} for name in names}
    return NameServerView(address, brokers=brokers, topics=frozenset(topics), **more)


CONFLICT = SubscriptionConflict(
    newer_client_id="two", newer_expression="b", older_client_id="one", older_expression="a",
    topic="orders",
)  # fmt: skip
DIFFERING = Members(
    (
        Member("c1", subscriptions=frozenset({("orders", "a")})),
        Member("c2", subscriptions=frozenset({("orders", "b")})),
    )
)

CASES: list[tuple[Any, ClusterSnapshot, Severity, str, str]] = [
    # the check, what it sees, how bad it is, its words, what mends it
    (
        server_checks.name_servers,
        cluster(name_servers=(server("n1:9876", trouble="refused"), server("n2:9876"))),
        ERROR, "does not answer: refused", "start mqnamesrv at n1:9876",
    ),
    (
        server_checks.name_servers,
        cluster(name_servers=(server("n1:9876", "a", "b"), server("n2:9876", "a"))),
        ERROR, "does not know b:0 at b:10911", "-k namesrvAddr -v 'n1:9876;n2:9876'",
    ),
    (
        server_checks.name_servers,
        cluster(name_servers=(server("n1:9876", topics=("t",)), server("n2:9876"))),
        WARNING, "does not list 1 topic that others list: t", "registration",
    ),
    (
        server_checks.addresses,
        cluster(broker(trouble="connect failed")),
        ERROR, "registered 10.0.0.1:10911, which does not answer from here", "set brokerIP1",
    ),
    (
        server_checks.addresses,
        cluster(broker(address="127.0.0.1:10911"), name_servers=(server("n1:9876", "a"),)),
        WARNING, "which clients on other machines cannot reach", "set brokerIP1",
    ),
    (
        server_checks.access,
        cluster(broker(trouble="No accessKey is configured", refuses=True)),
        ERROR, "so it was not checked: No accessKey is configured", "ROCKETMQ_ACCESS_KEY",
    ),
    (
        server_checks.clocks,
        cluster(broker(figures={"bootTimestamp": str(NOW - 50_000)})),
        WARNING, "its clock is 0:00:10 ahead of the clock of this machine", "set-ntp",
    ),
    (
        server_checks.clocks,
        cluster(broker(figures={"bootTimestamp": str(NOW - 10 * 60_000)})),
        ERROR, "behind the clock of this machine", "set-ntp",
    ),
    (
        server_checks.disks,
        cluster(broker(figures={"commitLogDiskRatio": "0.8"})),
        WARNING, "its disk is 80% full: from 75% on", "-k fileReservedTime",
    ),
    (
        server_checks.disks,
        cluster(broker(figures={"commitLogDiskRatio": "0.93"})),
        ERROR, "above 90% sends are refused", "make room",
    ),
    (
        server_checks.disks,
        cluster(
            broker(figures={"commitLogDiskRatio": "0.96"}, config={"storeProfile": "dev"}),
        ),
        WARNING, "its disk is 96% full", "make room",
    ),
    (
        server_checks.masters,
        cluster(broker(number=1)),
        ERROR, "has no master: nothing can be sent to it", "make the slave at 10.0.0.2:10911",
    ),
    (
        server_checks.slaves,
        cluster(broker(config={"brokerRole": "SYNC_MASTER"}, copies=copies(0))),
        ERROR, "SYNC_MASTER without a slave in sync", "brokerRole=SLAVE",
    ),
    (
        server_checks.slaves,
        cluster(broker(copies=copies(0)), broker(number=1)),
        WARNING, "1 of 1 slave is not in sync", "mqadmin haStatus",
    ),
    (
        server_checks.slaves,
        cluster(broker(copies=copies(1, slave_row(1 << 30)))),
        WARNING, "1,073,741,824 bytes behind", "faster disk",
    ),
    (
        server_checks.raft_groups,
        cluster(broker(number=1, config=RAFT, raft=raft()), broker(number=2, trouble="down")),
        ERROR, "1 of 3 members is up: without a majority", "gantry raft status",
    ),
    (
        server_checks.raft_groups,
        cluster(broker(number=1, config=RAFT, raft=raft()), broker(number=2, config=RAFT)),
        ERROR, "no member serves as its leader", "election",
    ),
    (
        server_checks.raft_groups,
        cluster(broker(config=RAFT, raft=raft(serves=True)), broker(number=1, config=RAFT)),
        WARNING, "1 of 3 members is down", "start the member",
    ),
    (
        topic_checks.queue_counts,
        cluster(broker(topics={"orders": topic(reads=4, writes=6)})),
        ERROR, "what is sent to 2 queues is read by nobody",
        "gantry topic update orders --broker a --read-queues 6",
    ),
    (
        topic_checks.queue_counts,
        cluster(broker(topics={"orders": topic(reads=6, writes=4)})),
        WARNING, "nothing comes to 2 queues", "gantry topic shrink orders --queues 4",
    ),
    (
        topic_checks.dead_letter_permissions,
        cluster(broker(topics={"%DLQ%g": topic("%DLQ%g", 1, 1, perm=2)})),
        WARNING, "its dead letters cannot be read", "mqadmin updateTopicPerm -b 10.0.0.1:10911",
    ),
    (
        group_checks.subscriptions,
        cluster(groups=[group(conflicts=(CONFLICT,))]),
        ERROR, "one wants 'a' of orders, two wants 'b'; messages are lost",
        "gantry group members g",
    ),
    (
        group_checks.subscriptions,
        cluster(groups=[group(members=DIFFERING)]),
        ERROR, "its members have different subscriptions; messages are lost",
        "gantry group members g",
    ),
    (
        group_checks.stuck_queues,
        cluster(groups=[group(row(5, 1), clients=())]),
        WARNING, "no member runs, and there are 4 unread messages", "gantry group delete g",
    ),
    (
        group_checks.stuck_queues,
        cluster(groups=[group(row(5, 1), may_consume=False)]),
        WARNING, "is not allowed to consume", "gantry group set g --consume",
    ),
    (
        group_checks.stuck_queues,
        cluster(
            groups=[
                group(
                    row(5, 1, NOW - HOUR),
                    members=held(cached_msg_count=3, last_consume_timestamp=NOW - 90_000),
                )
            ]
        ),
        ERROR, "orders@a:0: stuck: nothing finished for 90 s (held by c1)",
        "mqadmin consumerStatus -g g -i c1 -s",
    ),
    (
        group_checks.stuck_queues,
        cluster(groups=[group(row(5, 1), row(5, 1), members=Members((Member("c1"),)))]),
        WARNING, "orders@a:0, orders@a:1: no member says that it holds it", "gantry lag g",
    ),
    (
        group_checks.more_members_than_queues,
        cluster(groups=[group(clients=tuple(client(f"c{n}") for n in range(6)))]),
        WARNING, "6 members for 4 queues of orders: 2 members have nothing to read",
        "gantry topic update orders --queues 6",
    ),
    (
        group_checks.retention,
        cluster(groups=[group(row(5, 1, NOW - 60 * HOUR))]),
        WARNING, "its progress is 2 days, 12:00:00 old, and messages are kept for 72 h",
        "-k fileReservedTime -v HOURS",
    ),
    (
        group_checks.retention,
        cluster(groups=[group(row(50, 1))], first_offsets={place(): 31}),
        ERROR, "30 messages were deleted before the group read them", "gantry pipeline archive",
    ),
    (
        group_checks.unbalanced_queues,
        cluster(groups=[group(row(500, 0), row(10, 0))]),
        WARNING, "orders@a:0 has 500 of 510 unread messages: more consumers do not help",
        "gantry topic spread orders --to orders-wide --queues 4 --group g",
    ),
    (
        group_checks.old_clients,
        cluster(groups=[group(clients=(client(version=120),))]),
        WARNING, "is V3_x (120) in JAVA", "RocketMQ 4 or 5",
    ),
    (
        group_checks.old_clients,
        cluster(broker(producers=(client(version=120),))),
        WARNING, "is V3_x (120) in JAVA", "RocketMQ 4 or 5",
    ),
    (
        group_checks.not_asked,
        cluster(left_out=("the progress of groups on b: down",)),
        NOTE, "the progress of groups on b", "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    "check, snapshot, severity, text, mend",
    CASES,
    ids=[f"{case[0].__name__}-{at}" for at, case in enumerate(CASES)],
)
def test_each_check_finds_what_it_is_for(
    check: Any, snapshot: ClusterSnapshot, severity: Severity, text: str, mend: str
) -> None:
    """
    One finding, with its words and what mends it.
    """
    (found,) = check(snapshot)
    assert severity is found.severity
    assert text in found.text
    assert mend in found.mend
    assert {"severity", "check", "where", "finding", "setting", "mend"} == found.row().keys()


@pytest.mark.parametrize("check, snapshot", [case[:2] for case in CASES])
def test_each_finding_is_told_in_chinese(check: Any, snapshot: ClusterSnapshot) -> None:
    """What was found, and what mends it where that is more than a command."""
    (found,) = check(snapshot)
    assert CHINESE(found.text) != found.text
    is_command = found.mend.startswith(("gantry ", "mqadmin ")) and not re.search(
        r"[,;:] ", found.mend
    )
    assert is_command or CHINESE(found.mend) != found.mend or not found.mend


def test_every_check_has_a_case() -> None:
    """
    Whoever adds a check to the table shows here what it finds.
    """
    assert {*CHECKS} == {case[0] for case in CASES}


def test_a_cluster_that_is_well_has_no_findings() -> None:
    """
    Members that read all queues, a slave in sync, balanced queues: nothing to say.
    """
    busy = group(row(200, 150), row(200, 160), members=held(last_pull_timestamp=NOW))
    well = cluster(
        broker(copies=copies(1, slave_row(10))),
        broker(number=1),
        name_servers=(server("n1:9876", "a"), server("n2:9876", "a")),
        groups=[replace(busy, members=None)],
    )
    assert [] == examine(well)


def test_a_raft_member_in_trouble_is_named() -> None:
    """
    What a member says of itself is an error with its name.
    """
    found = cluster(
        broker(config=RAFT, raft=raft(serves=True)),
        broker(number=1, config=RAFT, raft=raft(trouble="its disk failed")),
        broker(number=2, config=RAFT),
    )
    (one,) = server_checks.raft_groups(found)
    assert (ERROR, "a n0", "its disk failed") == (one.severity, one.where, one.text)


def test_the_worst_comes_first() -> None:
    """
    Errors stand above warnings, whichever check found them.
    """
    found = cluster(
        broker(figures={"commitLogDiskRatio": "0.8"}, topics={"orders": topic(reads=1)}),
    )
    assert [ERROR, WARNING] == [each.severity for each in examine(found)]


def commands_in(text: str) -> list[list[str]]:
    """The command lines of ours in what mends a finding."""
    found = []
    for part in text.replace("; ", ", ").split(", "):
        words = shlex.split(part.partition(" (")[0])
        if words and words[0] in ("gantry", "mqadmin"):
            found.append(words)
    return found


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_what_mends_a_finding_is_a_command_that_exists(case: Any) -> None:
    """
    Each command line that a finding names has only options that the command knows.
    """
    check, snapshot, *_ = case
    for finding in check(snapshot):
        for words in commands_in(finding.mend):
            assert_known(words, finding)


def assert_known(words: list[str], finding: DoctorFinding) -> None:
    options = [word for word in words if word.startswith("-") and not word[1:].isdecimal()]
    if words[0] == "mqadmin":
        command = mqadmin_command(words[1])
        known = {f"-{option.short}" for option in command.options}
        assert {*options} <= known, finding
        return
    found: click.Command = main
    rest = words[1:]
    while isinstance(found, click.Group) and rest:
        ctx = click.Context(found)
        inner = found.get_command(ctx, rest[0])
        assert inner is not None, finding
        found, rest = inner, rest[1:]
    assert {*options} <= {name for option in found.params for name in option.opts}, finding
