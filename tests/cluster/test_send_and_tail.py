"""`gantry send` of many messages, and the filters of `gantry tail`."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from test_cli import BIN, SECONDS_MAX

from gantrymq.cli.main import main
from gantrymq.testing.threaded import GantryCluster


class Shell:
    """Commands against one cluster."""

    def __init__(self, gantry: GantryCluster) -> None:
        self.namesrv = gantry.namesrv
        gantry.create_topic("orders", 2)

    def run(self, *words: str, lines: str | bytes = "") -> Result:
        return CliRunner().invoke(main, [*words, "-n", self.namesrv], input=lines)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        found = self.run(
            "tail", "orders", "--from", "first", "--until", "now", *words, "-o", "json"
        )
        assert 0 == found.exit_code, found.stderr
        rows: list[dict[str, Any]] = json.loads(found.stdout)
        return rows

    def bodies(self, *words: str) -> list[Any]:
        return sorted((row["body"] for row in self.rows(*words)), key=str)


@pytest.fixture
def shell(gantry: GantryCluster) -> Shell:
    return Shell(gantry)


def test_each_line_of_a_pipe_or_file_is_a_message(shell: Shell, tmp_path: Path) -> None:
    """
    Empty lines are passed over, both kinds of line ends are none of the body; the count is on
    standard error, and with -o jsonl each message's receipt on standard output.
    """
    found = shell.run("send", "orders", "--tag", "a", "-o", "jsonl", lines="one\r\n\ntwo\n")
    assert (0, "2 messages sent to orders\n") == (found.exit_code, found.stderr)
    assert ["SEND_OK"] * 2 == [json.loads(row)["status"] for row in found.stdout.splitlines()]
    file = tmp_path / "lines.txt"
    file.write_bytes(b"three\n\xff\n")
    found = shell.run("send", "orders", "--file", str(file))
    assert (0, "", "2 messages sent to orders\n") == (found.exit_code, found.stdout, found.stderr)
    assert ["one", "two"] == shell.bodies("--tags", "a")
    assert 4 == len(shell.rows())


def test_lines_of_json_have_keys_tags_properties_and_delays(shell: Shell) -> None:
    """
    Each line is its own message; those with a delay wait at the broker.
    """
    lines = [
        {"body": {"n": 1}, "keys": ["k1"], "tags": "paid", "properties": {"amount": "12"}},
        {"body": "two", "keys": "k2", "properties": {"amount": "7"}},
        {"bodyHex": "ff00"},
        {"body": "later", "delay": 3600},
    ]
    found = shell.run("send", "orders", "--jsonl", lines="\n".join(map(json.dumps, lines)))
    assert (0, "4 messages sent to orders\n") == (found.exit_code, found.stderr)
    assert ['{"n": 1}'] == shell.bodies("--tags", "paid")
    assert [{"n": 1}] == shell.bodies("--key", "k1", "--body", "json")
    assert ["two", '{"n": 1}'] == shell.bodies("--key", "k1", "--key", "k2")
    assert ['{"n": 1}'] == shell.bodies("--sql", "amount > 10")
    assert ["two"] == shell.bodies("--grep", "tw")
    assert {"ff 00"} == {row["bodyHex"] for row in shell.rows("--body", "hex")} - {
        "74 77 6f", b'{"n": 1}'.hex(" "),
    }  # fmt: skip
    assert 1 == len(shell.rows("--limit", "1"))
    table = ("tail", "orders", "--from", "first", "--until", "now", "--body", "json")
    assert '{"n": 1}' in shell.run(*table).stdout
    waiting = shell.run("waiting", "orders", "-o", "json")
    assert 1 == len(json.loads(waiting.stdout))


def test_what_tail_prints_can_be_sent_again(shell: Shell, gantry: GantryCluster) -> None:
    """
    `gantry tail -o jsonl | gantry send --jsonl` copies messages.
    """
    shell.run("send", "orders", "a", "--tag", "t", "--key", "k")
    printed = shell.run(
        "tail", "orders", "--from", "first", "--until", "now", "-o", "jsonl"
    ).stdout  # fmt: skip
    gantry.create_topic("copies", 1)
    assert 0 == shell.run("send", "copies", "--jsonl", lines=printed).exit_code
    found = shell.run("tail", "copies", "--from", "first", "--until", "now", "-o", "jsonl")
    row = json.loads(found.stdout)
    assert ("a", "t", ["k"]) == (row["body"], row["tags"], row["keys"])


@pytest.mark.parametrize(
    "words, lines, text",
    [
        (["--jsonl"], '{"body":"x"}\n{"body":"y"}\n{"bdy":"z"}\n', "line 3: no field 'bdy'"),
        (["--jsonl"], '{"body":"x"}\n{"body":"y"}\n{\n', "line 3 is no JSON"),
        ([], "x\ny\n" + "z" * 5_000_000 + "\n", "line 3: "),
    ],
    ids=["unknown field", "no JSON", "too large"],
)
def test_sending_stops_at_the_first_error_and_says_how_far_it_came(
    shell: Shell, words: list[str], lines: str, text: str
) -> None:
    """
    One line with the number of the line and of the messages that were sent.
    """
    found = shell.run("send", "orders", *words, lines=lines)
    assert (1, 1) == (found.exit_code, found.stderr.count("\n"))
    assert text in found.stderr
    assert found.stderr.endswith("; 2 messages sent before it\n")
    assert ["x", "y"] == shell.bodies()


def test_a_broker_that_dies_half_way_is_told_with_the_count(gantry: GantryCluster) -> None:
    """
    The messages before it were sent, and the line says how many.
    """
    gantry.create_topic("orders", 1)
    command = [BIN / "gantry", "send", "orders", "-n", gantry.namesrv, "-o", "jsonl"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, bufsize=1, **pipes)  # type: ignore[call-overload]
    process.stdin.write("one\n")
    assert "SEND_OK" == json.loads(process.stdout.readline())["status"]
    gantry.call(gantry.cluster.stop_broker())
    _, stderr = process.communicate("two\n", timeout=SECONDS_MAX)
    assert 1 == process.returncode
    assert stderr.startswith("error: line 2: ")
    assert stderr.endswith("; 1 message sent before it\n")


def test_ctrl_c_while_a_pipe_is_silent_ends_it(gantry: GantryCluster) -> None:
    """
    With how many were sent, and without waiting for the next line.
    """
    gantry.create_topic("orders", 1)
    command = [BIN / "gantry", "send", "orders", "-n", gantry.namesrv, "-o", "jsonl"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, bufsize=1, **pipes)  # type: ignore[call-overload]
    process.stdin.write("one\n")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert 130 == process.wait(SECONDS_MAX)
    assert "interrupted: 1 message sent\n" == process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


@pytest.mark.parametrize(
    "words, text",
    [
        (["send", "orders"], "Missing argument 'BODY', and standard input has no line"),
        (["send", "orders", "x", "--jsonl"], "BODY is one message"),
        (["send", "orders", "--file", "/nowhere"], "'/nowhere' does not exist"),
        (["tail", "orders", "--tags", "a", "--sql", "x > 1"], "say --tags or --sql"),
        (["tail", "orders", "--sql", "amount >"], "--sql: "),
        (["tail", "orders", "--limit", "0"], "--limit"),
        (["tail", "orders", "--body", "xml"], "'xml' is not one of"),
    ],
)
def test_words_that_do_not_fit_are_usage_errors(shell: Shell, words: list[str], text: str) -> None:
    """
    Exit code 2 and what to say instead.
    """
    found = shell.run(*words)
    assert 2 == found.exit_code
    assert text in found.stderr


def test_a_live_tail_filters_and_ends_after_its_limit(shell: Shell) -> None:
    """
    Messages that do not fit are passed over; the command ends by itself after the last one.
    """
    tail = subprocess.Popen(
        [BIN / "gantry", "tail", "orders", "--from", "first", "--grep", "yes", "--limit", "2",
         "--body", "json", "-n", shell.namesrv],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    shell.run("send", "orders", lines='{"yes": 1}\nno\nyes, text\n')
    stdout, stderr = tail.communicate(timeout=SECONDS_MAX)
    assert (0, "") == (tail.returncode, stderr)
    assert ['{"yes": 1}', "yes, text"] == sorted(
        (line.split(" - ", 1)[1] for line in stdout.splitlines()), reverse=True
    )


def test_lag_tells_when_a_backlog_is_gone(shell: Shell, gantry: GantryCluster) -> None:
    """
    Rates and time to drain for each group; a backlog that grows is never drained.
    """
    shell.run("send", "orders", lines="x\n" * 6)

    async def read_some() -> None:
        async with gantry.cluster.admin() as admin:
            await admin.instance.routes.refresh("orders")
        async with gantry.cluster.consumer("g") as consumer:
            consumer.subscribe("orders")
            await consumer.wait_assigned(2)

    gantry.call(read_some())
    shell.run("reset", "g", "orders", "--to", "first", "--force")
    (row,) = json.loads(shell.run("lag", "-o", "json").stdout)
    assert (6, None) == (row["lag"], row["drainSeconds"])
    said = shell.run("lag").stderr
    assert "6 unread" in said
    assert "does not shrink (" in said


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts_are_clicks(shell_name: str) -> None:
    """
    They name the program and the variable that it answers to.
    """
    found = CliRunner().invoke(main, ["completion", shell_name])
    assert 0 == found.exit_code
    assert "_GANTRY_COMPLETE" in found.stdout


def test_commands_and_options_are_completed() -> None:
    """
    As bash asks for them: names of commands, of their options, and of profiles.
    """

    def completed(words: str, at: int) -> list[str]:
        env = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": str(at)}
        found = subprocess.run(
            [BIN / "gantry"], env=env | {"_GANTRY_COMPLETE": "bash_complete"}, check=True,
            capture_output=True, text=True, timeout=SECONDS_MAX,
        )  # fmt: skip
        return [line.partition(",")[2] for line in found.stdout.splitlines()]

    assert {"doctor", "dlq", "debug"} == {*completed("gantry d", 1)}
    assert "--grep" in completed("gantry tail --", 2)
    assert {"bundle"} == {*completed("gantry debug b", 2)}


def test_history_and_why_are_the_same() -> None:
    """
    The old name still works, with the same options.
    """
    new, old = (CliRunner().invoke(main, [name, "--help"]).stdout for name in ("history", "why"))
    assert new.replace("history [", "why [") == old
