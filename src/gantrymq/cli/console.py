"""`gantry console`: the web console of one or several clusters, and its users."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from gantrymq.base.errors import ConfigError
from gantrymq.base.telemetry import start_logging
from gantrymq.base.telemetry_settings import TelemetrySettings, check_telemetry
from gantrymq.cli.common.guard import guarded
from gantrymq.cli.common.output import output_option, print_rows
from gantrymq.cli.common.run_server import run_until_stopped
from gantrymq.cli.common.secret_input import read_secret

PORT = click.IntRange(0, 65_535)
FILE = click.Path(path_type=Path, dir_okay=False)
LOGINS = ("none", "users", "cluster")
data_option = click.option(
    "--data",
    default="./data/console",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for what it keeps: users, samples, filters, the audit trail.",
)


class _GuardedGroup(click.Group):
    """A group whose errors are one line."""

    def invoke(self, ctx: click.Context) -> Any:
        with guarded():
            return super().invoke(ctx)


@click.group("console", cls=_GuardedGroup, invoke_without_command=True)
@click.option(
    "--namesrv",
    "clusters",
    multiple=True,
    metavar="[NAME=]ADDR;ADDR",
    help="Name servers of a cluster, with a name for it; repeatable. By default $NAMESRV_ADDR.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind to.")
@click.option("--port", default=8080, show_default=True, type=PORT, help="0 for a free port.")
@data_option
@click.option(
    "--login",
    type=click.Choice(LOGINS),
    help="Who lets people in: nobody, the console's users, or the access control of the clusters. "
    "[default: users if there are any, else none]",
)
@click.option(
    "--admin",
    "admins",
    multiple=True,
    metavar="KEY",
    help="With --login cluster: an access key that may change the console's own rules; repeatable.",
)
@click.option(
    "--key-file",
    "key_files",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Key pair, and TLS, with which the console asks a cluster; one for all, or by its name.",
)
@click.option("--tls-cert", type=FILE, help="Serve over HTTPS with this certificate (PEM).")
@click.option("--tls-key", type=FILE, help="The key of that certificate.")
@click.option(
    "--tls-key-password", type=FILE, help="File with the password of that key, if it is encrypted."
)
@click.option(
    "--lake",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of archives and reports.  [default: `lake` in --data]",
)
@click.option("--read-only", is_flag=True, help="Nobody may change anything.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Lines of its log as text, or each as an object of JSON.",
)
@click.option("--log-level", default="INFO", show_default=True, help="From which level on.")
@click.option("--log-levels", default="", help="Other levels for parts: console:DEBUG,client:INFO.")
def console(data: Path, **given: Any) -> None:
    """Serve the web console until Ctrl-C or SIGTERM.

    It works with RocketMQ's clusters of 4.9 and 5.x, too. On a loopback address nobody logs in,
    unless there are users; on any other address it does not start without a login.
    """
    if click.get_current_context().invoked_subcommand is None:
        raise SystemExit(_serve(data, given))


def _serve(data: Path, given: dict[str, Any]) -> int:
    try:
        from gantrymq.console.access.users_file import read_users
        from gantrymq.console.serve import ConsoleServer
        from gantrymq.console.settings import ClusterAddress, ConsoleSettings, LoginKind
    except ImportError as error:
        raise ConfigError(
            f"the console needs {error.name}: pip install 'gantrymq[console]'"
        ) from None

    named = _named(given["clusters"])
    keys = _keys(given["key_files"], [name for name, _ in named])
    has_users = bool(read_users(data / "users.json"))
    login = LoginKind(given["login"] or ("users" if has_users else "none"))
    if login is LoginKind.USERS and not has_users:
        raise ConfigError(f"no user in {data}: make one with `gantry console user add NAME`")
    logs = TelemetrySettings(
        log_format=given["log_format"], log_level=given["log_level"], log_levels=given["log_levels"]
    )
    check_telemetry(logs)
    settings = ConsoleSettings(
        clusters=tuple(ClusterAddress(name, address, keys.get(name)) for name, address in named),
        host=given["host"],
        port=given["port"],
        data=data,
        login=login,
        admins=given["admins"],
        tls_certificate=given["tls_cert"],
        tls_key=given["tls_key"],
        tls_key_password=_first_line(given["tls_key_password"]),
        lake=given["lake"],
        is_read_only=given["read_only"],
        logs=logs,
    )

    async def serve(stop: asyncio.Event) -> None:
        async with ConsoleServer(settings) as server:
            print(f"console {server.url}", flush=True)
            await stop.wait()

    listener = start_logging(str(data / "logs"), "console.log", logs)
    try:
        return run_until_stopped(serve)
    finally:
        listener.stop()


def _first_line(path: Path | None) -> str:
    """The password in a file; empty without one."""
    if path is None:
        return ""
    try:
        return path.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None


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


def _keys(given: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """The key file of each cluster; one without a name is for all that have none of their own."""
    found: dict[str, str] = {}
    for each in given:
        name, mark, file = each.partition("=")
        wanted = [name] if mark else [name for name in names if name not in found]
        for cluster in wanted:
            if cluster not in names:
                raise ConfigError(
                    f"--key-file: no cluster is called {cluster!r}; there are {', '.join(names)}"
                )
            found[cluster] = file if mark else each
    return found


@console.group("user")
def user() -> None:
    """Add, list and remove the console's own users; a running console follows within a request."""


@user.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["reader", "admin"]),
    default="reader",
    show_default=True,
    help="A reader looks, an admin changes.",
)
@data_option
def add(name: str, role: str, data: Path) -> None:
    """Add the user NAME, or give it another role and password.

    The password is asked for; without a terminal it is the first line of standard input.
    """
    from gantrymq.console.access.user import Role
    from gantrymq.console.access.users_file import UsersFile

    UsersFile(data / "users.json").put(name, Role(role), read_secret("Password"))
    print(f"{name} may log in as {role}", file=sys.stderr)


@user.command("remove")
@click.argument("name")
@data_option
def remove(name: str, data: Path) -> None:
    """Remove the user NAME; its logins end at once."""
    from gantrymq.console.access.users_file import UsersFile

    UsersFile(data / "users.json").remove(name)
    print(f"{name} is removed", file=sys.stderr)


@user.command("list")
@data_option
@output_option
def list_users(data: Path, output: str) -> None:
    """List users and their roles."""
    from gantrymq.console.access.users_file import read_users

    users = read_users(data / "users.json")
    print_rows([{"name": name, "role": known.role.value} for name, known in users.items()], output)
