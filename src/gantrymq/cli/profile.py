"""`gantry profile`: names for several clusters, and the one that commands use."""

import sys
from dataclasses import replace
from pathlib import Path

import click

from gantrymq.access.key_sources import credentials_of_file
from gantrymq.base.errors import ConfigError
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, output_option, print_rows
from gantrymq.cli.common.profiles import (
    KEY_FILE,
    Profiles,
    check_addresses,
    load_profiles,
    profiles_path,
    save_profiles,
)


@click.group("profile")
def profile() -> None:
    """Keep the name servers of several clusters, each under a name.

    Commands take --profile NAME, or use the current one if neither --namesrv nor $NAMESRV_ADDR
    names a cluster.
    """


@profile.command("list", cls=GuardedCommand)
@output_option
def list_all(output: str) -> None:
    """List all profiles; the current one is marked."""
    found = load_profiles()
    print_rows([_row(found, name) for name in sorted(found.table)], output)
    if not found.table:
        print("there is no profile; `gantry profile add NAME --namesrv ADDR`", file=sys.stderr)


@profile.command("add", cls=GuardedCommand)
@click.argument("name")
@click.option(
    "-n", "--namesrv", required=True, metavar="ADDR;ADDR", help="Name servers of the cluster."
)
@click.option("--key-file", metavar="FILE", help="Key pair of the cluster, as gantry --key-file.")
@click.option("--use", is_flag=True, help="Make it the current one.")
def add(name: str, namesrv: str, key_file: str | None, use: bool) -> None:
    """Add profile NAME, or change it. The first one becomes the current one."""
    if not name.strip() or not name.isprintable():
        raise click.UsageError(f"{name!r} is no name for a profile")
    found = load_profiles()
    values = {**found.table.get(name, {}), "namesrv": check_addresses(namesrv)}
    if key_file is not None:
        credentials_of_file(Path(key_file))  # says what is wrong with it
        values[KEY_FILE] = str(Path(key_file).resolve())
    current = name if use or not found.table else found.current
    path = save_profiles(Profiles({**found.table, name: values}, current))
    print(f"profile {name} saved in {path}", file=sys.stderr)


@profile.command("use", cls=GuardedCommand)
@click.argument("name")
def use_one(name: str) -> None:
    """Make NAME the current profile."""
    found = load_profiles()
    found.find(name)
    save_profiles(replace(found, current=name))
    print(f"profile {name} is the current one", file=sys.stderr)


@profile.command("remove", cls=GuardedCommand)
@click.argument("name")
def remove(name: str) -> None:
    """Remove profile NAME."""
    found = load_profiles()
    found.find(name)
    rest = {each: values for each, values in found.table.items() if each != name}
    save_profiles(Profiles(rest, None if found.current == name else found.current))
    print(f"profile {name} removed", file=sys.stderr)


@profile.command("show", cls=GuardedCommand)
@click.argument("name", required=False)
@output_option
def show(name: str | None, output: str) -> None:
    """Show profile NAME, or the current one."""
    found = load_profiles()
    chosen = name or found.current
    if chosen is None:
        raise ConfigError(f"no profile is the current one in {profiles_path()}")
    found.find(chosen)
    print_rows([_row(found, chosen)], output)


def _row(found: Profiles, name: str) -> Row:
    values, current = found.table[name], name == found.current
    row: Row = {"profile": name, "current": current, "namesrv": values["namesrv"]}
    return row | ({KEY_FILE: values[KEY_FILE]} if KEY_FILE in values else {})
