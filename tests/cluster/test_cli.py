"""The commands as scripts use them: real processes, exit codes, what is on stdout and stderr."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from gantrymq import ClientOptions, Message, Producer

BIN = Path(sys.executable).parent
READY = re.compile(r"gantrymq ready namesrv=(\S+) broker=(\S+) console=(\S+)")
SECONDS_MAX = 30


class Up:
    """`gantry up` on free ports."""

    def __init__(self, data: Path, *more: str) -> None:
        self.process = subprocess.Popen(
            [BIN / "gantry", "up", "--data", data, "--namesrv-port", "0", "--broker-port", "0",
             "--no-console", *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if match := READY.match(line):
                self.namesrv, brokers, self.console = match.groups()
                self.brokers = brokers.split(",")
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing outlives its test, also when the test fails."""
        if self.process.poll() is None:
            self.stop()

    def stop(self, signum: int = signal.SIGTERM) -> int:
        self.process.send_signal(signum)
        code = self.process.wait(SECONDS_MAX)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up")) as running:
        yield running


def gantry(*arguments: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}
    return subprocess.run(
        [BIN / "gantry", *arguments], input=stdin, capture_output=True, check=False,
        env=clean | env,
        timeout=SECONDS_MAX,
    )  # fmt: skip


class TestUp:
    def test_says_what_operators_look_for_and_ends_with_the_ready_line(self, up: Up) -> None:
        """
        RocketMQ's two start-up lines, then ours.
        """
        first, second, third = up.lines

        assert "The Name Server boot success. serializeType=JSON" == first
        assert f"The broker[broker-a, {up.brokers[0]}] boot success. serializeType=JSON" in second
        assert third.endswith("console=-")

    @pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
    def test_stops_cleanly_and_starts_again_with_its_data(
        self, signum: int, tmp_path: Path
    ) -> None:
        """
        Exit code 0, no sign of a crash left, the message still there.
        """
        with Up(tmp_path) as first:
            assert 0 == gantry("send", "orders", "kept", "--namesrv", first.namesrv).returncode
            assert 0 == first.stop(signum)
        assert not (tmp_path / "broker-a" / "store" / "abort").exists()
        with Up(tmp_path) as again:
            found = gantry("tail", "orders", "--from", "first", "--until", "now", "-o", "jsonl",
                           "--namesrv", again.namesrv)  # fmt: skip

        assert "kept" == json.loads(found.stdout)["body"]

    def test_a_second_one_on_the_same_data_is_refused_by_pid(self, tmp_path: Path) -> None:
        """
        The error names the process that holds the store.
        """
        command = [BIN / "gantry", "up", "--data", tmp_path, "--namesrv-port", "0"]
        with Up(tmp_path):
            second = subprocess.run(
                [*command, "--broker-port", "0"], capture_output=True, check=False, text=True,
                timeout=SECONDS_MAX,
            )  # fmt: skip
            (owner,) = re.findall(r"process (\d+)", second.stderr)
            holder = Path(f"/proc/{owner}/cmdline").read_text()

        assert 1 == second.returncode
        assert "mqbroker" in holder

    def test_more_brokers_are_a_larger_cluster(self, tmp_path: Path) -> None:
        """
        Each with a port, a name and a store of its own.
        """
        with Up(tmp_path, "--brokers", "2") as running:
            assert 0 == running.stop()

        assert 2 == len(set(running.brokers))
        assert {"broker-a", "broker-b"} <= {path.name for path in tmp_path.iterdir()}

    def test_a_misspelt_setting_stops_the_start(self, tmp_path: Path) -> None:
        """
        And names the nearest key.
        """
        (tmp_path / "x.conf").write_text("flushDiskTpye=SYNC_FLUSH\n")
        found = gantry("up", "--data", str(tmp_path), "--namesrv-port", "0", "--broker-port", "0",
                       "--config", str(tmp_path / "x.conf"))  # fmt: skip

        assert 1 == found.returncode
        assert b"did you mean flushDiskType?" in found.stderr

    def test_logs_lie_in_the_data_folder(self, tmp_path: Path) -> None:
        """
        namesrv.log and broker.log, with the start-up lines in them.
        """
        with Up(tmp_path):
            pass

        assert "boot success" in (tmp_path / "logs" / "namesrv.log").read_text()
        assert "boot success" in (tmp_path / "logs" / "broker-a" / "broker.log").read_text()


