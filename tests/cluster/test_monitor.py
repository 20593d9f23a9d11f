"""Watching a cluster: figures of every round, what is over a threshold, and who is told."""

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer, Run
from test_cli import BIN, SECONDS_MAX, Up
from test_publishing_retention import expire, small_files

from gantrymq import ConsumerOptions, Message
from gantrymq.cli.main import main
from gantrymq.cli.mqadmin.commands.monitoring import group_lines
from gantrymq.client.admin.monitoring.monitor import Monitor
from gantrymq.client.admin.monitoring.monitor_round import (
    MonitorRound,
    OffsetMovedEvent,
    Problem,
    Thresholds,
)
from gantrymq.model import GroupConfig, Queue
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.threaded import GantryCluster

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


class Seen:
    """What a monitor told."""

    def __init__(self) -> None:
        self.rounds: list[MonitorRound] = []
        self.problems: list[list[Problem]] = []
        self.moved: list[OffsetMovedEvent] = []
        self.told = asyncio.Event()

    async def on_round(self, found: MonitorRound, problems: list[Problem]) -> None:
        self.rounds.append(found)
        self.problems.append(problems)

    async def on_moved(self, event: OffsetMovedEvent) -> None:
        self.moved.append(event)
        self.told.set()


async def fill(cluster: Cluster, *counts: int) -> None:
    await cluster.create_topic("orders", queues=len(counts))
    async with cluster.producer() as producer:
        for queue_id, count in enumerate(counts):
            for number in range(count):
                await producer.send(
                    Message("orders", b"%d" % number), queue=Queue("orders", "broker-a", queue_id)
                )


async def commit(cluster: Cluster, group: str, offset: int) -> None:
    peer = await Peer.to(cluster)
    await peer.pull("orders", 0, group=group)
    await peer.call(15, consumerGroup=group, topic="orders", queueId=0, commitOffset=offset)
    peer.close()


def test_every_round_has_the_figures_of_every_group(run: Run) -> None:
    """
    What waits in all and in the worst queue, since when, retries, dead letters and those that
    came since the round before.
    """

    async def work(cluster: Cluster) -> None:
        await fill(cluster, 5, 2)
        await commit(cluster, "g", 1)
        seen = Seen()
        async with cluster.admin() as admin:
            await admin.update_group(GroupConfig(group_name="g", retry_max_times=1))
            watch = Monitor(
                admin,
                on_round=seen.on_round,
                on_moved=seen.on_moved,
                thresholds=Thresholds(waiting=5),
            )
            await watch.run(0.1, rounds=1)
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                for _ in range(6):
                    await (await anext(consumer)).dead()
            await watch.run(0.1, rounds=2)
        row, later = (each.rows()[0] for each in seen.rounds)
        assert (6, "orders@broker-a:0", 4, 0, 0) == (
            row["waiting"], row["worstQueue"], row["worstWaiting"], row["retries"], row["dead"],
        )  # fmt: skip
        assert 0 <= row["oldestAgeMs"] < 60_000
        assert [("waiting", 6, 5)] == [(p.kind, p.value, p.limit) for p in seen.problems[0]]
        assert (0, 6, 6) == (later["waiting"], later["dead"], later["newDead"])
        assert ["dead"] == [problem.kind for problem in seen.problems[1]]
        assert "g: 6 waiting, the oldest for 0:00:0" in seen.rounds[0].lines()[0]
        (line,) = group_lines(seen.rounds[0], seen.rounds[0].groups[0])
        assert "UndoneMsgs [consumerGroup=g, topic=orders, undoneMsgsTotal=6, undone" in line

    run(work)


def test_members_that_differ_are_told(run: Run) -> None:
    """
    Two members of one group with different tags are one problem, by what they say themselves.
    """

    async def work(cluster: Cluster) -> None:
        await fill(cluster, 1)
        seen = Seen()
        async with cluster.consumer("g") as one, cluster.consumer("g") as two, cluster.admin() as a:
            one.subscribe("orders", tags="a")
            two.subscribe("orders", tags="b")
            watch = Monitor(a, on_round=seen.on_round, on_moved=seen.on_moved)
            while not seen.problems or not seen.problems[-1]:
                await watch.run(0.1, rounds=len(seen.rounds) + 1)
                await asyncio.sleep(0.1)
        (problem,) = seen.problems[-1]
        assert "members of g have different subscriptions" == problem.text
        last = seen.rounds[-1]
        assert "ConsumerGroup: g, Subscription different" in group_lines(last, last.groups[0])[-1]

    run(work)


def test_what_was_deleted_before_it_was_read_is_told_at_once() -> None:
    """
    The event of a group that lost messages comes between two rounds, and those of before the
    monitor began are not told.
    """

    async def story() -> None:
        async with small_files() as cluster:
            await cluster.create_topic("orders", queues=1)
            peer = await Peer.to(cluster)
            await peer.pull("orders", 700)
            async with cluster.producer() as producer:
                for _ in range(4):
                    message, place = Message("orders", bytes(100)), Queue("orders", "broker-a", 0)
                    await producer.send(message, queue=place)
            assert await expire(cluster, "broker-a")
            seen = Seen()
            async with cluster.admin() as admin, asyncio.timeout(3000):
                watch = Monitor(admin, on_round=seen.on_round, on_moved=seen.on_moved)
                running = asyncio.create_task(watch.run(600))
                while not seen.rounds:
                    await asyncio.sleep(0.1)
                answer = await peer.pull("orders", 1)
                await seen.told.wait()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            (event,) = seen.moved
            gone = int(answer.ext["nextBeginOffset"]) - 1
            assert ("g", 1, gone, 1) == (
                event.group, event.requested, event.deleted, len(seen.rounds),
            )  # fmt: skip
            assert f"{gone} messages of queue 0 of orders on broker-a were deleted" in event.text

    simulate(story)


