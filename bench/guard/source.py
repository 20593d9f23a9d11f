"""The tree of an older commit, with its own compiled kernel."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from bench.servers import ROOT

AGE = timedelta(hours=12)


class NoBase(Exception):
    """There is no commit to compare with."""


def older_commit() -> str:
    """The newest commit that is at least half a day older than this one."""
    then = datetime.fromisoformat(_git("log", "-1", "--format=%cI")) - AGE
    found = _git("rev-list", "-1", "--first-parent", f"--before={then.isoformat()}", "HEAD")
    if not found:
        raise NoBase("this clone has no commit that is half a day older: name one with --base")
    return found


def unpack(commit: str, folder: Path) -> Path:
    """Lay a commit's package out and compile its kernel; returns the folder to import from."""
    try:
        name = _git("rev-parse", "--verify", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise NoBase(f"{commit!r} is no commit of this clone") from None
    archive = folder / "base.tar"
    _git("archive", f"--output={archive}", name, "src", "setup.py", "pyproject.toml", "README.md")
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "src"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    )  # fmt: skip
    return done.stdout.strip()