class TestSendAndTail:
    def test_a_message_goes_in_and_comes_out(self, up: Up) -> None:
        """
        With everything scripts rely on in its JSON.
        """
        sent = gantry("send", "shop", "one book", "--tag", "paid", "--key", "k1", "--key", "k2",
                      "-o", "json", NAMESRV_ADDR=up.namesrv)  # fmt: skip
        receipt = json.loads(sent.stdout)
        assert {"status", "msgId", "offsetMsgId", "queueId", "queueOffset"} == receipt.keys()
        found = gantry("tail", "shop", "--from", "first", "--until", "now", "-o", "jsonl",
                       NAMESRV_ADDR=up.namesrv)  # fmt: skip
        row = json.loads(found.stdout)

        assert ("SEND_OK", receipt["msgId"]) == (receipt["status"], row["msgId"])
        assert ("shop", "paid", ["k1", "k2"], "one book", 0) == (
            row["topic"], row["tags"], row["keys"], row["body"], row["queueOffset"],
        )  # fmt: skip

    def test_a_body_that_is_no_text_is_base64(self, up: Up) -> None:
        """
        Under another name, so that nobody mistakes it.
        """
        gantry("send", "bytes", "-", "--namesrv", up.namesrv, stdin=b"\xff\x00")
        found = gantry("tail", "bytes", "--from", "first", "--until", "now", "-o", "jsonl",
                       "--namesrv", up.namesrv)  # fmt: skip
        row = json.loads(found.stdout)

        assert ("/wA=", False) == (row["bodyBase64"], "body" in row)

    def test_following_prints_what_arrives(self, up: Up) -> None:
        """
        Until it is stopped.
        """
        gantry("send", "live", "before", "--namesrv", up.namesrv)
        tail = subprocess.Popen(
            [BIN / "gantry", "tail", "live", "--from", "first", "-o", "jsonl", "-n", up.namesrv],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert tail.stdout is not None
        assert "before" == json.loads(tail.stdout.readline())["body"]
        gantry("send", "live", "after", "--namesrv", up.namesrv)
        assert "after" == json.loads(tail.stdout.readline())["body"]
        tail.send_signal(signal.SIGINT)
        tail.stdout.close()

        assert 0 == tail.wait(SECONDS_MAX)

    @pytest.mark.parametrize(
        "arguments, code, words",
        [
            (["tail", "nosuch", "--until", "now"], 1, b"no route for topic 'nosuch'"),
            (["tail", "x", "--from", "soon"], 2, b"'soon' is none of"),
            (["send", "x"], 2, b"Missing argument"),
            (["send", "bad topic", "x"], 1, b"illegal characters"),
            (["send", "x", "y", "--property", "novalue"], 2, b"NAME=VALUE"),
            (["nosuch"], 2, b"No such command"),
        ],
    )
    def test_bad_input_is_one_clear_line(
        self, up: Up, arguments: list[str], code: int, words: bytes
    ) -> None:
        """
        On stderr, with the exit code that says whose fault it is, and nothing on stdout.
        """
        found = gantry(*arguments, NAMESRV_ADDR=up.namesrv)

        assert (code, b"") == (found.returncode, found.stdout)
        assert words in found.stderr

    def test_no_address_names_the_four_ways(self) -> None:
        """
        Never "connect to null failed".
        """
        found = gantry("send", "x", "y")

        assert 1 == found.returncode
        assert b"NAMESRV_ADDR" in found.stderr


class TestAddressPage:
    def test_clients_find_the_name_servers_by_it(self, up: Up, tmp_path: Path) -> None:
        """
        The fourth way: an HTTP page, here from a file that can be changed.
        """
        source = tmp_path / "nsaddr"
        source.write_text(f"{up.namesrv}\n")
        page = subprocess.Popen(
            [BIN / "gantry", "nsaddr", "--file", source, "--port", "0"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert page.stdout is not None
        url = page.stdout.readline().strip()
        host, port = re.findall(r"http://(.*):(\d+)/rocketmq/nsaddr", url)[0]

        async def send() -> str:
            options = ClientOptions(address_server_host=host, address_server_port=int(port))
            async with Producer(group="p", client=options) as producer:
                return (await producer.send(Message("paged", b"x"))).status

        try:
            assert "SEND_OK" == asyncio.run(send())
        finally:
            page.terminate()
            page.wait(SECONDS_MAX)
            page.stdout.close()


class TestServers:
    @pytest.mark.parametrize("name", ["mqnamesrv", "mqbroker"])
    def test_settings_can_be_printed(self, name: str) -> None:
        """
        `-p` shows every key with its value and ends.
        """
        found = subprocess.run(
            [BIN / name, "-p"], capture_output=True, check=False, text=True, timeout=SECONDS_MAX
        )

        assert 0 == found.returncode
        assert "listenPort=" in found.stdout
