"""Builds the programs of the suite once; run as a script it builds them all.

Everything lands under `.cache`, next to this file. A stamp of the sources tells whether a build
is still good. A tool that is missing is an error, never a reason to test less.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
CACHE = HERE / ".cache"

TOOLS = ("java", "mvn", "go", "node", "npm", "cargo")
EXIT_MISSING_TOOL = 2
BUILD_SECONDS_MAX = 1200
# A package registry that is asked too fast answers "too many requests": ask again.
ATTEMPTS = 3

JAVA_CLIENTS = {"4.9.8": "client-4.9", "5.3.3": "client-5.3"}
# Only its command line is tested.
NEWEST_CLIENT = {"5.5.0": "client-5.5"}
# Maven Central has no name server and no broker of 4.9.8; 4.9.7 is the last 4.9 it has whole.
JAVA_SERVERS = {"4.9.7": "server-4.9", "5.3.3": "server-5.3"}
# The newest, for what is only tested as a peer of our brokers.
NEWEST_SERVER = {"5.5.0": "server-5.5"}
JAVA_PROXY, JAVA_GRPC_CLIENT = "proxy-5.3", "client-grpc"
SPRING_APPLICATION = "spring"


# Packages of other people, each in a folder of its own and never in our environment.
PYTHON_PROGRAMS = ("cpp", "grpc")


class MissingToolError(Exception):
    """A program that the suite needs is not installed."""


def require_tools() -> None:
    """Check that every tool is there, before anything is built or started."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise MissingToolError(f"interop needs {', '.join(missing)} on PATH")


def build_all() -> None:
    """Build what is not built yet."""
    require_tools()
    CACHE.mkdir(exist_ok=True)
    with ThreadPoolExecutor() as beside:
        # It computes for minutes while the others wait for what they download.
        rust = beside.submit(_once, "rust", _build_rust)
        build_java()
        _once("go", _build_go)
        _once("node", _build_node)
        for name in PYTHON_PROGRAMS:
            _once(name, partial(_build_python, name))
        rust.result()


def build_java() -> None:
    """Build the Java programs alone, if they are not built yet."""
    CACHE.mkdir(exist_ok=True)
    _once("java", _build_java)


def java_class_path(module: str) -> str:
    """The class path of one Maven module: its own classes first, then what it depends on."""
    directory = CACHE / "java" / module
    return f"{directory / 'classes'}:{(directory / 'classpath.txt').read_text().strip()}"


def go_program() -> Path:
    """The built Go program."""
    return CACHE / "go" / "probe"


def node_program() -> Path:
    """The Node program, beside the modules it uses."""
    return CACHE / "node" / "probe.js"


def rust_program() -> Path:
    """The built Rust program."""
    return CACHE / "rust" / "debug" / "probe"


def python_program(name: str) -> tuple[Path, Path]:
    """A Python program, and the folder of the packages that it uses."""
    return PROGRAMS / name / "probe.py", CACHE / name


def _once(name: str, build: Callable[[], None]) -> None:
    digest = hashlib.sha256()
    for path in sorted((PROGRAMS / name).rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(PROGRAMS)).encode() + b"\0" + path.read_bytes())
    stamp = CACHE / f"{name}.stamp"
    if stamp.is_file() and stamp.read_text() == digest.hexdigest():
        return
    sys.stderr.write(f"interop: building the {name} programs\n")
    build()
    stamp.write_text(digest.hexdigest())


def _build_java() -> None:
    command = ["mvn", "-B", "-q", "-Dmaven.artifact.threads=2", f"-Dcache={CACHE / 'java'}"]
    _run([*command, "compile"], PROGRAMS / "java")


def _build_go() -> None:
    _run(["go", "build", "-mod=readonly", "-o", str(go_program()), "."], PROGRAMS / "go")


def _build_node() -> None:
    target = CACHE / "node"
    target.mkdir(exist_ok=True)
    for source in (PROGRAMS / "node").iterdir():
        if source.is_file():
            shutil.copy(source, target)
    _run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], target)


def _build_rust() -> None:
    # In a copy: cargo writes the versions that it chose beside the sources.
    target = CACHE / "rust"
    shutil.copytree(PROGRAMS / "rust", target / "sources", dirs_exist_ok=True)
    command = ["cargo", "build", "--quiet", "--target-dir", str(target)]
    _run(command, target / "sources")


def _build_python(name: str) -> None:
    """The packages of a program, beside no others; pip replaces what an older list left there."""
    target = CACHE / name
    shutil.rmtree(target, ignore_errors=True)
    wanted = str(PROGRAMS / name / "requirements.txt")
    _run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), "-r", wanted], HERE
    )


def _run(command: Sequence[str], directory: Path) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "MAVEN_OPTS": "-Xmx512m"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=BUILD_SECONDS_MAX,
            check=attempt == ATTEMPTS,
        )
        if done.returncode == 0:
            return


def main(words: Sequence[str]) -> int:
    """Build everything, or with the word `java` the Java programs alone; the exit code tells a
    missing tool from a failed build."""
    try:
        build_java() if words == ["java"] else build_all()
    except MissingToolError as missing:
        sys.stderr.write(f"{missing}\n")
        return EXIT_MISSING_TOOL
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
