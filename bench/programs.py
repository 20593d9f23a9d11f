"""Load comes from processes of its own, so that a broker never shares its core with its clients."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.servers import BIN, ROOT

SECONDS_MAX = 600

Figures = dict[str, Any]


class ProgramFailed(Exception):
    """A load program ended badly."""


def run(command: list[str], *, pure: bool = False) -> Figures:
    """Run a program whose last line is a JSON object."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | ({"GANTRY_PURE": "1"} if pure else {}),
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    if not lines:
        raise ProgramFailed(f"{command} said nothing: {done.stderr[-2000:]}")
    figures: Figures = json.loads(lines[-1])
    if figures.get("failed"):
        raise ProgramFailed(f"{command}: {figures}")
    return figures


class AskedProgram:
    """A program that answers every line on its stdin with a JSON object."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def ask(self) -> Figures:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise ProgramFailed(f"{self._child.args!r} ended before it answered")
        figures: Figures = json.loads(answer)
        return figures


@contextlib.contextmanager
def asked(module: str, *arguments: object) -> Iterator[AskedProgram]:
    """A module of `bench` that runs until the block is left."""
    child = subprocess.Popen(
        [sys.executable, "-m", f"bench.{module}", *map(str, arguments)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield AskedProgram(child)
    finally:
        child.kill()
        child.wait()


def gantry(*arguments: object) -> Figures:
    """`gantry bench ...`, the program that users have."""
    return run([str(BIN / "gantry"), "bench", *map(str, arguments)])


def load(*arguments: object) -> Figures:
    """The raw load generator."""
    return run([sys.executable, "-m", "bench.load", *map(str, arguments)])


def connections(*arguments: object) -> Figures:
    """The same over several connections."""
    return run([sys.executable, "-m", "bench.connections", *map(str, arguments)])


def overload(*arguments: object) -> Figures:
    """More sends than a broker can take."""
    return run([sys.executable, "-m", "bench.overload", *map(str, arguments)])


def pace(*arguments: object) -> Figures:
    """Sends at a steady rate."""
    return run([sys.executable, "-m", "bench.pace", *map(str, arguments)])


def delivery(*arguments: object) -> Figures:
    """Messages from a producer to a consumer, at a steady rate."""
    return run([sys.executable, "-m", "bench.delivery", *map(str, arguments)])


def lookups(*arguments: object) -> Figures:
    """Look-ups of routes over several connections."""
    return run([sys.executable, "-m", "bench.lookups", *map(str, arguments)])


def drain(*arguments: object, pure: bool = False) -> Figures:
    """The raw reader."""
    return run([sys.executable, "-m", "bench.drain", *map(str, arguments)], pure=pure)


def consume(*arguments: object) -> Figures:
    """A consumer of 64 keys, in order or not."""
    return run([sys.executable, "-m", "bench.consume", *map(str, arguments)])


def later(*arguments: object) -> Figures:
    """Messages that are all due at one moment."""
    return run([sys.executable, "-m", "bench.later", *map(str, arguments)])
