"""`gantry console`: the web console of one or several clusters."""

import asyncio
import os
from pathlib import Path

import click

from gantrymq.base.errors import ConfigError
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.run_server import run_until_stopped

PORT = click.IntRange(0, 65_535)


@click.command("console", cls=GuardedCommand)
@click.option(
    "--namesrv",
    "clusters",
    multiple=True,
    metavar="[NAME=]ADDR;ADDR",
    help="Name servers of a cluster, with a name for it; repeatable. By default $NAMESRV_ADDR.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind to.")
@click.option("--port", default=8080, show_default=True, type=PORT, help="0 for a free port.")
@click.option(
    "--data", default="./data/console", show_default=True, help="Folder for what it keeps."
)
@click.option("--read-only", is_flag=True, help="Nobody may change anything.")
def console(clusters: tuple[str, ...], host: str, port: int, data: str, read_only: bool) -> None:
    """Serve the web console until Ctrl-C or SIGTERM.

    It works with RocketMQ's clusters of 4.9 and 5.x, too. On a loopback address nobody logs in.
    """
    try:
        from gantrymq.console.serve import ConsoleServer
        from gantrymq.console.settings import ClusterAddress, ConsoleSettings
    except ImportError as error:
        raise ConfigError(
            f"the console needs {error.name}: pip install 'gantrymq[console]'"
        ) from None

    settings = ConsoleSettings(
        clusters=tuple(ClusterAddress(*each) for each in _named(clusters)),
        host=host,
        port=port,
        data=Path(data),
        is_read_only=read_only,
    )

    async def serve(stop: asyncio.Event) -> None:
        async with ConsoleServer(settings) as server:
            print(f"console {server.url}", flush=True)
            await stop.wait()

    raise SystemExit(run_until_stopped(serve))


def _named(given: tuple[str, ...]) -> list[tuple[str, str]]:
    """Names and addresses; a cluster without a name is called by its first address."""
    addresses = given or tuple(filter(None, [os.environ.get("NAMESRV_ADDR", "")]))
    if not addresses:
        raise ConfigError("no name server: give --namesrv HOST:PORT, or set NAMESRV_ADDR")
    found = []
    for each in addresses:
        name, mark, address = each.partition("=")
        found.append((name, address) if mark else (each.partition(";")[0], each))
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--namesrv: two clusters are called {name!r}; write NAME=ADDR")
    return found
