"""What servers write to their logs: form and levels, at the start and at run time."""

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from logkit import loggers_restored

from gantrymq.base.errors import ConfigError
from gantrymq.base.network import free_port
from gantrymq.base.telemetry import start_logging
from gantrymq.base.telemetry_settings import TelemetrySettings, check_telemetry
from gantrymq.broker.settings.config import OTHER_PORTS

BIN = Path(sys.executable).parent
SECONDS_MAX = 20.0
TEXT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) (gantrymq\.[\w.]+) - (.+)$")


@contextmanager
def server(name: str, *settings: str) -> Iterator[None]:
    """A server as a process, up until the block ends."""
    command = [str(BIN / name), *(word for each in settings for word in ("-D", each))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "boot success" in process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.communicate()
        assert process.returncode == 0


@contextmanager
def servers(folder: Path, *settings: str) -> Iterator[tuple[str, str]]:
    """A name server and a broker, which log into the folder; their addresses."""
    namesrv = f"127.0.0.1:{free_port('127.0.0.1')}"
    port = free_port("127.0.0.1", OTHER_PORTS)
    common = "bindAddress=127.0.0.1", f"logDirectory={folder}", *settings
    with ExitStack() as stack:
        stack.enter_context(
            server(
                "mqnamesrv",
                f"listenPort={namesrv.partition(':')[2]}",
                f"kvConfigPath={folder}/kv.json",
                f"configStorePath={folder}/namesrv.properties",
                *common,
            )
        )
        stack.enter_context(
            server(
                "mqbroker",
                f"namesrvAddr={namesrv}",
                f"listenPort={port}",
                "brokerIP1=127.0.0.1",
                "storeProfile=dev",
                f"storePathRootDir={folder}/store",
                *common,
            )
        )
        yield namesrv, f"127.0.0.1:{port}"


def admin(command: str, *words: str) -> None:
    """A command of mqadmin, which has to succeed."""
    subprocess.run([str(BIN / "mqadmin"), command, *words], check=True, timeout=60)


def wait_for(path: Path, seen: Callable[[str], bool]) -> str:
    """The text of a log, as soon as it has what is looked for."""
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        if seen(text):
            return text
        time.sleep(0.02)
    raise AssertionError(text)


def test_lines_of_json_have_time_level_logger_and_message(tmp_path: Path) -> None:
    """With logFormat=json every line of both servers is an object, the first one included."""
    with servers(tmp_path, "logFormat=json"):
        for name in ("namesrv.log", "broker.log"):
            text = wait_for(tmp_path / name, lambda text: "boot success" in text)
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                assert {"time", "level", "logger", "message"} == line.keys()
                assert datetime.fromisoformat(line["time"]).tzinfo is not None
                assert line["level"] in logging.getLevelNamesMapping()
            assert any("boot success" in line["message"] for line in lines)


def test_levels_change_while_servers_run(tmp_path: Path) -> None:
    """
    Both servers start with logLevel=ERROR and write nothing; a change for all, or for the part
    that is asked about, has its lines at once, and the settings stay in their files.
    """
    with servers(tmp_path, "logLevel=ERROR") as (namesrv, broker):
        broker_log, namesrv_log = tmp_path / "broker.log", tmp_path / "namesrv.log"
        assert "" == broker_log.read_text() == namesrv_log.read_text()

        part = "broker.settings:INFO"
        admin("updateBrokerConfig", "-n", namesrv, "-b", broker, "-k", "logLevels", "-v", part)
        admin("updateBrokerConfig", "-n", namesrv, "-b", broker, "-k", "noSuchKey", "-v", "1")
        lines = wait_for(broker_log, lambda text: "noSuchKey" in text).splitlines()
        assert all(found and found[2].startswith("gantrymq.broker.settings")
                   for found in map(TEXT.match, lines))  # fmt: skip

        admin("updateNamesrvConfig", "-n", namesrv, "-k", "logLevel", "-v", "INFO")
        assert "logLevel=INFO" in (tmp_path / "namesrv.properties").read_text()
        host, _, port = namesrv.partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"\xff" * 8)
            assert b"" == connection.recv(1)
        wait_for(namesrv_log, lambda text: "refused: first byte 0xff" in text)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Writes lines by a function, with settings; gives the lines of the file."""

    def write(log: Callable[[], Any], **settings: Any) -> list[str]:
        with loggers_restored():
            listener = start_logging(str(tmp_path), "s.log", TelemetrySettings(**settings))
            log()
            listener.stop()
        return (tmp_path / "s.log").read_text().splitlines()

    yield write
    os.unlink(tmp_path / "s.log")


def fail() -> None:
    try:
        raise ValueError("no\nsuch")
    except ValueError:
        logging.getLogger("gantrymq.store").exception("it failed")


def test_a_traceback_is_a_field_of_json(lines: Callable[..., list[str]]) -> None:
    """The message stays as it was written; the line is one line."""
    (line,) = lines(fail, log_format="json")

    found = json.loads(line)
    assert "it failed" == found["message"]
    assert found["exception"].endswith("ValueError: no\nsuch")


def test_a_traceback_is_in_its_line_of_text(lines: Callable[..., list[str]]) -> None:
    """Its line ends are escaped: a text from the network must not look like a line of its own."""
    (line,) = lines(fail)

    assert "it failed\\nTraceback" in line
    assert line.endswith("ValueError: no\\nsuch")


def test_what_is_no_utf_8_does_not_end_the_log(lines: Callable[..., list[str]]) -> None:
    """Halves of characters are written as escapes, which JSON reads back."""

    def log() -> None:
        logging.getLogger("gantrymq").warning("group %s", "a\udc80")

    assert "group a\udc80" == json.loads(lines(log, log_format="json")[0])["message"]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"log_level": "LOUD"}, "logLevel=LOUD: write DEBUG"),
        ({"log_levels": "store"}, "logLevels=store: write name:value"),
        ({"log_levels": "stroe:INFO"}, "logLevels=stroe: gantrymq has no such part"),
        ({"log_levels": "../x:INFO"}, "gantrymq has no such part"),
        ({"log_levels": "store:LOUD"}, "logLevels=LOUD: write DEBUG"),
    ],
)
def test_a_wrong_level_or_part_is_named(settings: dict[str, str], error: str) -> None:
    """At the start and at a change, in one line."""
    with pytest.raises(ConfigError, match=re.escape(error)):
        check_telemetry(TelemetrySettings(**settings))  # type: ignore[arg-type]