def test_a_broker_that_is_down_is_a_line_and_no_end(run: Run) -> None:
    """
    The round says which broker does not answer, and the next one has its groups again.
    """

    async def work(cluster: Cluster) -> None:
        await fill(cluster, 1)
        await commit(cluster, "g", 0)
        seen = Seen()
        async with cluster.admin() as admin:
            watch = Monitor(admin, on_round=seen.on_round, on_moved=seen.on_moved)
            await watch.run(0.1, rounds=1)
            address = f"127.0.0.1:{cluster.broker().config.listen_port}"
            await cluster.stop_broker()
            await watch.run(0.1, rounds=2)
            await cluster.start_broker()
            await watch.run(0.1, rounds=3)
        assert [1, 0, 1] == [len(each.groups) for each in seen.rounds]
        (text,) = seen.rounds[1].unknown
        assert "broker broker-a does not answer" in text or "no master" in text or address in text

    run(work)


# the commands


@contextmanager
def listening(code: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An HTTP server that keeps what is posted, and its URL."""
    posted: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append({"authorization": self.headers["Authorization"], **json.loads(body)})
            self.send_response(code)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/alarm", posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def behind(gantry: GantryCluster) -> GantryCluster:
    """A cluster with a group that has three messages to read."""
    gantry.call(fill(gantry.cluster, 3))
    gantry.call(commit(gantry.cluster, "g", 0))
    return gantry


def test_what_is_wrong_is_posted_once_a_round(behind: GantryCluster) -> None:
    """
    One JSON object a round with all problems, credentials of the URL in a header; none if all is
    well.
    """
    words = ["monitor", "-n", behind.namesrv, "--every", "0.1", "--rounds", "2"]
    with listening() as (url, posted):
        bad = CliRunner().invoke(main, [*words, "--waiting", "1", "--webhook", f"http://u:p@{url}"])
        count = len(posted)
        well = CliRunner().invoke(main, [*words, "--webhook", f"http://{url}"])
    assert (0, 0, 2, 2) == (bad.exit_code, well.exit_code, count, len(posted))
    (problem,) = posted[0]["problems"]
    assert ("waiting", "g", 3, 1) == tuple(problem[k] for k in ("kind", "group", "value", "limit"))
    assert "Basic dTpw" == posted[0]["authorization"]
    assert "PROBLEM waiting: g has 3 waiting messages" in bad.stdout
    assert "round 2: 1 group, 3 waiting, 0 problems" in well.stdout


def test_a_webhook_that_fails_is_one_line_and_is_tried_again(behind: GantryCluster) -> None:
    """
    Every round posts again, and what went wrong stands on standard error without credentials.
    """
    words = ["monitor", "-n", behind.namesrv, "--every", "0.1", "--rounds", "2", "--waiting", "1"]
    with listening(503) as (url, posted):
        found = CliRunner().invoke(main, [*words, "--webhook", f"http://u:secret@{url}?token=t"])
    assert (0, 2) == (found.exit_code, len(posted))
    assert 2 == found.stderr.count(f"webhook: http://{url} answered 503")
    assert "secret" not in found.output
    gone = CliRunner().invoke(main, [*words, "--webhook", f"http://{url}"])
    assert 2 == gone.stderr.count(f"webhook: http://{url} cannot be reached")


def test_json_lines_have_groups_and_problems(behind: GantryCluster) -> None:
    """
    A line for each group and for each problem, with times in milliseconds.
    """
    found = CliRunner().invoke(
        main, ["monitor", "-n", behind.namesrv, "--rounds", "1", "--waiting", "1", "-o", "jsonl"]
    )
    group, problem = map(json.loads, found.stdout.splitlines())
    assert ("group", "g", 3) == (group["event"], group["group"], group["waiting"])
    assert ("problem", "waiting") == (problem["event"], problem["kind"])
    assert group["time"] == problem["time"]


@pytest.mark.parametrize("command", [["gantry", "monitor"], ["mqadmin", "startMonitoring"]])
def test_ctrl_c_ends_it(tmp_path: Path, command: list[str]) -> None:
    """
    One signal ends the command at once, without a word on standard error.
    """
    with Up(tmp_path) as up:
        process = subprocess.Popen(
            [BIN / command[0], *command[1:], "-n", up.namesrv],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS_MAX)
    assert "round 1" in first or "beginRound" in first
    assert (process.returncode, stderr) in [(0, ""), (130, "")]


@pytest.mark.parametrize("form", ["table", "json"])
def test_rocketmqs_command_prints_rocketmqs_words(behind: GantryCluster, form: str) -> None:
    """
    Rounds begin and end as RocketMQ's log does; with -o json there is one list.
    """
    found = subprocess.run(
        [BIN / "mqadmin", "startMonitoring", "-n", behind.namesrv, "-c", "1", "-o", form],
        capture_output=True, text=True, timeout=SECONDS_MAX, check=True,
    )  # fmt: skip
    lines = found.stdout.splitlines()
    if form == "json":
        assert ["beginRound", "group", "endRound"] == [
            row["event"] for row in json.loads(found.stdout)
        ]
        return
    assert f"[MONITOR] {'=' * 41}beginRound" == lines[0]
    assert "undoneMsgsTotal=3, undoneMsgsSingleMQ=3" in lines[1]
    assert f"[MONITOR] {'=' * 41}endRound" == lines[-1]
