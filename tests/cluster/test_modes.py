"""RocketMQ's deployment modes on one machine, as processes: with one command, and by hand."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_cli import BIN, SECONDS_MAX, Up, gantry

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

CONF = Path(__file__).parents[2] / "conf"
HOST = "127.0.0.1"
SYNC_SECONDS_MAX = 60.0
"""How long a slave may take to find a master that came back at another address."""


def kill(data: Path, member: str, signum: int = signal.SIGKILL) -> None:
    """Signal a broker of `gantry up`; its lock file names the process."""
    (pid,) = re.findall(r"\d+", (data / member / "store" / "lock").read_text())
    os.kill(int(pid), signum)


def rows(*arguments: str, code: int = 0) -> list[dict[str, object]]:
    """What a command prints as JSON lines."""
    found = gantry(*arguments, "-o", "jsonl")
    assert code == found.returncode, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


def send(namesrv: str, *bodies: str, topic: str = "orders") -> list[object]:
    """Send messages, one after the other; returns their statuses."""
    return [rows("send", topic, body, "-n", namesrv)[0]["status"] for body in bodies]


def stored(namesrv: str, topic: str = "orders") -> list[object]:
    """The bodies of all messages of a topic."""
    found = rows("tail", topic, "--from", "first", "--until", "now", "-n", namesrv)
    return [row["body"] for row in found]


def members(namesrv: str, code: int = 0) -> dict[str, dict[str, object]]:
    """The rows of `gantry cluster`, as `broker-a/0`."""
    found = rows("cluster", "-n", namesrv, code=code)
    return {f"{row['broker']}/{row['id']}": row for row in found}


def stderr_line(up: Up) -> str:
    assert up.process.stderr is not None
    return up.process.stderr.readline().rstrip()


def close_streams(up: Up) -> None:
    """Of a process that has ended by itself."""
    for stream in (up.process.stdout, up.process.stderr):
        assert stream is not None
        stream.close()


class TestUp:
    @pytest.mark.timeout(120)
    def test_a_lost_master_loses_nothing(self, tmp_path: Path) -> None:
        """2m-2s-sync: what was sent is read from the slave, and the other master goes on; a new
        start has both masters again."""
        bodies = [str(number) for number in range(6)]
        with Up(tmp_path, "--mode", "2m-2s-sync") as up:
            assert 4 == len(up.brokers)
            assert 0 == gantry("topic", "create", "orders", "-n", up.namesrv).returncode
            assert ["SEND_OK"] * 6 == send(up.namesrv, *bodies)
            before = members(up.namesrv)
            kill(tmp_path, "broker-a")
            assert "mqbroker broker-a ended with -9; the others go on" == stderr_line(up)
            after = members(up.namesrv, code=1)
            assert bodies == stored(up.namesrv)
            assert ["SEND_OK"] == send(up.namesrv, "more")
            assert 0 == up.stop()
        with Up(tmp_path, "--mode", "2m-2s-sync") as again:
            assert sorted([*bodies, "more"]) == sorted(map(str, stored(again.namesrv)))
            assert before.keys() == members(again.namesrv).keys()

        assert up.brokers == [
            before[name]["address"]
            for name in ("broker-a/0", "broker-b/0", "broker-a/1", "broker-b/1")
        ]
        assert {"master", "slave"} == {before["broker-a/0"]["role"], before["broker-a/1"]["role"]}
        assert (1, None) == (before["broker-a/0"]["slavesInSync"], before["broker-a/0"]["inSync"])
        assert (True, 0) == (before["broker-a/1"]["inSync"], before["broker-a/1"]["behindBytes"])
        assert before.keys() - after.keys() == {"broker-a/0"}
        assert not after["broker-a/1"]["inSync"]
        assert after["broker-b/1"]["inSync"]

    def test_a_lost_slave_is_told_in_the_answer(self, tmp_path: Path) -> None:
        """The message is stored, on one machine only; the mode goes on."""
        with Up(tmp_path, "--mode", "2m-2s-sync") as up:
            assert ["SEND_OK"] == send(up.namesrv, "a", topic="broker-a")
            kill(tmp_path, "broker-a-s")
            assert "mqbroker broker-a-s ended with -9; the others go on" == stderr_line(up)
            assert ["SLAVE_NOT_AVAILABLE"] == send(up.namesrv, "b", topic="broker-a")
            assert ["SEND_OK"] == send(up.namesrv, "c", topic="broker-b")
            found = members(up.namesrv)

        assert found.keys() == {"broker-a/0", "broker-b/0", "broker-b/1"}
        assert 0 == found["broker-a/0"]["slavesInSync"]

    def test_without_a_broker_left_it_ends(self, tmp_path: Path) -> None:
        """The exit code says that nobody asked for it."""
        with Up(tmp_path, "--mode", "2m-noslave") as up:
            kill(tmp_path, "broker-b")
            assert "mqbroker broker-b ended with -9; the others go on" == stderr_line(up)
            kill(tmp_path, "broker-a")
            assert 1 == up.process.wait(SECONDS_MAX)
            assert "error: mqbroker broker-a ended with -9" == stderr_line(up)
            close_streams(up)

    def test_without_the_name_server_it_ends(self, tmp_path: Path) -> None:
        """Nobody finds the brokers without it."""
        with Up(tmp_path, "--mode", "2m-noslave") as up:
            children = Path(f"/proc/{up.process.pid}/task/{up.process.pid}/children")
            os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
            assert 1 == up.process.wait(SECONDS_MAX)
            assert "error: mqnamesrv ended with -9" == stderr_line(up)
            close_streams(up)

    def test_an_async_master_waits_for_nobody(self, tmp_path: Path) -> None:
        """2m-2s-async: without its slave a master answers as before; --config counts for all; a
        member that does not answer is shown."""
        given = tmp_path / "given.conf"
        given.write_text("brokerClusterName=shop\n")
        with Up(tmp_path, "--mode", "2m-2s-async", "--config", str(given)) as up:
            kill(tmp_path, "broker-a-s")
            assert "mqbroker broker-a-s ended with -9; the others go on" == stderr_line(up)
            assert ["SEND_OK"] == send(up.namesrv, "b", topic="broker-a")
            kill(tmp_path, "broker-b-s", signal.SIGSTOP)
            found = members(up.namesrv, code=1)
            kill(tmp_path, "broker-b-s", signal.SIGCONT)

        silent = [name for name, row in found.items() if row["trouble"]]
        assert ["broker-b/1"] == silent
        assert {"shop"} == {row["cluster"] for row in found.values()}


class TestRaftGroup:
    """`--mode dledger`."""

    @pytest.mark.timeout(120)
    def test_a_lost_leader_loses_nothing(self, tmp_path: Path) -> None:
        """It is killed while others send; another one serves, and a new start has all of them."""
        with Up(tmp_path, "--mode", "dledger") as up:
            assert 0 == gantry("topic", "create", "orders", "-n", up.namesrv).returncode
            bodies = [str(number) for number in range(8)]
            assert ["SEND_OK"] * 4 == send(up.namesrv, *bodies[:4])
            before = raft(up.namesrv)
            (leader,) = (name for name, row in before.items() if row["serves"])
            kill(tmp_path, f"broker-{leader}")
            assert f"mqbroker broker-{leader} ended with -9; the others go on" == stderr_line(up)
            assert ["SEND_OK"] * 4 == send(up.namesrv, *bodies[4:])
            assert sorted(bodies) == sorted(map(str, stored(up.namesrv)))
            after = raft(up.namesrv, code=1)
            assert 0 == up.stop()
        with Up(tmp_path, "--mode", "dledger") as again:
            assert sorted(bodies) == sorted(map(str, stored(again.namesrv)))
            found = raft(again.namesrv)

        assert {"n0", "n1", "n2"} == before.keys() == after.keys() == found.keys()
        assert after[leader]["trouble"] == "down"
        assert 1 == sum(bool(row["serves"]) for row in after.values())
        assert {0} == {row["behindBytes"] for row in found.values()}

    def test_leadership_is_handed_on(self, tmp_path: Path) -> None:
        """To a member of the operator's choice; a wrong one is refused."""
        with Up(tmp_path, "--mode", "dledger") as up:
            members_of = raft(up.namesrv)
            chosen = next(name for name, row in members_of.items() if not row["serves"])
            moved = gantry("raft", "transfer", "RaftNode00", "--to", chosen, "-n", up.namesrv)
            wrong = gantry("raft", "transfer", "RaftNode00", "--to", "n9", "-n", up.namesrv)
            other = gantry("raft", "transfer", "nobody", "-n", up.namesrv)
            found = raft(up.namesrv)

        assert f"{chosen} leads RaftNode00 now\n" == moved.stdout.decode()
        assert b"n9 is no member of RaftNode00, which has n0, n1, n2" in wrong.stderr
        assert b"there is no raft group nobody; name servers know RaftNode00" in other.stderr
        assert found[chosen]["serves"]


