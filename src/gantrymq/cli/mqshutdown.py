"""`mqshutdown`: stops the servers of this user on this machine, as RocketMQ's script does."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

import click

from gantrymq.base.clock import elapsed_seconds
from gantrymq.cli.common.guard import GuardedCommand

PROGRAMS: Final = {"broker": "mqbroker", "namesrv": "mqnamesrv"}
WAIT_SECONDS_MAX: Final = 120.0
"""As long as the systemd unit gives a broker to answer, flush and save."""
LOOK_SECONDS: Final = 0.1


@click.command("mqshutdown", cls=GuardedCommand)
@click.argument("kind", type=click.Choice(sorted(PROGRAMS)))
def mqshutdown(kind: str) -> None:
    """Stop all brokers or name servers that this user runs on this machine, and wait for their end.

    The exit code is 1 if none runs, or one does not end within two minutes.
    """
    program = PROGRAMS[kind]
    found = running(program)
    if not found:
        print(f"No {program} running.", file=sys.stderr)
        raise SystemExit(1)
    for pid in found:
        print(f"The {program}({pid}) is running...")
        os.kill(pid, signal.SIGTERM)
        print(f"Send shutdown request to {program}({pid}) OK")
    left = _wait(found)
    if left:
        print(f"{program}({', '.join(map(str, left))}) is still stopping", file=sys.stderr)
        raise SystemExit(1)


def running(program: str) -> list[int]:
    """The processes of this user that run a server, by its script or as `gantry broker`."""
    return sorted(
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and int(folder.name) != os.getpid() and _runs(folder, program)
    )


def _runs(folder: Path, program: str) -> bool:
    try:
        if folder.stat().st_uid != os.getuid():
            return False
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return False  # it ended meanwhile, or is another user's
    names = [Path(word).name for word in words[:3]]
    return program in names or names[1:] == ["gantry", program.removeprefix("mq")]


def _wait(pids: list[int]) -> list[int]:
    """Those that still run when the time is over."""
    end = elapsed_seconds() + WAIT_SECONDS_MAX
    while pids and elapsed_seconds() < end:
        time.sleep(LOOK_SECONDS)
        pids = [pid for pid in pids if Path(f"/proc/{pid}").exists() and not _is_dead(pid)]
    return pids


def _is_dead(pid: int) -> bool:
    """Whether it has ended and only its parent has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
