"""Starts the processes of a deployment, watches and stops them."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantrymq.access.credentials import Credentials
from gantrymq.base.config import format_properties
from gantrymq.base.errors import GantryError
from gantrymq.base.network import TcpNetwork, free_port
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.settings import tls_settings
from gantrymq.cli.up.console_process import ConsolePlan
from gantrymq.cli.up.modes import BrokerSetup

if TYPE_CHECKING:
    from gantrymq.client.admin.admin import Admin

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
COPIES_SECONDS_MAX = 15.0
"""How long the ready line waits for slaves that are not in sync."""
COPIES_LOOK_SECONDS = 0.1
LEADER_SECONDS_MAX = 20.0
"""How long the ready line waits for a raft group to elect."""
PORTS_BETWEEN_BROKERS = 20
RAFT_PORT = 3
"""How far the port of the raft links is from the port for clients."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """All that is asked for."""

    root: Path
    host: str
    namesrv_port: int
    """0 for a free one."""
    broker_port: int
    """That of the first broker; 0 for free ones."""
    setups: list[BrokerSetup]
    files: tuple[str, ...]
    """Property files for all brokers."""
    tls: Mapping[str, str]
    """What these files say of TLS: the name server and this process need it, too."""
    access: Mapping[str, str]
    """Settings by which the name server asks for keys, too; none of them is secret."""
    credentials: Credentials | None
    """The key pair of the brokers themselves, with which this process asks how they are."""
    survives_losses: bool
    """Whether the others go on when a broker dies."""
    console: ConsolePlan | None = None


@dataclass
class ServerProcess:
    """A server that runs as a child process."""

    name: str
    process: asyncio.subprocess.Process
    port: int = 0
    url: str = ""
    """Of a console."""

    @property
    def end(self) -> str:
        """How it ended."""
        return f"{self.name} ended with {self.process.returncode}"


class ServerDied(Exception):
    """A child process ended before it was told to."""


async def supervise(deployment: Deployment) -> int:
    """Run all processes until a signal comes, or until one ends that the others need.

    Returns the exit code.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    host, setups = deployment.host, deployment.setups
    servers: list[ServerProcess] = []
    consoles: list[ServerProcess] = []
    namesrv_port = deployment.namesrv_port or free_port(host)
    namesrv = f"{host}:{namesrv_port}"
    try:
        servers.append(await _start_namesrv(deployment, namesrv_port))
        peers = _raft_peers(deployment)
        for number, setup in enumerate(setups):
            servers.append(await _start_broker(deployment, number, setup, namesrv, peers))
        if deployment.console is not None:
            consoles.append(await _start_console(deployment.console, namesrv))
        ready = _serve(deployment, servers, consoles, namesrv)
        if await _first(ready, stop, READY_SECONDS_MAX):
            addresses = ",".join(f"{host}:{server.port}" for server in servers[1:])
            url = next((console.url for console in consoles), "") or "-"
            print(f"gantrymq ready namesrv={namesrv} broker={addresses} console={url}", flush=True)
            watches = [asyncio.ensure_future(_tell_of_end(console)) for console in consoles]
            try:
                await _until_stopped(servers, stop, survives_losses=deployment.survives_losses)
            finally:
                for watch in watches:
                    watch.cancel()
        return 0
    except (ServerDied, TimeoutError) as error:
        print(f"error: {error or 'not ready in time'}", file=sys.stderr)
        return 1
    finally:
        await _stop_all([*servers, *consoles])


async def _first(ready: Coroutine[Any, Any, None], stop: asyncio.Event, seconds: float) -> bool:
    """Wait for the servers: True when all are ready, False when a stop is requested before."""
    starting = asyncio.ensure_future(ready)
    stopping = asyncio.ensure_future(stop.wait())
    waiting: list[asyncio.Future[Any]] = [starting, stopping]
    done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting in done:
        starting.result()
        return True
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await starting
    if not done:
        raise TimeoutError
    return False


async def _start(server: str, name: str, *arguments: str) -> ServerProcess:
    return await _start_code(
        f"from gantrymq.cli.servers import {server}; {server}()", name, *arguments
    )


