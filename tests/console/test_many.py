"""A cluster with 5,000 topics and 2,000 groups: pages stay cheap and never ask for each of them."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from consolekit import Site

from gantrymq import Decision, Message, Producer
from gantrymq.client.admin.admin import Admin
from gantrymq.model import GroupConfig, TopicConfig, dead_topic
from gantrymq.protocol import calls
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import Server
from gantrymq.testing.threaded import GantryCluster

TOPICS, GROUPS = 5_000, 2_000
AT_ONCE = 500
TOPICS_OF_A_GROUP = 2
BEHIND = 200
"""Groups that have unread messages."""
CPU_SECONDS_MAX = 0.3
SHOWN = 50
"""Rows of a page, which may cost a request each."""
WITH_LETTERS, WAITING, HALVES = 200, 500, 100
LISTS = ("topics", "topics?search=999", "groups", "groups?sort=name&search=77", "letters")
PAGES = (
    "overview", "overview/findings", *LISTS, "waiting", "transactions", "alarms",
    "topics/topic-0007", "groups/group-0007", "messages/topic-0007/broker-a/0/0",
)  # fmt: skip


async def fill(namesrv: str) -> None:
    """Topics and groups in batches, progress of every group, and messages for some; letters,
    delayed messages and half messages, too."""
    topics = [f"topic-{number:04}" for number in range(TOPICS)]
    groups = [f"group-{number:04}" for number in range(GROUPS)]
    dead = [dead_topic(group) for group in groups[:WITH_LETTERS]]
    async with Admin(namesrv) as admin, Producer(namesrv, group="filler") as producer:
        (address,) = (await admin.masters()).values()
        every = topics + dead
        for at in range(0, len(every), AT_ONCE):
            configs = [
                TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1)
                for name in every[at : at + AT_ONCE]
            ]
            await admin.put_topics(address, configs)
        for at in range(0, GROUPS, AT_ONCE):
            await admin.put_groups(
                address, [GroupConfig(group_name=name) for name in groups[at : at + AT_ONCE]]
            )
        while len(await admin.topics()) < len(every):
            await asyncio.sleep(0.1)
        for topic in (*topics[:BEHIND], *dead):
            await producer.send(Message(topic, b"unread"))
        for number in range(WAITING):
            await producer.send(Message(topics[-1 - number], b"later", delay=3600 + number))
        for number in range(HALVES):
            half = Message(topics[-1 - number], b"half")
            await producer.send_transaction(half, lambda _: Decision.UNKNOWN)
        for number, group in enumerate(groups):
            for step in range(TOPICS_OF_A_GROUP):
                header = UpdateConsumerOffsetRequest(
                    consumer_group=group, topic=topics[number + step * GROUPS], queue_id=0,
                    commit_offset=0,
                )  # fmt: skip
                await admin.instance.call(address, calls.UPDATE_CONSUMER_OFFSET, header)


@contextmanager
def console_process(namesrv: str, data: Path) -> Iterator[tuple[Site, int]]:
    """A console in a process of its own, and its process id."""
    words = ["console", "--namesrv", f"many={namesrv}", "--port", "0", "--data", str(data)]
    command = [sys.executable, "-c", "from gantrymq.cli.main import main; main()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Site(process.stdout.readline().split()[-1]), process.pid
        finally:
            process.terminate()


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, all its threads together."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def test_pages_of_a_large_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No page costs much, the first time as well, and lists ask few requests."""
    asked: Counter[int] = Counter()
    answer = Server._answer

    def counted(self: Server, connection: Connection, command: Command) -> None:
        asked[command.code] += 1
        answer(self, connection, command)

    monkeypatch.setattr(Server, "_answer", counted)
    cluster = GantryCluster()
    figures: dict[str, list[float]] = {}
    requests: dict[str, int] = {}
    try:
        asyncio.run(fill(cluster.namesrv))
        with console_process(cluster.namesrv, tmp_path) as (site, pid):
            for path in PAGES * 3:
                before, asked_before = cpu_seconds(pid), asked.total()
                reply = site.ask("GET", f"/c/many/{path}")
                figures.setdefault(path, []).append(cpu_seconds(pid) - before)
                requests[path] = max(requests.get(path, 0), asked.total() - asked_before)
                assert 200 == reply.status, path
                time.sleep(0.2)  # what goes on in the background has its own turn
            listed = site.api("GET", "/clusters/many/groups", limit=1)
    finally:
        cluster.close()

    with capsys.disabled():
        for path, each in figures.items():
            shown = ", ".join(f"{1000 * seconds:.0f}" for seconds in each)
            sys.stdout.write(f"\n{path}: {shown} ms of CPU, {requests[path]} requests")
    assert (GROUPS, BEHIND) == (listed["count"], listed["lag"])
    slow = {path: each for path, each in figures.items() if max(each) >= CPU_SECONDS_MAX}
    assert {} == slow
    assert all(requests[path] < 3 * SHOWN for path in LISTS)
    assert asked[RequestCode.GET_TOPIC_STATS_INFO] < TOPICS / 2
