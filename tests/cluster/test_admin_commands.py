"""`gantry topic`, `group` and `cluster`, and what all commands have in common."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from test_cli import BIN, SECONDS_MAX, Up

from gantrymq.base.network import TcpNetwork
from gantrymq.cli.main import main
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection

LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("admin"), "--brokers", "2") as running:
        yield running


class Ended(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


class Shell:
    """Commands against one cluster."""

    def __init__(self, up: Up) -> None:
        self._up = up

    def run(self, *arguments: str) -> Ended:
        """In this process: starting one takes longer than most commands do."""
        env = {"NAMESRV_ADDR": self._up.namesrv, "TZ": "Europe/Berlin"}
        found = CliRunner().invoke(main, arguments, env=env)
        return Ended(found.exit_code, found.stdout, found.stderr)

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        found = self.run(*arguments, "-o", "json")
        assert 0 == found.returncode, found.stderr
        rows: list[dict[str, Any]] = json.loads(found.stdout)
        return rows

    def said(self, *arguments: str, code: int = 0) -> str:
        found = self.run(*arguments)
        assert code == found.returncode, found.stderr
        return found.stderr


@pytest.fixture
def shell(up: Up) -> Shell:
    return Shell(up)


class TestTopics:
    def test_one_is_made_shown_changed_and_deleted(self, shell: Shell) -> None:
        """
        On every broker, with what is not named left as it was.
        """
        made = shell.rows("topic", "create", "orders", "--queues", "3")
        assert [("broker-a", 3, 3, "rw"), ("broker-b", 3, 3, "rw")] == [
            (row["broker"], row["readQueues"], row["writeQueues"], row["permission"])
            for row in made
        ]
        shell.run("send", "orders", "a book")
        (shown,) = shell.rows("topic", "show", "orders")
        assert (6, 1, []) == (
            len(shown["queues"]), sum(row["stored"] for row in shown["queues"]), shown["groups"],
        )  # fmt: skip
        assert "1 message stored, read by no group" in shell.said("topic", "show", "orders")
        (listed,) = [row for row in shell.rows("topic", "list") if row["topic"] == "orders"]
        assert (3, ["broker-a", "broker-b"]) == (listed["readQueues"], listed["brokers"])
        changed = shell.rows(
            "topic", "update", "orders", "--permission", "r", "--broker", "broker-b"
        )
        assert [("rw", 3), ("r", 3)] == [(row["permission"], row["readQueues"]) for row in changed]
        assert "with 1 message; say --yes" in shell.said("topic", "delete", "orders", code=2)
        shell.said("topic", "delete", "orders", "--yes")
        assert "orders" not in [row["topic"] for row in shell.rows("topic", "list", "--all")]

    def test_one_that_only_a_name_server_has_is_deleted_or_made_anew(self, shell: Shell) -> None:
        """
        A broker that lost its topics leaves their routes behind: they neither exist nor stay.
        """

        async def leave_route() -> None:
            queues = {"brokerName": "broker-a", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
            body = {"queueDatas": [{**queues, "topicSysFlag": 0}], "brokerDatas": []}
            network, address = TcpNetwork(), shell._up.namesrv.split(";")[0]
            host, _, port = address.rpartition(":")
            connection = await network.connect(
                host, int(port), lambda: Connection(lambda *_: None), 3
            )
            command = Command(code=217, ext={"topic": "left"}, body=json.dumps(body).encode())
            assert 0 == (await connection.call(command, 3)).code
            connection.close()

        asyncio.run(leave_route())
        asked = shell.said("topic", "delete", "left", code=2)
        assert "with its route in the name servers: no broker has it" in asked
        shell.said("topic", "delete", "left", "--yes")
        assert "there is no topic 'left'" in shell.said("topic", "show", "left", code=1)
        asyncio.run(leave_route())
        assert 2 == len(shell.rows("topic", "create", "left", "--queues", "3"))
        assert "topic 'left' exists" in shell.said("topic", "create", "left", code=1)
        shell.said("topic", "delete", "left", "--yes")
        shell.rows("topic", "create", "left", "--broker", "broker-b")
        asyncio.run(leave_route())  # to broker-a, beside the one that has it
        asked = shell.said("topic", "delete", "left", code=2)
        assert "with all that broker-b stored in it" in asked
        shell.said("topic", "delete", "left", "--yes")
        assert "there is no topic 'left'" in shell.said("topic", "show", "left", code=1)

    def test_attributes_are_set_and_removed(self, shell: Shell) -> None:
        """
        By name and value; those that are not named stay.
        """
        words = ["--attribute", "message.type=FIFO", "--attribute", "reserve.time=1"]
        made = shell.rows("topic", "create", "typed", *words)
        changed = shell.rows("topic", "update", "typed", "--attribute", "reserve.time=")

        assert [{"message.type": "FIFO", "reserve.time": "1"}] * 2 == [
            row["attributes"] for row in made
        ]
        assert [{"message.type": "FIFO"}] * 2 == [row["attributes"] for row in changed]

    def test_lists_hide_what_brokers_make_for_themselves(self, shell: Shell) -> None:
        """
        Unless they are asked for; what is hidden is counted.
        """
        shell.run("topic", "create", "mine")
        few = {row["topic"] for row in shell.rows("topic", "list")}
        all_of_them = {row["topic"] for row in shell.rows("topic", "list", "--all")}

        assert "mine" in few
        assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} <= all_of_them - few
        assert f"{len(all_of_them - few)} more with --all" in shell.said("topic", "list")

    @pytest.mark.parametrize(
        "arguments, code, words",
        [
            (["create", "mine"], 1, "exists; `gantry topic update` changes it"),
            (["create", "no good"], 1, "illegal characters"),
            (["create", "x", "--broker", "nosuch"], 1, "known: broker-a, broker-b"),
            (["create", "x", "--queues", "0"], 2, "--queues"),
            (["create", "x", "--attribute", "fifo"], 2, "NAME=VALUE"),
            (["create", "x", "--attribute", "a=1"], 1, "unsupported key: a"),
            (["update", "mine"], 2, "say what to change"),
            (["update", "mine", "--queues", "2"], 1, "gantry topic shrink"),
            (["update", "nosuch", "--queues", "2"], 1, "there is no topic 'nosuch'"),
            (["show", "mien"], 1, "did you mean 'mine'?"),
            (["delete", "nosuch", "--yes"], 1, "there is no topic 'nosuch'"),
            (["delete", "SCHEDULE_TOPIC_XXXX", "--yes"], 1, "belongs to the brokers"),
        ],
    )
    def test_what_cannot_be_is_said_in_a_line(
        self, shell: Shell, arguments: list[str], code: int, words: str
    ) -> None:
        """
        With the exit code that says whose fault it is.
        """
        shell.run("topic", "create", "mine")

        assert words in shell.said("topic", *arguments, code=code)


class TestGroups:
    def test_one_is_listed_shown_and_deleted(self, shell: Shell) -> None:
        """
        With its progress and what waits to be tried again.
        """
        shell.rows("group", "set", "billing", "--retries", "5")
        (listed,) = [row for row in shell.rows("group", "list") if row["group"] == "billing"]
        assert (0, True, 5) == (listed["members"], listed["consume"], listed["retries"])
        assert [] == shell.rows("group", "members", "billing")
        assert "billing: 0 members" in shell.said("group", "members", "billing")
        assert "say --yes" in shell.said("group", "delete", "billing", code=2)
        shell.said("group", "delete", "billing", "--yes")
        assert "there is no group 'billing'" in shell.said("group", "show", "billing", code=1)
        assert "TOOLS_CONSUMER" not in [row["group"] for row in shell.rows("group", "list")]

    def test_members_are_named_and_guard_their_group(self, shell: Shell, tmp_path: Path) -> None:
        """
        A group whose members run is only deleted by force.
        """
        shell.run("topic", "create", "read")
        (tmp_path / "reader.py").write_text(
            "from gantrymq import App\n"
            "app = App(group='readers')\n"
            "@app.on('read', tags='a')\n"
            "async def handle(body: bytes) -> None: ...\n"
        )
        command = [BIN / "gantry", "run", "reader:app", "-n", shell._up.namesrv]
        reader = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
        try:
            rows: list[dict[str, Any]] = []
            deadline = time.monotonic() + SECONDS_MAX
            while not rows and time.monotonic() < deadline:
                found = shell.run("group", "members", "readers", "-o", "json")
                rows = json.loads(found.stdout or "[]")
            (row,) = rows
            assert "read:a" in row["subscriptions"]
            assert ("PYTHON", "CLUSTERING") == (row["language"], row["model"])
            said = shell.said("group", "delete", "readers", "--yes", code=1)
            assert "1 member of readers still runs: stop them first" in said
        finally:
            reader.terminate()
            reader.wait(SECONDS_MAX)
            assert reader.stderr is not None
            reader.stderr.close()


def test_the_cluster_is_shown_broker_by_broker(shell: Shell) -> None:
    """
    In a table for people, as numbers for scripts.
    """
    rows = shell.rows("cluster")
    table = shell.run("cluster").stdout

    assert [("DefaultCluster", "broker-a", 0), ("DefaultCluster", "broker-b", 0)] == [
        (row["cluster"], row["broker"], row["id"]) for row in rows
    ]
    assert all(isinstance(row["since"], int) and row["trouble"] is None for row in rows)
    assert 2 == len(LOCAL_TIME.findall(table))


class TestNames:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["tail", "nosuch", "--until", "now"],
            ["find", "nosuch", "--key", "k"],
            ["find", "nosuch", "--from", "-1h"],
            ["why", "7F000001000018B4AAC2000000000100", "--topic", "nosuch"],
            ["waiting", "nosuch"],
            ["lag", "nosuch"],
            ["lag", "--topic", "nosuch"],
            ["reset", "g", "nosuch", "--to", "first"],
            ["reset", "nosuch", "known", "--to", "first"],
            ["dlq", "list", "nosuch"],
            ["dlq", "stats", "nosuch"],
            ["dlq", "export", "nosuch"],
            ["group", "show", "nosuch"],
            ["group", "members", "nosuch"],
            ["topic", "show", "nosuch"],
            ["pipeline", "report", "--topic", "nosuch", "--into", "/nonexistent"],
            ["pipeline", "report", "--group", "nosuch", "--into", "/nonexistent"],
            ["topic", "shrink", "nosuch", "--queues", "1"],
            ["topic", "spread", "nosuch", "--to", "x", "--queues", "1", "--group", "g"],
            ["topic", "spread", "known", "--to", "x", "--queues", "1", "--group", "nosuch"],
        ],
    )
    def test_unknown_ones_are_an_error_everywhere(self, shell: Shell, arguments: list[str]) -> None:
        """
        Exit code 1, the name in one line, and nothing on stdout.
        """
        shell.run("topic", "create", "known")
        found = shell.run(*arguments)

        assert (1, "") == (found.returncode, found.stdout)
        assert "nosuch" in found.stderr.strip().splitlines()[-1]


class TestTimes:
    def test_are_written_one_way(self, shell: Shell) -> None:
        """
        Days, ISO, lengths, milliseconds; the same words in every command.
        """
        shell.run("send", "timed", "x", "--key", "k")
        for since in (
            "today 00:00",
            "yesterday",
            "-1h",
            "2020-01-01T00:00:00+02:00",
            "1577836800000",
        ):
            until = ("--until", "+1m", "-o", "json")
            assert 1 == len(json.loads(shell.run("find", "timed", "--from", since, *until).stdout))
            told = shell.run("tail", "timed", "--from", since, "--until", "now", "-o", "json")
            assert 1 == len(json.loads(told.stdout))
            assert 0 == shell.run("waiting", "timed", "--from", since).returncode
        for arguments in (
            ["find", "timed", "--from", "soon"], ["tail", "timed", "--from", "soon"],
            ["waiting", "--from", "soon"], ["dlq", "list", "g", "--since", "soon"],
            ["send", "timed", "x", "--deliver-at", "soon"],
            ["reset", "g", "timed", "--to", "soon"],
        ):  # fmt: skip
            assert "yesterday 00:00" in shell.said(*arguments, code=2)
        late = shell.said("send", "timed", "x", "--deliver-at", "-1h", code=2)
        assert LOCAL_TIME.search(late)
        assert "is in the past" in late

    def test_are_printed_one_way(self, shell: Shell) -> None:
        """
        Local with an offset in tables, milliseconds in JSON.
        """
        sent = shell.run("send", "printed", "x", "--deliver-at", "+1h", "-o", "json")
        shell.run("send", "printed", "y")
        msg_id = json.loads(sent.stdout)["msgId"]
        for arguments in (
            ["find", "printed", "--from", "-1h"], ["waiting", "printed"],
            ["tail", "printed", "--from", "first", "--until", "now"],
            ["why", msg_id, "--topic", "printed"], ["topic", "show", "printed"],
        ):  # fmt: skip
            assert LOCAL_TIME.search(shell.run(*arguments).stdout), arguments
        (row,) = shell.rows("find", "printed", "--from", "-1h")
        assert isinstance(row["storeTime"], int)


@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_a_reader_that_has_enough_ends_the_command(shell: Shell, form: str) -> None:
    """
    `gantry tail | head -1` ends at once with success, though no other message comes.
    """
    for body in ("one", "two"):
        shell.run("send", "piped", body)
    tail = subprocess.Popen(
        [BIN / "gantry", "tail", "piped", "--from", "first", "-o", form, "-n", shell._up.namesrv],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert tail.stdout is not None
    assert tail.stderr is not None
    tail.stdout.readline()
    tail.stdout.close()
    said = tail.stderr.read()
    tail.stderr.close()

    assert (0, b"") == (tail.wait(SECONDS_MAX), said)


def test_one_is_no_plural(shell: Shell) -> None:
    """
    In what people read.
    """
    shell.run("send", "single", "x", "--delay", "3600")

    assert "1 message waits;" in shell.said("waiting", "single")