async def _start_console(plan: ConsolePlan, namesrv: str) -> ServerProcess:
    code = "from gantrymq.cli.console import console; console(prog_name='gantry console')"
    return await _start_code(code, "the console", *plan.arguments(namesrv))


async def _start_code(code: str, name: str, *arguments: str) -> ServerProcess:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"GANTRY_SUPERVISED": "1"},
        start_new_session=True,  # Ctrl-C reaches only this process, which stops them in order
    )
    return ServerProcess(name, process)


async def _start_namesrv(deployment: Deployment, port: int) -> ServerProcess:
    root = deployment.root
    return await _start(
        "mqnamesrv",
        "mqnamesrv",
        *_tls_file(root / "namesrv", deployment.tls),
        *(f"-D{key}={value}" for key, value in deployment.access.items()),
        f"-DbindAddress={deployment.host}",
        f"-DlistenPort={port}",
        f"-DkvConfigPath={root}/namesrv/kvConfig.json",
        f"-DconfigStorePath={root}/namesrv/namesrv.properties",
        f"-DlogDirectory={root}/logs",
    )


def _tls_file(folder: Path, settings: Mapping[str, str]) -> list[str]:
    """The option that hands on TLS settings: a file that others cannot read, not words that
    everybody sees in the list of processes."""
    if not settings:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tls.properties"
    path.touch(mode=0o600)
    path.write_text(format_properties(settings))
    return [f"-Dtls.config.file={path}"]


def _raft_peers(deployment: Deployment) -> str:
    """The members of the raft group with the ports of their links; empty without one."""
    host, first = deployment.host, deployment.broker_port
    ports: list[int] = []
    for number, _ in enumerate(deployment.setups):
        port = first + PORTS_BETWEEN_BROKERS * number + RAFT_PORT if first else free_port(host)
        while port in ports:
            port = free_port(host)
        ports.append(port)
    return ";".join(
        f"{setup.member_id}-{host}:{port}"
        for setup, port in zip(deployment.setups, ports, strict=True)
        if setup.member_id is not None
    )


async def _start_broker(
    deployment: Deployment, number: int, setup: BrokerSetup, namesrv: str, peers: str
) -> ServerProcess:
    root, host, first = deployment.root, deployment.host, deployment.broker_port
    port = first + PORTS_BETWEEN_BROKERS * number if first else 0
    folder = root / setup.folder
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / "broker.conf"
    if not own.exists():
        own.write_text(format_properties(setup.defaults))
    given = [argument for file in deployment.files for argument in ("-c", file)]
    identity = setup.identity | ({"dLegerPeers": peers} if setup.member_id else {})
    return await _start(
        "mqbroker",
        f"mqbroker {setup.folder}",
        "-n",
        namesrv,
        "-c",
        str(own),
        *given,
        *(f"-D{key}={value}" for key, value in identity.items()),
        f"-DbrokerIP1={host}",
        f"-DbindAddress={host}",
        f"-DlistenPort={port}",
        f"-DstorePathRootDir={folder}/store",
        "-DstoreProfile=dev",
        f"-DlogDirectory={root}/logs/{setup.folder}",
    )


async def _serve(
    deployment: Deployment,
    servers: list[ServerProcess],
    consoles: list[ServerProcess],
    namesrv: str,
) -> None:
    """Wait until all serve, and for a while until slaves are in sync and leaders elected."""
    ports, pages = map(_await_port, servers), map(_await_url, consoles)
    await asyncio.gather(*ports, *pages)
    groups = Counter(setup.broker_name for setup in deployment.setups if setup.member_id)
    open_admin = _admin_of(deployment, namesrv)
    await _await_leaders(groups, deployment.root, open_admin)
    brokers = list(zip(deployment.setups, servers[1:], strict=True))
    copied = {setup.broker_name for setup, _ in brokers if setup.is_slave}
    await _await_copies(
        {
            setup.broker_name: f"{deployment.host}:{server.port}"
            for setup, server in brokers
            if setup.broker_name in copied and not setup.is_slave
        },
        deployment.root,
        open_admin,
    )


