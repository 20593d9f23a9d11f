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

from gantrymq.base.network import free_port

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
DEFAULTS = "traceTopicEnable=true\n"
"""What differs from RocketMQ's defaults, so that `gantry why` has something to tell; a property
file may say otherwise."""


@dataclass
class Part:
    """One process of ours."""

    name: str
    process: asyncio.subprocess.Process
    port: int = 0


class PartDied(Exception):
    """A process ended that should not have."""


@click.command("up")
@click.option("--data", default="./data", show_default=True, help="Where everything is kept.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to bind and announce."
)
@click.option("--namesrv-port", default=9876, show_default=True, help="0 picks a free one.")
@click.option("--broker-port", default=10911, show_default=True, help="0 picks free ones.")
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
    root.mkdir(parents=True, exist_ok=True)
    try:
        settings = _merged(config)
    except OSError as error:
        raise click.UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    raise SystemExit(
        asyncio.run(_supervise(root, host, namesrv_port, broker_port, brokers, settings))
    )


def _merged(files: tuple[str, ...]) -> str:
    return "\n".join(Path(name).read_text() for name in files)


async def _supervise(
    root: Path, host: str, namesrv_port: int, broker_port: int, brokers: int, settings: str
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    parts: list[Part] = []
    namesrv_port = namesrv_port or free_port(host)
    namesrv = f"{host}:{namesrv_port}"
    try:
        parts.append(await _start_namesrv(root, host, namesrv_port))
        for number in range(brokers):
            port = broker_port + 20 * number if broker_port else 0
            parts.append(await _start_broker(root, host, port, number, namesrv, settings))
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


async def _start(name: str, *arguments: str) -> Part:
    code = f"from gantrymq.cli.servers import {name}; {name}()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"GANTRY_SUPERVISED": "1"},
        start_new_session=True,  # Ctrl-C is for us: we take the parts down in order
    )  # fmt: skip
    return Part(name, process)


async def _start_namesrv(root: Path, host: str, port: int) -> Part:
    return await _start(
        "mqnamesrv",
        f"-DbindAddress={host}",
        f"-DlistenPort={port}",
        f"-DkvConfigPath={root}/namesrv/kvConfig.json",
        f"-DlogDirectory={root}/logs",
    )


async def _start_broker(
    root: Path, host: str, port: int, number: int, namesrv: str, settings: str
) -> Part:
    name = f"broker-{chr(ord('a') + number)}" if number < 26 else f"broker-{number}"
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "broker.conf"
    file.write_text(DEFAULTS + settings)
    return await _start(
        "mqbroker",
        "-n", namesrv,
        "-c", str(file),
        f"-DbrokerName={name}",
        f"-DbrokerIP1={host}",
        f"-DbindAddress={host}",
        f"-DlistenPort={port}",
        f"-DstorePathRootDir={folder}/store",
        "-DstoreProfile=dev",
        f"-DlogDirectory={root}/logs/{name}",
    )  # fmt: skip


async def _await_port(part: Part) -> None:
    """Pass the part's own lines on and wait for the one that says it serves."""
    assert part.process.stdout is not None
    while line := await part.process.stdout.readline():
        text = line.decode("utf-8", "replace").rstrip()
        if text.startswith("listening "):
            part.port = int(text.split()[1])
            return
        print(text, flush=True)
    raise PartDied(f"{part.name} ended with {await part.process.wait()} before it served")


async def _until_stopped(parts: list[Part], stop: asyncio.Event) -> None:
    ends = {asyncio.ensure_future(part.process.wait()): part for part in parts}
    stopping = asyncio.ensure_future(stop.wait())
    done, pending = await asyncio.wait([stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    dead = [ends[task] for task in done if task in ends]
    if dead and stopping not in done:
        raise PartDied(f"{dead[0].name} ended with {dead[0].process.returncode}")


async def _take_down(parts: list[Part]) -> None:
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
