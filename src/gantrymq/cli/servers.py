"""`mqnamesrv` and `mqbroker`: the servers, with RocketMQ's flags and start-up lines."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec

from gantrymq.base.config import as_text, format_properties, parse_properties, settings
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.memory import keep_freed_memory
from gantrymq.base.telemetry import start_logging

GC_THRESHOLD = 50_000
"""Requests make short-lived containers and no cycles worth a frequent look."""


ANNOUNCED_SECONDS_MAX = 3.0
"""How long the start-up line waits for the first name server."""

Main = Callable[[], Coroutine[Any, Any, None]]


def run_until_stopped(serve: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Run a server until SIGTERM, SIGINT, or the end of a supervisor that holds our stdin."""

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, stop.set)
        if os.environ.get("GANTRY_SUPERVISED"):
            loop.add_reader(0, lambda: stop.set() if not os.read(0, 1) else None)
        await serve(stop)

    gc.set_threshold(GC_THRESHOLD, 20, 20)
    failures: list[BaseException] = []
    try:
        _run(main)
    except* (GantryError, OSError) as group:
        failures = _leaves(group)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _leaves(group: BaseExceptionGroup) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _run(main: Main) -> None:
    keep_freed_memory()
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


def _properties_of(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return parse_properties(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


def _fail(error: GantryError) -> None:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(1)


@click.command("mqnamesrv")
@click.option("-c", "--configFile", "config_file", metavar="FILE", help="Property file.")
@click.option("-p", "--printConfigItem", "show", is_flag=True, help="Print all settings and end.")
@click.option("-D", "overrides", multiple=True, metavar="KEY=VALUE", help="One setting.")
def mqnamesrv(config_file: str | None, show: bool, overrides: tuple[str, ...]) -> None:
    """Run a name server."""
    from gantrymq.nameserver.app import run_nameserver
    from gantrymq.nameserver.config import IGNORED_KEYS, NameServerConfig

    try:
        values = _properties_of(config_file) | _pairs(overrides)
        config = settings(NameServerConfig, values, ignored=IGNORED_KEYS)
    except GantryError as error:
        _fail(error)
    if show:
        print(format_properties(as_text(config)), end="")
        return
    listener = start_logging(config.log_directory, "namesrv.log")

    async def serve(stop: asyncio.Event) -> None:
        import logging

        async with run_nameserver(config) as server:
            line = "The Name Server boot success. serializeType=JSON"
            logging.getLogger(__name__).info("%s, port %d", line, server.port)
            _say(line)
            if os.environ.get("GANTRY_SUPERVISED"):
                _say(f"listening {server.port}")
            await stop.wait()

    code = run_until_stopped(serve)
    listener.stop()
    raise SystemExit(code)


@click.command("mqbroker")
@click.option("-n", "--namesrvAddr", "namesrv", metavar="ADDR;ADDR", help="Name servers.")
@click.option("-c", "--configFile", "config_file", metavar="FILE", help="Property file.")
@click.option("-p", "--printConfigItem", "show", is_flag=True, help="Print all settings and end.")
@click.option("-m", "--printImportantConfig", "important", is_flag=True, hidden=True)
@click.option("-D", "overrides", multiple=True, metavar="KEY=VALUE", help="One setting.")
def mqbroker(
    namesrv: str | None,
    config_file: str | None,
    show: bool,
    important: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run a broker."""
    from gantrymq.broker.app import run_broker
    from gantrymq.broker.config import broker_config

    try:
        config = broker_config(_properties_of(config_file) | _pairs(overrides))
        address = namesrv or config.namesrv_addr or os.environ.get("NAMESRV_ADDR", "")
        config = msgspec.structs.replace(config, namesrv_addr=address)
    except GantryError as error:
        _fail(error)
    if show or important:
        print(format_properties(as_text(config)), end="")
        return
    listener = start_logging(config.log_directory, "broker.log")

    async def serve(stop: asyncio.Event) -> None:
        import logging

        async with run_broker(config) as broker:
            known = await _announced(broker.announced, stop) if config.namesrv_addr else False
            line = (
                f"The broker[{broker.config.broker_name}, {broker.address}] boot success. "
                "serializeType=JSON"
            )
            if config.namesrv_addr:
                line += f" and name server is {config.namesrv_addr}"
            logging.getLogger(__name__).info("%s", line)
            _say(line)
            if config.namesrv_addr and not known:
                print("no name server reached yet, trying on", file=sys.stderr)
            if os.environ.get("GANTRY_SUPERVISED"):
                _say(f"listening {broker.config.listen_port}")
            gc.collect()
            gc.freeze()
            await stop.wait()

    code = run_until_stopped(serve)
    listener.stop()
    raise SystemExit(code)


async def _announced(announced: asyncio.Event, stop: asyncio.Event) -> bool:
    """Whether a name server knows the broker by now; a broker does not wait long for it."""
    waits = [asyncio.ensure_future(event.wait()) for event in (announced, stop)]
    await asyncio.wait(waits, timeout=ANNOUNCED_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    return announced.is_set()


def _pairs(overrides: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for item in overrides:
        key, mark, value = item.partition("=")
        if not mark:
            raise ConfigError(f"-D {item}: write KEY=VALUE")
        pairs[key] = value
    return pairs
