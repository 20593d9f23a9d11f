"""`gantry up`: everything in one go. It supervises; name server and brokers are processes."""

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
"""What a broker's own file says at first, so that `gantry why` has something to tell. It is the
operator's from then on, and settings changed by a call are written to it; files given with --config
stand above it."""


@dataclass
class ServerProcess:
    """One process of ours."""

    name: str
    process: asyncio.subprocess.Process
    port: int = 0


class PartDied(Exception):
    """A process ended that should not have."""


@click.command("up", cls=GuardedCommand)
@click.option("--data", default="./data", show_default=True, help="Where everything is kept.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to bind and announce."
)
@click.option(
    "--namesrv-port", default=9876, show_default=True, type=PORT, help="0 picks a free one."
)
@click.option(
    "--broker-port", default=10911, show_default=True, type=PORT, help="0 picks free ones."
)
@click.option("--console-port", default=8080, show_default=True, hidden=True)
@click.option("--no-console", is_flag=True, help="Run without the web console.")
@click.option("--brokers", default=1, show_default=True, type=click.IntRange(1, 64))
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
    """Run a name server and brokers on embedded storage until Ctrl-C or SIGTERM."""
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
    """ConfigError for what a broker would refuse, before anything is touched."""
    from gantrymq.broker.settings.config import broker_config

    written = WrittenSettings()
    for name in files:
        written |= WrittenSettings.in_file(name)
    broker_config(written)


def _claim(root: Path, names: list[str]) -> Lock:
    """The folder for us alone; what is in use is refused before anything in it is touched."""
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
    parts: list[ServerProcess] = []
    namesrv_port = namesrv_port or free_port(host)
    namesrv = f"{host}:{namesrv_port}"
    try:
        parts.append(await _start_namesrv(root, host, namesrv_port))
        for number, name in enumerate(names):
            port = broker_port + 20 * number if broker_port else 0
            parts.append(await _start_broker(root, host, port, name, namesrv, files))
        ready = asyncio.gather(*(_await_port(part) for part in parts))
        if await _first(ready, stop, READY_SECONDS_MAX):
            addresses = ",".join(f"{host}:{part.port}" for part in parts[1:])
            print(f"gantrymq ready namesrv={namesrv} broker={addresses} console=-", flush=True)
            await _until_stopped(parts, stop)
        return 0
    except (PartDied, TimeoutError) as error:
        print(f"error: {error or 'not ready in time'}", file=sys.stderr)
        return 1
    finally:
        await _take_down(parts)


async def _first(ready: "asyncio.Future[list[None]]", stop: asyncio.Event, seconds: float) -> bool:
    """True when everything is ready, False when we were told to stop before."""
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
        start_new_session=True,  # Ctrl-C is for us: we take the parts down in order
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


async def _await_port(part: ServerProcess) -> None:
    """Pass the part's own lines on and wait for the one that says it serves."""
    assert part.process.stdout is not None
    while line := await part.process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("listening "):
            part.port = int(text.split()[1])
            return
        print(text, flush=True)
    raise PartDied(f"{part.name} ended with {await part.process.wait()} before it served")


async def _until_stopped(parts: list[ServerProcess], stop: asyncio.Event) -> None:
    ends = {asyncio.ensure_future(part.process.wait()): part for part in parts}
    stopping = asyncio.ensure_future(stop.wait())
    done, pending = await asyncio.wait([stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    dead = [ends[task] for task in done if task in ends]
    if dead and stopping not in done:
        raise PartDied(f"{dead[0].name} ended with {dead[0].process.returncode}")


async def _take_down(parts: list[ServerProcess]) -> None:
    """Brokers first, so that they can say good-bye to the name server."""
    for part in reversed(parts):
        with suppress(ProcessLookupError):
            part.process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await part.process.wait()
        except TimeoutError:
            print(f"{part.name} did not stop in time, killed", file=sys.stderr)
            part.process.kill()
            await part.process.wait()
