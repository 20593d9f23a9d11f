"""`mqnamesrv` and `mqbroker`: run a server, with RocketMQ's options and start-up lines."""

import asyncio
import contextlib
import gc
import os
import sys

import click

from gantrymq.base.config import WrittenSettings, as_text, format_properties
from gantrymq.base.disk import OsDisk, check_unlocked
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import TcpNetwork
from gantrymq.base.own_file import with_saved
from gantrymq.base.telemetry import start_logging
from gantrymq.base.telemetry_settings import without_secrets
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.settings import take_tls
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.run_server import run_until_stopped

ANNOUNCED_SECONDS_MAX = 3.0
"""How long the start-up line waits for the first name server."""

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


def _written(
    config_file: str | None, overrides: tuple[str, ...]
) -> tuple[WrittenSettings, WrittenSettings]:
    """The settings of the file and those of the command line."""
    pairs = _pairs(overrides)
    given = WrittenSettings(pairs, dict.fromkeys(pairs, "-D"))
    return WrittenSettings.in_file(config_file) if config_file else WrittenSettings(), given


@click.command("mqnamesrv", cls=GuardedCommand, context_settings=HELP_OPTIONS)
@click.option("-c", "--configFile", "config_file", metavar="FILE", help="Property file.")
@click.option("-p", "--printConfigItem", "show", is_flag=True, help="Print all settings and end.")
@click.option(
    "-D",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="One setting, above the file's; repeatable.",
)
def mqnamesrv(config_file: str | None, show: bool, overrides: tuple[str, ...]) -> None:
    """Run a name server until SIGTERM or Ctrl-C.

    Settings changed by a call (mqadmin updateNamesrvConfig) are written to FILE, or without one to
    the file that configStorePath names.
    """
    from gantrymq.nameserver.app import run_nameserver
    from gantrymq.nameserver.config import UNCHANGEABLE, nameserver_config

    written, given = _written(config_file, overrides)
    tls, settings = take_tls(written | given)
    config = nameserver_config(settings)
    if config_file is not None:
        config.config_store_path = os.path.abspath(config_file)
    config = with_saved(
        config, OsDisk(), config.config_store_path, fixed=UNCHANGEABLE, stronger=given.values
    )
    if show:
        print(format_properties(without_secrets(type(config), as_text(config))), end="")
        return
    network = tls_network(tls, TcpNetwork())
    listener = start_logging(config.log_directory, "namesrv.log", config)

    async def serve(stop: asyncio.Event) -> None:
        import logging

        async with run_nameserver(config, network=network, stronger=given.values) as server:
            line = "The Name Server boot success. serializeType=JSON"
            logging.getLogger(__name__).info("%s, port %d", line, server.port)
            _say(line)
            if os.environ.get("GANTRY_SUPERVISED"):
                _say(f"listening {server.port}")
            await stop.wait()

    code = run_until_stopped(serve)
    listener.stop()
    raise SystemExit(code)


@click.command("mqbroker", cls=GuardedCommand, context_settings=HELP_OPTIONS)
@click.option("-n", "--namesrvAddr", "namesrv", metavar="ADDR;ADDR", help="Name servers.")
@click.option(
    "-c",
    "--configFile",
    "config_files",
    metavar="FILE",
    multiple=True,
    help="Property file; of several the later ones win.",
)
@click.option("-p", "--printConfigItem", "show", is_flag=True, help="Print all settings and end.")
@click.option("-m", "--printImportantConfig", "important", is_flag=True, hidden=True)
@click.option(
    "-D",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="One setting, above the files'; repeatable.",
)
def mqbroker(
    namesrv: str | None,
    config_files: tuple[str, ...],
    show: bool,
    important: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Settings changed by a call (mqadmin updateBrokerConfig) are written to the first FILE, or
    without one to config/broker.properties below storePathRootDir.
    """
    from gantrymq.broker.app import real_ports, run_broker
    from gantrymq.broker.settings.config import broker_config
    from gantrymq.broker.settings.live_settings import with_own_file

    own, *others = config_files or (None,)
    written, given = _written(own, overrides)
    for other in others:
        written |= _written(other, ())[0]
    if namesrv:
        given |= WrittenSettings({"namesrvAddr": namesrv}, {"namesrvAddr": "-n"})
    tls, settings = take_tls(written | given)
    config = broker_config(settings)
    config.namesrv_addr = config.namesrv_addr or os.environ.get("NAMESRV_ADDR", "")
    if own is not None:
        config.broker_config_path = os.path.abspath(own)
    config = with_own_file(config, OsDisk(), given.values)
    if show or important:
        print(format_properties(without_secrets(type(config), as_text(config))), end="")
        return
    network = tls_network(tls, TcpNetwork())
    check_unlocked(f"{config.store_path_root_dir}/lock")  # before any file is opened
    listener = start_logging(config.log_directory, "broker.log", config)

    async def serve(stop: asyncio.Event) -> None:
        import logging

        async with run_broker(config, real_ports(network), stronger=given.values) as broker:
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
    """Wait a short time for the first registration; returns whether it succeeded."""
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
