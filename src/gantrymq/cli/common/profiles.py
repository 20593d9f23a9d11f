"""Profiles: names for clusters, and which name servers a command asks.

They stand in a small file of the user, `gantrymq/profiles.toml` below $XDG_CONFIG_HOME, or the one
that $GANTRY_CONFIG names. This module is the only place that decides which name servers are meant.
Strongest first: the option --namesrv; --profile or $GANTRY_PROFILE; $NAMESRV_ADDR; the current
profile.
"""

import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gantrymq.access.key_sources import FILE_VARIABLE as CREDENTIALS_VARIABLE
from gantrymq.base.errors import ConfigError
from gantrymq.client.core.addressing import find_addresses, split_list

FILE_VARIABLE: Final = "GANTRY_CONFIG"
NAME_VARIABLE: Final = "GANTRY_PROFILE"
KEY_FILE: Final = "key_file"


@dataclass(frozen=True)
class Profiles:
    """All profiles of the user; each has text by key, `namesrv` at least."""

    table: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    current: str | None = None

    def find(self, name: str) -> Mapping[str, str]:
        """One profile; raises ConfigError that lists those that exist."""
        if name not in self.table:
            known = ", ".join(sorted(self.table))
            others = f"profiles are {known}" if known else "`gantry profile add` makes the first"
            raise ConfigError(f"there is no profile {name!r}; {others}")
        return self.table[name]


def profiles_path(environment: Mapping[str, str] | None = None) -> Path:
    """The file of the profiles, whether it exists or not."""
    env = os.environ if environment is None else environment
    if env.get(FILE_VARIABLE):
        return Path(env[FILE_VARIABLE])
    home = env.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "gantrymq" / "profiles.toml"


def load_profiles(path: Path | None = None) -> Profiles:
    """The profiles of the file; none if there is no file."""
    path = path or profiles_path()
    try:
        whole = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return Profiles()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {path}: {why}") from error
    table = whole.get("profiles", {})
    current = whole.get("current")
    if not isinstance(table, dict) or not all(
        isinstance(each, dict) and isinstance(each.get("namesrv"), str) for each in table.values()
    ):
        raise ConfigError(f'{path}: write a table [profiles.NAME] with a line namesrv = "ADDR"')
    return Profiles(table, current if isinstance(current, str) else None)


def save_profiles(found: Profiles, path: Path | None = None) -> Path:
    """Write the file whole or not at all; only its owner may read it."""
    path = path or profiles_path()
    lines = [] if found.current is None else [f"current = {json.dumps(found.current)}", ""]
    for name, values in sorted(found.table.items()):
        lines.append(f"[profiles.{json.dumps(name)}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        lines.append("")
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text("\n".join(lines))
        fresh.chmod(0o600)
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    return path


def check_addresses(namesrv: str) -> str:
    """The addresses of name servers, checked; raises ConfigError."""
    if not split_list(namesrv):
        raise ConfigError(f"{namesrv!r} names no name server: write host:port;host:port")
    return namesrv


def namesrv_of(option: str | None, profile: str | None = None) -> str | None:
    """The name servers that a command asks; None leaves it to $NAMESRV_ADDR, or there are none.

    The key file of the profile that is used goes into the environment, unless there is one.
    """
    if option is not None:
        return option
    profile = profile or os.environ.get(NAME_VARIABLE) or None
    if profile is not None:
        return _used(load_profiles().find(profile))
    if find_addresses(None, sys._xoptions, os.environ):
        return None
    found = load_profiles()
    return None if found.current is None else _used(found.find(found.current))


def _used(values: Mapping[str, str]) -> str:
    if values.get(KEY_FILE):
        os.environ.setdefault(CREDENTIALS_VARIABLE, values[KEY_FILE])
    return values["namesrv"]
