"""The command `gantry up`."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gantrymq.access.credentials import Credentials
from gantrymq.base.clock import SystemClock
from gantrymq.base.config import WrittenSettings
from gantrymq.base.disk import Lock, LockedError, OsDisk, check_unlocked
from gantrymq.base.errors import ConfigError
from gantrymq.base.tls.settings import take_tls, with_config_file
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.up.console_process import ConsolePlan, plan_console
from gantrymq.cli.up.modes import MODES, OWN_KEYS, BrokerSetup, masters
from gantrymq.cli.up.processes import Deployment, supervise

if TYPE_CHECKING:
    from gantrymq.cli.up.secure import SecureFiles

PORT = click.IntRange(0, 65_535)
ACCESS_KEYS = ("aclEnable", "aclFile")
"""What a secure name server is told of its brokers' access control."""


@click.command("up", cls=GuardedCommand)
@click.option("--data", default="./data", show_default=True, help="Folder for all data and logs.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to bind to and to register."
)
@click.option(
    "--namesrv-port", default=9876, show_default=True, type=PORT, help="0 for a free port."
)
@click.option(
    "--broker-port",
    default=10911,
    show_default=True,
    type=PORT,
    help="Port of the first broker, 20 more for each other; 0 for free ports.",
)
@click.option(
    "--console-port",
    default=8080,
    show_default=True,
    type=PORT,
    help="Port of the web console; 0 for a free one, which is also taken if 8080 is in use.",
)
@click.option("--no-console", is_flag=True, help="Run without the web console.")
@click.option(
    "--brokers", type=click.IntRange(1, 64), show_default="1", help="Brokers to run, all masters."
)
@click.option(
    "--mode",
    type=click.Choice(list(MODES)),
    help="Run the brokers of a deployment mode; one that dies leaves the others running.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Access control and TLS on every port; DATA/secure/client.yml is what clients need.",
)
@click.option("--config", multiple=True, metavar="FILE", help="Broker property file; repeatable.")
def up(
    data: str,
    host: str,
    namesrv_port: int,
    broker_port: int,
    console_port: int,
    no_console: bool,
    brokers: int | None,
    mode: str | None,
    secure: bool,
    config: tuple[str, ...],
) -> None:
    """Run a name server, brokers and the web console until Ctrl-C or SIGTERM.

    The last line that it prints when all serve has their addresses. The console is for this machine
    only; with --secure it is on --host, too, and asks for a key of the cluster.
    """
    if mode is not None and brokers is not None:
        raise click.UsageError(f"--mode {mode} says which brokers run; leave --brokers out")
    root = Path(data).resolve()
    setups = masters(brokers or 1) if mode is None else MODES[mode]
    _check_settings(config, mode)
    lock = _claim(root, setups)
    try:
        files = _secure(root, host) if secure else None
        if files is not None:
            config = (*config, str(files.settings))
        settings, credentials = _check_settings(config, mode)
        code = asyncio.run(
            supervise(
                Deployment(
                    root=root,
                    host=host,
                    namesrv_port=namesrv_port,
                    broker_port=broker_port,
                    setups=setups,
                    files=config,
                    tls=with_config_file(settings.values),
                    access={key: settings.values[key] for key in ACCESS_KEYS if secure},
                    credentials=credentials,
                    survives_losses=mode is not None,
                    console=None if no_console else _console(root, host, console_port, files),
                )
            )
        )
    finally:
        lock.release()
    raise SystemExit(code)


def _console(root: Path, host: str, port: int, files: "SecureFiles | None") -> ConsolePlan | None:
    source = click.get_current_context().get_parameter_source("console_port")
    return plan_console(
        root,
        host,
        port,
        is_chosen=source is not ParameterSource.DEFAULT,
        key_file=None if files is None else files.key_file,
        admin="" if files is None else files.admin,
    )


def _secure(root: Path, host: str) -> "SecureFiles":
    """Make keys and certificates."""
    from gantrymq.cli.up.secure import prepare

    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    files = prepare(root, host, now)
    print(f"clients need {files.key_file}: export GANTRY_CREDENTIALS={files.key_file}", flush=True)
    return files


def _check_settings(
    files: tuple[str, ...], mode: str | None
) -> tuple[WrittenSettings, Credentials | None]:
    """The settings of all files, and the brokers' own key pair among them.

    Refuses what a broker would, before any process is started; with a mode also what cannot be the
    same for all of its brokers.
    """
    from gantrymq.broker.settings.config import broker_config
    from gantrymq.broker.settings.own_key import own_credentials

    written = WrittenSettings()
    for name in files:
        written |= WrittenSettings.in_file(name)
    for key in OWN_KEYS if mode is not None else ():
        if key in written.values:
            raise click.UsageError(
                f"{written.quote(key)}: --mode {mode} gives each broker its own; remove the line"
            )
    return written, own_credentials(broker_config(take_tls(written)[1]))


def _claim(root: Path, setups: list[BrokerSetup]) -> Lock:
    """Lock the data folder; a folder that is in use is refused before any file in it changes."""
    if root.exists() and not root.is_dir():
        raise ConfigError(f"--data {root} is a file; name a folder")
    if root.is_dir():
        for setup in setups:
            check_unlocked(f"{root}/{setup.folder}/store/lock")
    try:
        root.mkdir(parents=True, exist_ok=True)
        return OsDisk().lock(f"{root}/lock")
    except LockedError as error:
        raise LockedError(f"{error}: stop that one first, or name another folder") from error
    except OSError as error:
        raise ConfigError(
            f"--data {root} cannot be used: {error.strerror}; name a folder that can be written to"
        ) from error
