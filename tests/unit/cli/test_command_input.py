"""What people type at the commands: help where they look for it, a clear word for every mistake."""

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gantrymq.cli.common.output import print_rows
from gantrymq.cli.main import COMMANDS, main
from gantrymq.client.admin.letters.dead_letters import _parse_cursor
from gantrymq.client.admin.topics.spread_marks import parse_mark
from gantrymq.client.core.errors import ClientError

NOWHERE = ["-n", "127.0.0.1:1"]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


@pytest.mark.parametrize(
    "words", [[], *([name] for name in COMMANDS), ["dlq", "list"], ["topic", "spread"]]
)
def test_every_command_tells_about_itself(words: list[str]) -> None:
    """In a process of its own: a command that was ever called alone knows only --help."""
    gantry = Path(sys.executable).with_name("gantry")
    short, long = (
        subprocess.run([gantry, *words, flag], capture_output=True, text=True, check=False)
        for flag in ("-h", "--help")
    )
    assert (0, long.stdout) == (short.returncode, short.stdout)
    assert "Usage:" in short.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["send", "T", "x", "--delay", "inf"],
        ["send", "T", "x", "--delay", "nan"],
        ["send", "T", "x", "--deliver-at", "soon"],
        ["find", "T", "--from", "²"],
        ["find", "T", "--queue", "broker-a:²", "--offset", "0"],
        ["reset", "g", "T", "--to", "²"],
        ["reset", "g", "T", "--to", "first", "--queue", "broker-a:²"],
        ["tail", "T", "--from", "²"],
        ["waiting", "--from", "²"],
        ["dlq", "list", "g", "--limit", "0"],
        ["dlq", "resend", "g", "--all", "--rate", "nan"],
        ["dlq", "resend", "g", "--all", "--rate", "0"],
        ["topic", "spread", "T", "--to", "U", "--queues", "8", "--group", "g", "--rate", "nan"],
        ["group", "set", "g"],
        ["lag", "--every", "0"],
    ],
)
def test_a_mistake_in_the_words_is_a_usage_error(words: list[str]) -> None:
    """
    A wrong word on the command line exits with 2 and an error on standard error, before any
    connection.
    """
    found = run(*words, *NOWHERE)
    assert (2, "") == (found.exit_code, found.stdout)
    assert "Error: " in found.stderr


def test_a_body_that_is_no_text_is_sent_as_its_bytes() -> None:
    """What the shell passes on need not be UTF-8; here it fails only because nobody listens."""
    found = run("send", "T", "\udcff", *NOWHERE)
    assert 1 == found.exit_code
    assert found.stderr.startswith("error: no name server")


def test_a_module_that_misses_another_is_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An import error inside the user's module is shown as it is, not as a missing module.
    """
    (tmp_path / "shop_handlers.py").write_text("import not_installed_anywhere\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    found = run("run", "shop_handlers:app")
    assert 1 == found.exit_code
    assert "not_installed_anywhere" in found.stderr
    assert "MODULE:APP" not in found.stderr
    missing = run("run", "not_there:app")
    assert (2, True) == (missing.exit_code, "MODULE:APP" in missing.stderr)


def test_a_row_of_a_table_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """
    A value with line breaks and control characters stays on one line of a table, and whole in
    JSON.
    """
    rows = [{"text": "first\nsecond\tthird\x1b[2J", "count": 1}]
    print_rows(rows, "table")
    assert 2 == len(capsys.readouterr().out.splitlines())
    print_rows(rows, "jsonl")
    assert rows == [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_digits_of_other_scripts_are_no_places() -> None:
    """
    A superscript digit in a cursor or mark is refused, although Python calls it a digit.
    """
    with pytest.raises(ClientError, match="no place"):
        _parse_cursor("T", "broker-a:²:1")
    assert None is parse_mark("T/broker-a/²/1")


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["tail", "orders"],
        ["pipeline", "report", "--topic", "orders", "--into", "r"],
        ["pipeline", "archive", "--topic", "orders", "--into", "t"],
    ],
    ids=" ".join,
)
def test_name_servers_that_never_answer_cost_less_than_five_seconds(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    However many there are: each takes the connection and says nothing. One line, exit 1.
    """
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        addresses = ";".join(f"127.0.0.1:{each.getsockname()[1]}" for each in silent)
        began = time.monotonic()
        ended = CliRunner().invoke(main, [*words, "-n", addresses])

    assert time.monotonic() - began < 5
    assert 1 == ended.exit_code
    assert "no name server answers" in ended.stderr
    assert 1 == len(ended.stderr.splitlines())