def _admin_of(deployment: Deployment, namesrv: str) -> Callable[[], "Admin"]:
    """What makes an admin that every server of the deployment listens to."""

    def open_admin() -> "Admin":
        from gantrymq.client.admin.admin import Admin
        from gantrymq.client.core.options import ClientOptions

        network = tls_network(tls_settings(deployment.tls), TcpNetwork())
        options = ClientOptions(credentials=deployment.credentials)
        return Admin(namesrv, client=options, network=network)

    return open_admin


async def _await_port(server: ServerProcess) -> None:
    """Print the lines of a server until the one with its port."""
    assert server.process.stdout is not None
    while line := await server.process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("listening "):
            server.port = int(text.split()[1])
            return
        print(text, flush=True)
    await server.process.wait()
    raise ServerDied(f"{server.end} before it served")


async def _await_url(console: ServerProcess) -> None:
    """Wait for the address of a console; the cluster serves without one that does not start."""
    assert console.process.stdout is not None
    while line := await console.process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("console "):
            console.url = text.removeprefix("console ")
            return
    await console.process.wait()
    print(f"{console.end} before it served; the cluster goes on without it", file=sys.stderr)


async def _tell_of_end(console: ServerProcess) -> None:
    """Tell when a console ends: nobody needs it to send and receive."""
    await console.process.wait()
    if console.url:
        print(f"{console.end}; the others go on", file=sys.stderr, flush=True)


async def _await_leaders(
    groups: Mapping[str, int], root: Path, open_admin: Callable[[], "Admin"]
) -> None:
    """Wait until each raft group, by the number of its members, has a leader and all its votes."""

    async def is_whole(admin: "Admin", name: str) -> bool:
        found = (await admin.members()).get(name, {})
        states = [await admin.raft_status(each) for each in found.values()]
        return 0 in found and sum(state.may_vote for state in states) == groups[name]

    for name in await _still_waiting(list(groups), is_whole, open_admin, LEADER_SECONDS_MAX):
        said = f"{name} has no leader with all members yet; logs below {root}/logs say why"
        print(said, file=sys.stderr)


async def _await_copies(
    masters: Mapping[str, str], root: Path, open_admin: Callable[[], "Admin"]
) -> None:
    """Wait until each master has a slave in sync; say which have none when time is over."""

    async def is_copied(admin: "Admin", name: str) -> bool:
        return (await admin.ha_status(masters[name])).in_sync_slave_nums > 0

    for name in await _still_waiting(list(masters), is_copied, open_admin, COPIES_SECONDS_MAX):
        print(f"{name} has no slave in sync yet; logs below {root}/logs say why", file=sys.stderr)


async def _still_waiting(
    names: list[str],
    is_ready: Callable[["Admin", str], Awaitable[bool]],
    open_admin: Callable[[], "Admin"],
    seconds: float,
) -> list[str]:
    """Ask until all are ready; returns those that are not when time is over."""
    if not names:
        return []
    left = dict.fromkeys(names)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), open_admin() as admin:
            while left:
                for name in list(left):
                    with suppress(GantryError):  # one that has died is told later
                        if await is_ready(admin, name):
                            del left[name]
                await asyncio.sleep(COPIES_LOOK_SECONDS if left else 0)
    return list(left)


async def _until_stopped(
    servers: list[ServerProcess], stop: asyncio.Event, *, survives_losses: bool
) -> None:
    """Wait for a signal; ServerDied when a process ends that the others need."""
    ends = {asyncio.ensure_future(server.process.wait()): server for server in servers}
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while True:
            waiting: list[asyncio.Future[Any]] = [stopping, *ends]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if stopping in done:
                return
            for task in [task for task in ends if task in done]:
                dead = ends.pop(task)
                has_brokers = any(server is not servers[0] for server in ends.values())
                if not survives_losses or dead is servers[0] or not has_brokers:
                    raise ServerDied(dead.end)
                print(f"{dead.end}; the others go on", file=sys.stderr, flush=True)
    finally:
        for task in (stopping, *ends):
            task.cancel()


async def _stop_all(servers: list[ServerProcess]) -> None:
    """Stop slaves before masters, and brokers before the name server, so that they unregister."""
    for server in reversed(servers):
        with suppress(ProcessLookupError):
            server.process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await server.process.wait()
        except TimeoutError:
            print(f"{server.name} did not stop in time, killed", file=sys.stderr)
            server.process.kill()
            await server.process.wait()
