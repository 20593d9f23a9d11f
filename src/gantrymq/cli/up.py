"""`gantry up`: run a name server and brokers, each as a process, and supervise them."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gantrymq.base.config import WrittenSettings
from gantrymq.base.disk import Lock, LockedError, OsDisk, check_unlocked
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import free_port
from gantrymq.cli.common.guard import GuardedCommand

PORT = click.IntRange(0, 65_535)
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
DEFAULTS = "traceTopicEnable=true\n"
"""The first content of a broker's own file: with trace, `gantry why` knows more. The file is the
operator's from then on, and settings changed by a call are written to it; files given with --config
take precedence."""


@dataclass
class ServerProcess:
    """A server that runs as a child process."""

    name: str
    process: asyncio.subprocess.Process
    port: int = 0


class ServerDied(Exception):
    """A child process ended before it was told to."""


@click.command("up", cls=GuardedCommand)
@click.option("--data", default="./data", show_default=True, help="Folder for all data and logs.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to bind to and to register."
)
@click.option(
    "--namesrv-port", default=9876, show_default=True, type=PORT, help="0 for a free port."
)
@click.option(
    "--broker-port", default=10911, show_default=True, type=PORT, help="0 for free ports."
)
@click.option("--console-port", default=8080, show_default=True, hidden=True)
@click.option("--no-console", is_flag=True, help="Run without the web console.")
@click.option(
    "--brokers", default=1, show_default=True, type=click.IntRange(1, 64), help="Brokers to run."
)
@click.option("--config", multiple=True, metavar="FILE", help="Broker property file; repeatable.")
def up(
    data: str,
    host: str,
    namesrv_port: int,
    broker_port: int,
    console_port: int,
    no_console: bool,
    brokers: int,
    config: tuple[str, ...],
) -> None:
    """Run a name server and brokers until Ctrl-C or SIGTERM."""
    root = Path(data).resolve()
    names = [_broker_name(number) for number in range(brokers)]
    _check_settings(config)
    lock = _claim(root, names)
    try:
        code = asyncio.run(_supervise(root, host, namesrv_port, broker_port, names, config))
    finally:
        lock.release()
    raise SystemExit(code)


def _check_settings(files: tuple[str, ...]) -> None:
    """Raise ConfigError for settings that a broker would refuse, before any process is started."""
    from gantrymq.broker.settings.config import broker_config

    written = WrittenSettings()
    for name in files:
        written |= WrittenSettings.in_file(name)
    broker_config(written)


def _claim(root: Path, names: list[str]) -> Lock:
    """Lock the data folder; a folder that is in use is refused before any file in it changes."""
    if root.exists() and not root.is_dir():
        raise ConfigError(f"--data {root} is a file; name a folder")
    if root.is_dir():
        for name in names:
            check_unlocked(f"{root}/{name}/store/lock")
    try:
        root.mkdir(parents=True, exist_ok=True)
        return OsDisk().lock(f"{root}/lock")
    except LockedError as error:
        raise LockedError(f"{error}: stop that one first, or name another folder") from error
    except OSError as error:
        raise ConfigError(
            f"--data {root} cannot be used: {error.strerror}; name a folder that can be written to"
        ) from error


def _broker_name(number: int) -> str:
    return f"broker-{chr(ord('a') + number)}" if number < 26 else f"broker-{number}"


async def _supervise(
    root: Path,
    host: str,
    namesrv_port: int,
    broker_port: int,
    names: list[str],
    files: tuple[str, ...],
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    servers: list[ServerProcess] = []
    namesrv_port = namesrv_port or free_port(host)
    namesrv = f"{host}:{namesrv_port}"
    try:
        servers.append(await _start_namesrv(root, host, namesrv_port))
        for number, name in enumerate(names):
            port = broker_port + 20 * number if broker_port else 0
            servers.append(await _start_broker(root, host, port, name, namesrv, files))
        ready = asyncio.gather(*(_await_port(server) for server in servers))
        if await _first(ready, stop, READY_SECONDS_MAX):
            addresses = ",".join(f"{host}:{server.port}" for server in servers[1:])
            print(f"gantrymq ready namesrv={namesrv} broker={addresses} console=-", flush=True)
            await _until_stopped(servers, stop)
        return 0
    except (ServerDied, TimeoutError) as error:
        print(f"error: {error or 'not ready in time'}", file=sys.stderr)
        return 1
    finally:
        await _stop_all(servers)


async def _first(ready: "asyncio.Future[list[None]]", stop: asyncio.Event, seconds: float) -> bool:
    """Wait for the servers: True when all are ready, False when a stop is requested before."""
    stopping = asyncio.ensure_future(stop.wait())
    waiting: list[asyncio.Future[Any]] = [ready, stopping]
    done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if ready in done:
        ready.result()
        return True
    ready.cancel()
    with suppress(asyncio.CancelledError):
        await ready
    if not done:
        raise TimeoutError
    return False


async def _start(name: str, *arguments: str) -> ServerProcess:
    code = f"from gantrymq.cli.servers import {name}; {name}()"
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


async def _start_namesrv(root: Path, host: str, port: int) -> ServerProcess:
    return await _start(
        "mqnamesrv",
        f"-DbindAddress={host}",
        f"-DlistenPort={port}",
        f"-DkvConfigPath={root}/namesrv/kvConfig.json",
        f"-DconfigStorePath={root}/namesrv/namesrv.properties",
        f"-DlogDirectory={root}/logs",
    )


async def _start_broker(
    root: Path, host: str, port: int, name: str, namesrv: str, files: tuple[str, ...]
) -> ServerProcess:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / "broker.conf"
    if not own.exists():
        own.write_text(DEFAULTS)
    given = [argument for file in files for argument in ("-c", file)]
    return await _start(
        "mqbroker",
        "-n",
        namesrv,
        "-c",
        str(own),
        *given,
        f"-DbrokerName={name}",
        f"-DbrokerIP1={host}",
        f"-DbindAddress={host}",
        f"-DlistenPort={port}",
        f"-DstorePathRootDir={folder}/store",
        "-DstoreProfile=dev",
        f"-DlogDirectory={root}/logs/{name}",
    )


async def _await_port(server: ServerProcess) -> None:
    """Print the lines of a server until the one with its port."""
    assert server.process.stdout is not None
    while line := await server.process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("listening "):
            server.port = int(text.split()[1])
            return
        print(text, flush=True)
    raise ServerDied(f"{server.name} ended with {await server.process.wait()} before it served")


async def _until_stopped(servers: list[ServerProcess], stop: asyncio.Event) -> None:
    ends = {asyncio.ensure_future(server.process.wait()): server for server in servers}
    stopping = asyncio.ensure_future(stop.wait())
    done, pending = await asyncio.wait([stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    dead = [ends[task] for task in done if task in ends]
    if dead and stopping not in done:
        raise ServerDied(f"{dead[0].name} ended with {dead[0].process.returncode}")


async def _stop_all(servers: list[ServerProcess]) -> None:
    """Stop brokers before the name server, so that they can unregister."""
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
