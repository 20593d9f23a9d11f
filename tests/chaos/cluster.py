"""The servers and clients of one mode, and what faults do to them."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeVar

from chaos.clients import HOST, ClientFailed, Clients
from chaos.disk import Disk
from chaos.faults import Action, Harm, Scene
from chaos.modes import (
    BROKER_NAME,
    BROKER_PORT,
    NAMESRV,
    NAMESRV_PORT,
    Addresses,
    Member,
    Mode,
    leader_of,
)
from chaos.network import Network
from chaos.nodes import Node

SETTLE_SECONDS_MAX: Final = 40.0
LOOK_SECONDS: Final = 0.1
LOG_FILE_BYTES: Final = 64 * 1024
"""Small, so that a trial needs several files of the log: a full disk is felt at the next one."""

T = TypeVar("T")
MakeNetwork = Callable[[Sequence[str]], Network]
MakeDisk = Callable[[Network, str, Path], Disk]
"""Makes a disk, given the network, the host and the folder."""


class NotSettled(Exception):
    """The cluster did not come back to order in time."""


class Cluster:
    """A running mode."""

    def __init__(
        self,
        mode: Mode,
        make_network: MakeNetwork,
        folder: Path,
        *,
        java: Sequence[str] | None,
        make_disk: MakeDisk | None,
    ) -> None:
        self.mode = mode
        self._disks: dict[str, Disk] = {}
        folder.mkdir(parents=True)
        with ExitStack() as stack:
            self.network = make_network([*mode.nodes, HOST])
            stack.callback(self.network.close)
            addresses = self.network.addresses
            self._namesrv = f"{addresses[NAMESRV]}:{NAMESRV_PORT}"
            self.nodes = {NAMESRV: self._make_namesrv(folder, addresses)}
            if make_disk is not None:
                for name in mode.nodes[1:]:
                    self._disks[name] = make_disk(self.network, name, folder / name / "disk")
                    stack.callback(self._disks[name].close)
            for member in mode.members:
                self.nodes[member.name] = self._make_broker(member, folder, addresses)
            for node in self.nodes.values():
                stack.callback(node.kill)
            self.start(*self.nodes)
            self.clients = Clients(self.network, self._namesrv, folder, java)
            stack.callback(self.clients.close)
            self._stack = stack.pop_all()

    def _make_namesrv(self, folder: Path, addresses: Addresses) -> Node:
        home = folder / NAMESRV
        settings = {
            "bindAddress": self.network.bound[NAMESRV],
            "listenPort": str(NAMESRV_PORT),
            "kvConfigPath": str(home / "kv.json"),
            "logDirectory": str(home / "logs"),
        }
        return Node(NAMESRV, self.network, home, "mqnamesrv", settings)

    def _make_broker(self, member: Member, folder: Path, addresses: Addresses) -> Node:
        home = folder / member.name
        settings = {
            "namesrvAddr": self._namesrv,
            "brokerIP1": addresses[member.name],
            "brokerIP2": addresses[member.name],
            "bindAddress": self.network.bound[member.name],
            "listenPort": str(BROKER_PORT),
            "storeProfile": "dev",
            "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
            "storePathRootDir": str(home / "disk" / "store"),
            "logDirectory": str(home / "logs"),
            **member.settings(addresses),
        }
        disk = self._disks.get(member.name)
        node = Node(member.name, self.network, home, "mqbroker", settings)
        if disk is not None:
            node.module, node.environment = disk.program, disk.environment
        return node

    def start(self, *names: str) -> None:
        """Start servers that do not run, the name server first, and wait until they serve."""
        down = [node for name, node in self.nodes.items() if name in names and not node.running]
        for node in down:
            node.start()
            if node.name == NAMESRV:
                node.await_ready()
        for node in down:
            node.await_ready()

    def leader(self) -> str | None:
        """The member that takes messages, as the name server knows it."""
        try:
            brokers = self.clients.ours.ask("brokers", name=BROKER_NAME)
        except ClientFailed:
            return None
        return leader_of(brokers, self.network.addresses)

    def scene(self) -> Scene:
        return Scene(self.mode.nodes, self.await_leader(), self.mode.fixed, (HOST,))

    def await_leader(self) -> str:
        """Wait until the name server knows who leads."""
        return _await(self.leader, "nobody leads")

    def await_order(self, seconds: float = SETTLE_SECONDS_MAX) -> None:
        """Wait until all serve and the copies are in sync."""
        copies = len(self.mode.members) - 1
        whole = "not every copy is in sync"
        _await(lambda: self._copies_in_sync() == copies or None, whole, seconds)

    def await_topic(self, topic: str) -> None:
        """Wait until every member has the topic, and the name server knows it of all."""
        count = len(self.mode.members)
        _await(lambda: self._holders(topic) == count or None, f"not every member has {topic}")

    def _holders(self, topic: str) -> int:
        """How many members would still be readable without the others."""
        try:
            return int(self.clients.ours.ask("holders", name=BROKER_NAME, topic=topic))
        except ClientFailed:
            return 0

    def _copies_in_sync(self) -> int:
        leader = self.leader()
        if leader is None:
            return -1
        address = f"{self.network.addresses[leader]}:{BROKER_PORT}"
        try:
            return int(self.clients.ours.ask("in_sync", address=address))
        except ClientFailed:
            return -1

    def begin(self, harm: Harm) -> None:
        if harm.links:
            self.network.set_links(harm.links)
        for name in harm.nodes:
            self._hit(harm.action, self.nodes[name])

    def _hit(self, action: Action, node: Node) -> None:
        if action == "kill":
            node.kill()
        elif action == "suspend":
            node.suspend()
        elif action != "network":
            self._disks[node.name].begin(action, node.pid)

    def undo(self, harm: Harm) -> None:
        if harm.links:
            self.network.set_links({})
        for name in harm.nodes:
            self._help(harm.action, self.nodes[name])
        self.start(*harm.nodes)

    def _help(self, action: Action, node: Node) -> None:
        if action == "suspend":
            node.resume()
        elif action == "disk-read-only":  # nobody can repair a disk that is in use
            node.kill()
        if node.name in self._disks and action not in ("kill", "suspend", "network"):
            self._disks[node.name].undo(action, node.pid)

    def close(self) -> None:
        self._stack.close()


def _await(look: Callable[[], T | None], otherwise: str, seconds: float = SETTLE_SECONDS_MAX) -> T:
    """What `look` finds, as soon as it does."""
    end = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > end:
            raise NotSettled(f"{otherwise} after {seconds:.0f} s")
        time.sleep(LOOK_SECONDS)
    return found
