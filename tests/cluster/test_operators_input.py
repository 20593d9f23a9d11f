"""What operators get wrong, and what fails them: one clear line and the right exit code."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from peer import Peer
from test_cli import BIN, SECONDS_MAX
from test_doctor import register

from gantrymq.cli.main import main
from gantrymq.testing.threaded import GantryCluster

COMMANDS = [
    ["monitor"], ["doctor"], ["config"], ["config", "explain"], ["debug"], ["debug", "bundle"],
    ["profile"], ["profile", "list"], ["profile", "add"], ["profile", "use"],
    ["profile", "remove"], ["profile", "show"], ["history"], ["why"], ["tail"], ["send"], ["lag"],
    ["completion"],
]  # fmt: skip
ASKING = [
    ["monitor", "--rounds", "1"], ["doctor"], ["debug", "bundle", "-f", "b.tar.gz"],
    ["history", "0A"], ["why", "0A"], ["tail", "orders"], ["send", "orders", "x"], ["lag"],
    ["lag", "g"],
]  # fmt: skip
"""Each asks a cluster."""


def run(*words: str) -> Result:
    found = CliRunner().invoke(main, words, env={"NAMESRV_ADDR": None})
    assert "Traceback" not in found.output
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def is_one_error(found: Result) -> bool:
    """One line that begins with `error:`, besides progress."""
    lines = [line for line in found.stderr.splitlines() if not line.endswith(" ...")]
    return len(lines) == 1 and lines[0].startswith("error: ")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help(words: list[str]) -> None:
    """
    With its usage and what it is for.
    """
    found = run(*words, "--help")
    assert (0, "") == (found.exit_code, found.stderr)
    assert f"Usage: main {' '.join(words)}" in found.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_option_is_a_usage_error(words: list[str]) -> None:
    """
    Exit code 2, and nothing on standard output.
    """
    found = run(*words, "--no-such-option")
    assert (2, "") == (found.exit_code, found.stdout)
    assert "Error: No such option" in found.stderr or "Error: No such command" in found.stderr


@pytest.mark.parametrize(
    "words, text",
    [
        (["monitor", "--every", "0"], "--every"),
        (["monitor", "--rounds", "0"], "--rounds"),
        (["monitor", "--dead", "-1"], "--dead"),
        (["doctor", "-o", "xml"], "-o"),
        (["config", "explain"], "Missing argument"),
        (["config", "explain", "k", "--server", "x"], "--server"),
        (["profile", "add", "x"], "--namesrv"),
        (["profile", "use"], "Missing argument"),
        (["history"], "Missing argument"),
        (["completion", "csh"], "'csh' is not one of"),
        (["lag", "--every", "0"], "--every"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_value_is_a_usage_error(words: list[str], text: str) -> None:
    """
    Exit code 2, and the option or argument that it is about.
    """
    found = run(*words)
    assert 2 == found.exit_code
    assert text in found.stderr


@pytest.mark.parametrize("url", ["ftp://x", "nowhere", "http://"])
def test_a_webhook_that_is_no_url_is_refused_at_once(url: str) -> None:
    """
    Before anything is asked of a cluster.
    """
    found = run("monitor", "--webhook", url, "-n", "127.0.0.1:1")
    assert (1, True) == (found.exit_code, is_one_error(found))
    assert "is no URL to post to" in found.stderr


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_name_server_that_is_down_is_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Exit code 1, at once and not after a minute.
    """
    monkeypatch.chdir(tmp_path)
    found = run(*words, "-n", "127.0.0.1:1")
    assert 1 == found.exit_code
    assert is_one_error(found), found.stderr
    assert "127.0.0.1:1" in found.stderr


@pytest.mark.parametrize(
    "words, text",
    [
        (["tail", "nosuch", "--until", "now"], "no route for topic 'nosuch'"),
        (["lag", "nosuch"], "no broker knows group 'nosuch'"),
        (["lag", "g", "--topic", "ordrs"], "there is no topic 'ordrs'; did you mean 'orders'?"),
        (["history", "0A", "--topic", "ordrs"], "there is no topic 'ordrs'"),
        (["config", "explain", "nosuch"], "unknown setting nosuch"),
        (["config", "explain", "fileReservedTime", "--broker", "127.0.0.1:1"], "127.0.0.1:1"),
        (["profile", "show", "nosuch"], "there is no profile 'nosuch'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_name_that_nobody_knows_is_one_line(
    gantry: GantryCluster, words: list[str], text: str
) -> None:
    """
    Topics, groups, brokers, settings and profiles: exit code 1, and the nearest name if there is
    one.
    """
    gantry.create_topic("orders")
    more = [] if words[0] == "profile" else ["-n", gantry.namesrv]
    found = run(*words, *more)
    assert 1 == found.exit_code
    assert is_one_error(found), found.stderr
    assert text in found.stderr


@pytest.mark.parametrize(
    "words, code, text",
    [
        (["lag"], 1, "error: connect to 127.0.0.1:1 failed"),
        (["lag", "g"], 1, "error: connect to 127.0.0.1:1 failed"),
        (["doctor"], 1, "registered 127.0.0.1:1, which does not answer from here"),
        (["monitor", "--rounds", "1"], 0, "PROBLEM unknown: broker broker-x does not answer"),
        (["debug", "bundle", "-f", "b.tar.gz"], 0, "missing (missing.json says why)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_broker_that_is_down_is_named(
    gantry: GantryCluster,
    words: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A command that needs it ends with one line; one that looks at everything tells the rest.
    """
    monkeypatch.chdir(tmp_path)

    async def look() -> Result:
        peer = await Peer.to_namesrv(gantry.cluster)
        await register(peer, "broker-x", 1)
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, run, *words, "-n", gantry.namesrv)
        peer.close()
        return found

    found = gantry.call(look())
    assert code == found.exit_code, found.output
    assert text in found.output


def test_a_reader_that_leaves_is_no_failure(gantry: GantryCluster) -> None:
    """
    `gantry monitor | head -1` ends with the reader, not with the next round.
    """
    process = subprocess.Popen(
        [BIN / "gantry", "monitor", "-n", gantry.namesrv, "--every", "600"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (0, b"") == (process.wait(SECONDS_MAX), process.stderr.read())
    process.stderr.close()
