"""Hosts as network namespaces, and the switch between them.

A host is a process that only waits, in a network and a mount namespace of its own; servers and
clients enter them. When its pipe closes the process ends, and with the last process in them the
namespaces, their devices and their mounts: also after `kill -9` of this program, which leaves only
its temporary folder and the control group of a slow disk.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from chaos.links import Links
from chaos.modes import BROKER_PORT, NAMESRV_PORT, RAFT_PORT

MTU_BYTES: Final = 9_000
PORTS: Final = (NAMESRV_PORT, BROKER_PORT - 2, BROKER_PORT, BROKER_PORT + 1, RAFT_PORT)
"""All ports of servers: those of clients, of slaves and of the members of a raft group."""
TOOLS: Final = ("unshare", "nsenter", "ip")


class Missing(Exception):
    """This machine lacks something that is needed; the text says what."""


class Network(Protocol):
    """Hosts that reach each other, until they are told not to."""

    addresses: dict[str, str]
    """The address of each host, as others are told."""
    bound: dict[str, str]
    """The address that a server on each host binds."""

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on a host; it has the process id of the command."""

    def set_links(self, links: Links) -> None:
        """Which links lose packets from now on; all others lose none."""

    def close(self) -> None: ...


def environment(**more: str) -> dict[str, str]:
    """That of a child process: it finds this package wherever its parent was started."""
    here = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": paths, **more}


def end(process: "subprocess.Popen[str]", seconds: float = 10.0) -> None:
    """Close the input of a process that ends then; one that does not is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def run(*command: str) -> None:
    """Run a tool; what it complains about is the error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


def why_no_namespaces() -> str | None:
    """What this machine lacks, or None."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} missing"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun missing"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "no right to make network namespaces"


class LinkProcess:
    """The process between hosts: it is told which links lose packets, and ends with its input."""

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
            start_new_session=True,
        )
        self._module = module
        try:
            self._hear()
        except Missing:
            self.close()
            raise

    def _hear(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ok\n":
            raise Missing(f"{self._module} has ended; what it wrote says why")

    def set_links(self, links: Links) -> None:
        assert self._process.stdin is not None
        rows = [[a, b, share] for (a, b), share in links.items()]
        self._process.stdin.write(json.dumps(rows) + "\n")
        self._process.stdin.flush()
        self._hear()

    def close(self) -> None:
        end(self._process)


class Namespaces:
    """The real thing."""

    def __init__(self, hosts: Sequence[str], seed: int) -> None:
        self.addresses = {host: f"10.91.0.{at + 1}" for at, host in enumerate(hosts)}
        self.bound = self.addresses
        self._holders: dict[str, subprocess.Popen[str]] = {}
        with ExitStack() as stack:
            for host in hosts:
                self._holders[host] = self._hold()
                stack.callback(end, self._holders[host])
            self._switch = self._start_switch(seed)
            stack.callback(self._switch.close)
            for at, host in enumerate(hosts):
                self._plug_in(host, self._device(at))
            self._stack = stack.pop_all()

    def _device(self, at: int) -> str:
        """Devices are made in our own namespace: their names have to differ from other runs'."""
        return f"c{next(iter(self._holders.values())).pid}n{at}"

    @staticmethod
    def _hold() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the program that started it
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("ready\n")  # `cat` says it when the namespaces are there
        process.stdin.flush()
        if not process.stdout.readline():
            end(process)
            raise Missing("unshare could not make namespaces")
        return process

    def _start_switch(self, seed: int) -> LinkProcess:
        specs = [
            f"{host}={self.addresses[host]}={self._device(at)}"
            for at, host in enumerate(self._holders)
        ]
        return LinkProcess("chaos.switch", [str(seed), *specs])

    def _plug_in(self, host: str, device: str) -> None:
        run("ip", "link", "set", device, "netns", str(self._holders[host].pid))
        inside = self.command(host, ["ip"])
        run(*inside, "address", "add", f"{self.addresses[host]}/24", "dev", device)
        run(*inside, "link", "set", device, "mtu", str(MTU_BYTES), "up")
        run(*inside, "link", "set", "lo", "up")

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        pid = str(self._holders[host].pid)
        return ["nsenter", "--net", "--mount", "--target", pid, "--", *command]

    def set_links(self, links: Links) -> None:
        self._switch.set_links(links)

    def close(self) -> None:
        self._stack.close()
