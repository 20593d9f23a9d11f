"""Programs of other people: found on PATH, or made once and kept below `.venv`."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.servers import ROOT

CACHE = ROOT / ".venv" / "bench"
BUILD_SECONDS_MAX = 1200
ATTEMPTS = 3
"""A package registry that is asked too fast answers "too many requests"."""

NATS_MODULE = "github.com/nats-io/nats-server/v2"
NATS_VERSION = "v2.15.2"
CLASS_PATH_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"


class MissingTool(Exception):
    """Something that a workload needs is not installed."""


def require(workload: str, *, programs: Iterable[str] = (), packages: Iterable[str] = ()) -> None:
    """Check that all is there, before anything is built or started."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise MissingTool(f"{workload} needs {', '.join(missing)} on PATH")
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingTool(
            f"{workload} needs the packages {', '.join(missing)}: pip install -e '.[bench]'"
        )


def class_path(name: str, pom: Path) -> str:
    """The jars that a Maven project names, from Maven Central."""
    path = CACHE / f"{name}-classpath.txt"

    def resolve() -> None:
        _run(
            ["mvn", "-B", "-q", "-Dmaven.artifact.threads=2", CLASS_PATH_GOAL,
             "-DincludeScope=runtime", f"-Dmdep.outputFile={path}"],
            pom.parent,
        )  # fmt: skip

    once(name, pom.read_bytes(), resolve)
    return path.read_text().strip()


def nats_server() -> Path:
    """NATS' server, from Go's module proxy."""
    module = f"{NATS_MODULE}@{NATS_VERSION}"
    folder = CACHE / "go"
    once("nats", module.encode(), lambda: _run(["go", "install", module], ROOT, GOBIN=str(folder)))
    return folder / "nats-server"


def compiled(source: Path) -> Path:
    """A program of one C file."""
    program = CACHE / source.stem
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    once(source.stem, source.read_bytes(), lambda: _run(command, ROOT))
    return program


def once(name: str, of: bytes, build: Callable[[], None]) -> None:
    """Build unless it was built of the same."""
    digest = hashlib.sha256(of).hexdigest()
    stamp = CACHE / f"{name}.stamp"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"set-up: {name}", file=sys.stderr, flush=True)
    build()
    stamp.write_text(digest)


def _run(command: Sequence[str], directory: Path, **environment: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(
            command, cwd=directory, env=os.environ | environment, stdin=subprocess.DEVNULL,
            stdout=sys.stderr, timeout=BUILD_SECONDS_MAX, check=attempt == ATTEMPTS,
        )  # fmt: skip
        if done.returncode == 0:
            return
