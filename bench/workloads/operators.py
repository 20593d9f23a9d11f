"""Operators' commands on a broker with very many queues, while messages are sent to it."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Iterable

from bench import programs
from bench.programs import AskedProgram
from bench.rows import Row
from bench.servers import BIN, Ours
from bench.workloads import Run
from gantrymq import Admin, Message, Producer
from gantrymq.cli.load import run_fast
from gantrymq.client.admin.groups.members import together
from gantrymq.model import GroupConfig, Queue, TopicConfig, retry_topic
from gantrymq.protocol import calls
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest

TOPICS = GROUPS = 2_000
QUEUES = 10
BEHIND = 100
"""Groups with a backlog; all others have read everything."""
RATE = 5_000
COMMANDS = {
    "mqadmin topicList": ("mqadmin", "topicList", "-n"),
    "mqadmin statsAll": ("mqadmin", "statsAll", "-n"),
    "mqadmin consumerProgress": ("mqadmin", "consumerProgress", "-n"),
    "gantry lag": ("gantry", "lag", "--namesrv"),
    "gantry doctor": ("gantry", "doctor", "--namesrv"),
}
LINES_MIN = {
    "mqadmin topicList": TOPICS + GROUPS,
    "mqadmin statsAll": TOPICS,
    "mqadmin consumerProgress": GROUPS,
    "gantry lag": BEHIND,
    "gantry doctor": 0,
}
"""What a command prints at least: one that gave up early must not look cheap."""
ROUNDS, ROUNDS_QUICK = 3, 1
SECONDS_ALONE, SECONDS_ALONE_QUICK = 10.0, 2.0
SETTLE_SECONDS = 3.0
CPU_SECONDS_MAX, P99_MS_MAX = 2.0, 20.0


def operators(run: Run) -> list[Row]:
    """2,000 topics and groups, 20,000 queues; each command alone, the sends never stop."""
    cpu: dict[str, list[float]] = {name: [] for name in COMMANDS}
    p99: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with Ours(profile=run.profile) as cluster:
        run_fast(_populate(cluster.namesrv, cluster.broker))
        with programs.asked("pace", cluster.namesrv, RATE) as sends:
            time.sleep(SETTLE_SECONDS)
            sends.ask()
            time.sleep(SECONDS_ALONE_QUICK if run.quick else SECONDS_ALONE)
            alone = sends.ask()
            for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
                for name in COMMANDS:
                    spent, found = _measure(name, cluster.namesrv, sends)
                    cpu[name].append(spent)
                    p99[name].append(found["p99_ms"])
    rows = [Row("operators", "no command: send p99", alone["p99_ms"], "ms")]
    for name in COMMANDS:
        spent, late = statistics.median(cpu[name]), statistics.median(p99[name])
        rows += [
            Row("operators", f"{name}: processor time", spent, "s", CPU_SECONDS_MAX, True),
            Row("operators", f"{name}: send p99", late, "ms", P99_MS_MAX, True),
            Row("operators", f"{name}: send p99, worst of {len(p99[name])}", max(p99[name]), "ms"),
        ]
    return rows


def _measure(name: str, namesrv: str, sends: AskedProgram) -> tuple[float, programs.Figures]:
    """Seconds of the command's processor time, and the sends while it ran."""
    program, *arguments = COMMANDS[name]
    sends.ask()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([BIN / program, *arguments, namesrv], stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        found = sends.ask()
        said.seek(0)
        text = said.read()
    assert text.count(b"\n") >= LINES_MIN[name], text[-2000:]
    assert not found["failed"], found
    return used.ru_utime + used.ru_stime, found


async def _populate(namesrv: str, broker: str) -> None:
    async with Admin(namesrv) as admin:
        topics = [TopicConfig(topic_name=_topic(at), read_queue_nums=QUEUES,
                              write_queue_nums=QUEUES) for at in range(TOPICS)]  # fmt: skip
        topics += [
            TopicConfig(topic_name=retry_topic(_group(at)), read_queue_nums=1, write_queue_nums=1)
            for at in range(GROUPS)
        ]
        await admin.put_topics(broker, topics)
        groups = [GroupConfig(group_name=_group(at)) for at in range(GROUPS)]
        await admin.put_groups(broker, groups)
        await _fill(namesrv)
        await together(_read(admin, broker))


async def _fill(namesrv: str) -> None:
    """One message in every queue."""
    async with Producer(namesrv, group="bench") as producer:
        for at in range(TOPICS):
            for number in range(QUEUES):
                await producer.room()
                queue = Queue(_topic(at), "broker-a", number)
                producer.submit(Message(_topic(at), b"x" * 1024), queue=queue)
        await producer.flush()


def _read(admin: Admin, broker: str) -> Iterable[Awaitable[object]]:
    """Every group has read its topic, but for those that are behind."""
    for at in range(GROUPS):
        for number in range(QUEUES):
            progress = UpdateConsumerOffsetRequest(
                consumer_group=_group(at), topic=_topic(at), queue_id=number,
                commit_offset=0 if at < BEHIND else 1,
            )  # fmt: skip
            yield admin.instance.call(broker, calls.UPDATE_CONSUMER_OFFSET, progress)


def _topic(number: int) -> str:
    return f"topic-{number}"


def _group(number: int) -> str:
    return f"group-{number}"
