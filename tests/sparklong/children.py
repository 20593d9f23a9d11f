"""Programs of users in processes of their own, with an end to their patience."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

RUN_SECONDS_MAX = 120.0


class Ended(NamedTuple):
    """What a program left: its exit code and what it said."""

    code: int
    out: str
    err: str


def run_child(
    words: Sequence[str | Path],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    seconds: float = RUN_SECONDS_MAX,
) -> Ended:
    """Run a program in a folder; it and all that it started are gone afterwards."""
    child = start_child(words, folder, environ)
    try:
        out, err = child.communicate(timeout=seconds)
    finally:
        end_child(child)
    return Ended(child.returncode, out, err)


def start_child(
    words: Sequence[str | Path],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    out: IO[str] | int = subprocess.PIPE,
) -> "subprocess.Popen[str]":
    """Start a program in a process group of its own; one that is not read needs a file as `out`."""
    return subprocess.Popen(
        [str(word) for word in words],
        cwd=folder, env=os.environ | dict(environ or {}), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True,
    )  # fmt: skip


def end_child(child: "subprocess.Popen[str]") -> None:
    """Kill what is left of it."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def python_child(code: str, folder: Path, *words: str) -> Ended:
    """Run a Python program that is given as text."""
    return run_child([sys.executable, "-c", code, *words], folder)
