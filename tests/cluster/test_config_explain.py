"""`gantry config explain`: which file, option or default a value comes from."""

import fnmatch
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gantrymq.broker.settings.rocketmq_keys import IGNORED_KEYS
from gantrymq.cli.config import NOTHING, REPLACED
from gantrymq.cli.main import main
from gantrymq.testing.threaded import GantryCluster


def explain(*words: str, code: int = 0) -> dict[str, Any]:
    found = CliRunner().invoke(main, ["config", "explain", *words, "-o", "jsonl"])
    assert code == found.exit_code, found.output
    row: dict[str, Any] = json.loads(found.stdout)
    return row


def test_the_strongest_wins_and_says_whom_it_beats(tmp_path: Path) -> None:
    """
    The command line stands above the last file, that above the first, that above the default.
    """
    one, two = tmp_path / "one.conf", tmp_path / "two.conf"
    one.write_text("# a comment\nfileReservedTime = 48\nmaxMessageSize=100000\n")
    two.write_text("fileReservedTime=24\n")
    files = ("-c", str(one), "-c", str(two))
    row = explain("fileReservedTime", *files, "-D", "fileReservedTime=5")
    assert ("5", "the command line (-D fileReservedTime)") == (row["value"], row["from"])
    assert f"24 of {two}, line 1, 48 of {one}, line 2" == row["beats"]
    row = explain("fileReservedTime", *files)
    assert ("24", f"{two}, line 1") == (row["value"], row["from"])
    assert f"{one}, line 3" == explain("maxMessageSize", *files)["from"]
    row = explain("flushDiskType", *files)
    assert ("ASYNC_FLUSH", "default", "at once") == (row["value"], row["from"], row["in force"])
    assert "SYNC_FLUSH answers a send after its flush" in row["meaning"]


def test_changes_that_a_broker_without_a_file_kept_count(tmp_path: Path) -> None:
    """
    They lie below its store; who and where a broker is never comes from there.
    """
    own = tmp_path / "config/broker.properties"
    own.parent.mkdir()
    own.write_text("fileReservedTime=7\nbrokerName=other\n")
    home = ("-D", f"storePathRootDir={tmp_path}")
    assert f"{own}, line 1" == explain("fileReservedTime", *home)["from"]
    assert "default" == explain("brokerName", *home)["from"]


def test_a_running_broker_is_asked(gantry: GantryCluster) -> None:
    """
    What is in force there, and whether that is the default, its file or its command line.
    """
    (broker,) = gantry.cluster.running
    place = f"127.0.0.1:{gantry.cluster.broker(broker).config.listen_port}"

    async def change() -> None:
        async with gantry.cluster.admin() as admin:
            await admin.update_broker_config(place, {"fileReservedTime": "11"})

    gantry.call(change())
    row = explain("fileReservedTime", "--broker", place)
    assert ("11", True) == (row["value"], row["from"].endswith("broker.properties, line 1"))
    assert "default" == explain("flushDiskType", "--broker", place)["from"]
    assert explain("storeProfile", "--broker", place)["from"].startswith("the command line, or ")


def test_rocketmqs_keys_without_effect_say_what_there_is_instead(tmp_path: Path) -> None:
    """
    A key that is accepted and means nothing, one that stops the start, and one that nobody knows.
    """
    file = tmp_path / "broker.conf"
    file.write_text("sendMessageThreadPoolNums=16\n")
    row = explain("sendMessageThreadPoolNums", "-c", str(file))
    assert ("16", f"{file}, line 1") == (row["value"], row["from"])
    assert "one event loop answers all requests" in row["instead"]
    assert "a broker does not start with it" in explain("enableLmq")["meaning"]
    found = CliRunner().invoke(main, ["config", "explain", "fileReservedTim"])
    assert (1, "") == (found.exit_code, found.stdout)
    assert "error: unknown setting fileReservedTim; did you mean fileReservedTime?" in found.stderr


def test_every_pattern_of_replaced_keys_is_of_use() -> None:
    """
    Each row of the table explains a key of RocketMQ, and most keys have a row or need none.
    """
    for pattern in REPLACED:
        assert fnmatch.filter(IGNORED_KEYS, pattern), pattern
    assert NOTHING not in REPLACED.values()


def test_a_name_servers_settings_are_explained(tmp_path: Path) -> None:
    """
    With --server namesrv the keys are those of name servers.
    """
    assert "default" == explain("scanNotActiveBrokerInterval", "--server", "namesrv")["from"]
    file = tmp_path / "namesrv.conf"
    file.write_text("listenPort=1234\n")
    row = explain("listenPort", "--server", "namesrv", "-c", str(file))
    assert ("1234", f"{file}, line 1") == (row["value"], row["from"])


@pytest.mark.parametrize(
    "words, code, text",
    [
        (["k", "--broker", "127.0.0.1:1", "-c", "x"], 2, "leave out -c"),
        (["fileReservedTime", "-D", "x"], 2, "write KEY=VALUE"),
        (["fileReservedTime", "-c", "/nowhere/broker.conf"], 1, "cannot read /nowhere/broker.conf"),
        (["fileReservedTime", "--broker", "127.0.0.1:1"], 1, "connect to 127.0.0.1:1 failed"),
    ],
)
def test_mistakes_are_one_line(words: list[str], code: int, text: str) -> None:
    """
    Files that are not there, brokers that do not answer, options that do not fit.
    """
    found = CliRunner().invoke(main, ["config", "explain", *words], env={**os.environ})
    assert code == found.exit_code
    assert text in found.stderr
    assert "Traceback" not in found.output
