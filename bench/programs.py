"""Load comes from processes of its own, so that a broker never shares its core with its clients."""

import json
import os
import subprocess
import sys
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


def gantry(*arguments: object) -> Figures:
    """`gantry bench ...`, the program that users have."""
    return run([str(BIN / "gantry"), "bench", *map(str, arguments)])


def load(*arguments: object) -> Figures:
    """The raw load generator."""
    return run([sys.executable, "-m", "bench.load", *map(str, arguments)])


def connections(*arguments: object) -> Figures:
    """The same over several connections."""
    return run([sys.executable, "-m", "bench.connections", *map(str, arguments)])


def drain(*arguments: object, pure: bool = False) -> Figures:
    """The raw reader."""
    return run([sys.executable, "-m", "bench.drain", *map(str, arguments)], pure=pure)


def consume(*arguments: object) -> Figures:
    """A consumer of 64 keys, in order or not."""
    return run([sys.executable, "-m", "bench.consume", *map(str, arguments)])


def later(*arguments: object) -> Figures:
    """Messages that are all due at one moment."""
    return run([sys.executable, "-m", "bench.later", *map(str, arguments)])
