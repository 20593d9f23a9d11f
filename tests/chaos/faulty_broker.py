"""`mqbroker` with a disk port that fails while a file says so.

The environment names the file; it has the name of a disk fault, or nothing.
"""

import asyncio
import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from gantrymq.base.disk import File, OsDisk, OsFile
from gantrymq.base.network import Network
from gantrymq.broker import app
from gantrymq.cli.servers import mqbroker
from gantrymq.store.log.syncer import Done, Syncer

__all__ = ["CONTROL_VARIABLE", "mqbroker"]

CONTROL_VARIABLE: Final = "GANTRYMQ_CHAOS_DISK"
SYNC_SECONDS: Final = 0.2
"""How long a slow disk takes for a flush."""


def fault() -> str:
    """The fault that the disk has now."""
    return Path(os.environ[CONTROL_VARIABLE]).read_text()


def check(path: str, *, needs_room: bool) -> None:
    """Raise what a bad disk would."""
    now = fault()
    if now == "disk-read-only":
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
    if now == "disk-full" and needs_room:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class FaultyFile(OsFile):
    """A full disk still takes what was allocated before."""

    __slots__ = ()

    def pwrite(self, data: bytes | bytearray | memoryview, at: int) -> None:
        check(self.path, needs_room=at + len(data) > self.size())
        super().pwrite(data, at)

    def allocate(self, size: int) -> None:
        check(self.path, needs_room=True)
        super().allocate(size)


class FaultyDisk(OsDisk):
    """Files that fail."""

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        if create and not Path(path).exists():
            check(path, needs_room=True)
        whole = super().open(path, create=create)
        return FaultyFile(os.dup(whole.fileno()), path)


class FaultySyncer:
    """Flushes that are late, or fail."""

    def __init__(self, inner: Syncer) -> None:
        self._inner = inner

    def sync(self, files: Sequence[File], done: Done) -> None:
        loop, now = asyncio.get_running_loop(), fault()
        if now == "disk-slow":
            loop.call_later(SYNC_SECONDS, self._inner.sync, files, done)
        elif now == "disk-read-only":
            loop.call_soon(done, OSError(errno.EROFS, os.strerror(errno.EROFS)))
        else:
            self._inner.sync(files, done)

    def close(self) -> None:
        self._inner.close()


def install() -> None:
    """Give every broker of this process such a disk."""
    ports = app.real_ports

    def faulty_ports(network: Network | None = None) -> app.Ports:
        real = ports(network)
        return replace(real, disk=FaultyDisk(), syncer=FaultySyncer(real.syncer))

    app.real_ports = faulty_ports


if CONTROL_VARIABLE in os.environ:
    install()