def raft(namesrv: str, code: int = 0) -> dict[str, dict[str, object]]:
    """The rows of `gantry raft status` by member."""
    return {str(row["id"]): row for row in rows("raft", "status", "-n", namesrv, code=code)}


class Hand:
    """A name server and brokers, each started as an operator does."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._processes: list[subprocess.Popen[str]] = []
        port = free_port(HOST)
        self.namesrv = f"{HOST}:{port}"
        self._start(
            "mqnamesrv",
            f"-DbindAddress={HOST}",
            f"-DlistenPort={port}",
            f"-DkvConfigPath={root}/kv.json",
            f"-DlogDirectory={root}/logs",
        )

    def _start(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen([BIN / name, *arguments], stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "boot success" in line, line
        return process

    def broker(self, member: str, *settings: str) -> "subprocess.Popen[str]":
        """`mqbroker -n ADDR -c conf/2m-2s-sync/MEMBER.properties` with ports and folders given."""
        file = self._root / f"{member}.properties"
        if not file.exists():
            file.write_text((CONF / "2m-2s-sync" / f"{member}.properties").read_text())
        return self._start(
            "mqbroker",
            "-n",
            self.namesrv,
            "-c",
            str(file),
            f"-DlistenPort={free_port(HOST, OTHER_PORTS)}",
            f"-DbrokerIP1={HOST}",
            f"-DbindAddress={HOST}",
            "-DstoreProfile=dev",
            f"-DstorePathRootDir={self._root}/{member}",
            f"-DlogDirectory={self._root}/logs/{member}",
            *(f"-D{setting}" for setting in settings),
        )

    def await_slave(self) -> None:
        """Wait until the master of broker-a has a slave in sync."""
        ends = time.monotonic() + SYNC_SECONDS_MAX
        while time.monotonic() < ends:
            if members(self.namesrv)["broker-a/0"]["slavesInSync"]:
                return
        raise AssertionError("no slave in sync")

    def await_order(self) -> tuple[str, str]:
        """The folder and the offset of the cut that the log of broker-a's slave names."""
        for _ in range(300):
            for file in (self._root / "logs" / "broker-a-s").glob("*.log"):
                found = re.search(r"run `gantry store cut (\S+) --at (\d+)`", file.read_text())
                if found:
                    return found[1], found[2]
            time.sleep(0.1)
        raise AssertionError("the slave was not refused")

    def stop(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
                process.wait(SECONDS_MAX)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def by_hand(root: Path) -> Iterator[Hand]:
    hand = Hand(root)
    try:
        yield hand
    finally:
        hand.stop()


@pytest.mark.timeout(120)
def test_by_hand_a_slave_becomes_the_master(tmp_path: Path) -> None:
    """The files of `conf/` as operators start them; the slave of a lost master is started again as
    the master and goes on where that was, and the old master comes back as its slave."""
    with by_hand(tmp_path) as hand:
        master = hand.broker("broker-a")
        slave = hand.broker("broker-a-s")
        hand.await_slave()
        assert ["SEND_OK"] * 2 == send(hand.namesrv, "a", "b", topic="broker-a")
        master.kill()
        master.wait(SECONDS_MAX)
        assert "broker-a/0" not in members(hand.namesrv, code=1)
        slave.terminate()
        assert 0 == slave.wait(SECONDS_MAX)
        hand.broker("broker-a-s", "brokerRole=SYNC_MASTER", "brokerId=0")
        assert ["SLAVE_NOT_AVAILABLE"] == send(hand.namesrv, "c", topic="broker-a")
        assert {"a", "b", "c"} == set(stored(hand.namesrv, "broker-a"))
        hand.broker("broker-a", "brokerRole=SLAVE", "brokerId=1")
        hand.await_slave()
        assert ["SEND_OK"] == send(hand.namesrv, "d", topic="broker-a")
        found = members(hand.namesrv)

    assert ("master", "slave") == (found["broker-a/0"]["role"], found["broker-a/1"]["role"])
