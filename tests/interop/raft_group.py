"""A raft group of three brokers, ours or RocketMQ's of a release, and a name server of either."""

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import real
from process import Process
from wire import Connection

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

OURS = "ours"
GROUP = "RaftNode00"
MEMBERS = ("n0", "n1", "n2")
SECONDS_MAX = 60.0
LOOK_SECONDS = 0.02
LEADER_ID = 0
HA_STATUS = 907
LEADS = re.compile(r"^.*? (n\d) leads \S+ in term (\d+)$", re.MULTILINE)


class RaftGroup:
    """The members; each can be killed, frozen and started again."""

    def __init__(self, kind: str = OURS, name_server: str | None = None, **settings: str) -> None:
        self.kind, self._name_server, self._settings = kind, name_server or kind, settings
        self.directory = Path(tempfile.mkdtemp(prefix="gantrymq-group-"))
        self._ports: dict[str, int] = {}
        taken: set[int] = set()
        for member in MEMBERS:
            self._ports[member] = _free_port(taken, OTHER_PORTS)
        raft_ports = [_free_port(taken) for _ in MEMBERS]
        self._peers = ";".join(
            f"{member}-127.0.0.1:{port}" for member, port in zip(MEMBERS, raft_ports, strict=True)
        )
        self.namesrv = f"127.0.0.1:{_free_port(taken)}"
        self._running: dict[str, Process] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            port = self.namesrv.rpartition(":")[2]
            settings = {"listenPort": port, "kvConfigPath": str(self.directory / "kvConfig.json")}
            name_server = self._boot("namesrv", self._name_server, settings)
            self._stack.enter_context(name_server)
            with ThreadPoolExecutor(len(MEMBERS)) as pool:
                list(pool.map(self.start, MEMBERS))
            until(self.is_complete)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in list(self._running):
            self.kill(member)
        self._stack.close()
        if error is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    # members

    def start(self, member: str) -> None:
        """Start a member over its store; it may not know its leader yet."""
        more = {
            "brokerName": GROUP,
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": self.namesrv,
            "enableDLegerCommitLog": "true",
            "dLegerGroup": GROUP,
            "dLegerPeers": self._peers,
            "dLegerSelfId": member,
        }
        if self.kind != OURS:
            more = {**real.JAVA_ONLY_SETTINGS, **more}
        settings = real.broker_settings(self.store(member), self._ports[member], more)
        self._running[member] = self._boot(member, self.kind, {**settings, **self._settings})

    def _boot(self, part: str, kind: str, settings: Mapping[str, str]) -> Process:
        directory = self.directory / part
        directory.mkdir(exist_ok=True)
        if kind != OURS:
            main = real.NAMESRV_MAIN if part == "namesrv" else real.BROKER_MAIN
            return real.start_java(kind, part, main, settings, directory)
        own = {"bindAddress": "127.0.0.1", "logDirectory": str(directory)}
        config = real.write_properties(directory / f"{part}.conf", {**settings, **own})
        program = "mqnamesrv" if part == "namesrv" else "mqbroker"
        return real.start_ours(program, ["-c", str(config)], directory)

    def kill(self, member: str) -> None:
        """End a member without a word."""
        self._running.pop(member).kill()

    def freeze(self, member: str) -> None:
        """Let a member do nothing until `thaw`; its connections stay open."""
        os.kill(self.pid(member), signal.SIGSTOP)

    def thaw(self, member: str) -> None:
        os.kill(self.pid(member), signal.SIGCONT)

    def pid(self, member: str) -> int:
        return self._running[member].pid

    def pids(self) -> list[int]:
        """The processes of all members that run."""
        return [process.pid for process in self._running.values()]

    def store(self, member: str) -> Path:
        return self.directory / member / "store"

    def address(self, member: str) -> str:
        return f"127.0.0.1:{self._ports[member]}"

    # what is known about them

    def known(self) -> dict[int, str]:
        """The members by brokerId, as the name server has them."""
        with Connection(self.namesrv) as connection:
            text = connection.ask(real.CLUSTER_INFO).body.decode()
        # RocketMQ writes numbers as keys, which is no JSON.
        info = json.loads(re.sub(r"([{,])(\d+):", r'\1"\2":', text))
        brokers = info["brokerAddrTable"].get(GROUP, {"brokerAddrs": {}})
        members = {self.address(member): member for member in MEMBERS}
        return {int(number): members[at] for number, at in brokers["brokerAddrs"].items()}

    @property
    def leader(self) -> str | None:
        """The member that the name server has as the master."""
        return self.known().get(LEADER_ID)

    def wait_for_leader(self, *, other_than: str, seconds: float = SECONDS_MAX) -> str:
        """The next leader that the name server has."""
        until(lambda: self.leader not in (None, other_than), seconds)
        leader = self.leader
        assert leader is not None
        return leader

    def is_complete(self) -> bool:
        """Whether all members serve and have what the leader has.

        A new member of ours has no vote before its first leader told it something.
        """
        known = self.known()
        if len(known) < len(MEMBERS) or LEADER_ID not in known:
            return False
        if self.kind != OURS:
            return True
        with Connection(self.address(known[LEADER_ID])) as connection:
            status = json.loads(connection.ask(HA_STATUS).body)
        return bool(status["inSyncSlaveNums"] == len(MEMBERS) - 1)

    def elections(self) -> dict[int, str]:
        """The leaders of our members' logs by their term."""
        found: dict[int, str] = {}
        for member in MEMBERS:
            for path in (self.directory / member).glob("*.log"):
                for who, term in LEADS.findall(path.read_text()):
                    found[int(term)] = who
        return found


def _free_port(taken: set[int], beside: tuple[int, ...] = ()) -> int:
    """A port that no other part of the group has, with free neighbours."""
    while True:
        port = free_port("127.0.0.1", beside)
        wanted = {port, *(port + distance for distance in beside)}
        if not wanted & taken:
            taken |= wanted
            return port


def until(holds: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(LOOK_SECONDS)
