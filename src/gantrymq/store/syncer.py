"""Who calls fdatasync: a port, a helper process that needs no GIL of ours, and an inline one."""

import asyncio
import errno
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from gantrymq.base.disk import File

log = logging.getLogger(__name__)

Done = Callable[[OSError | None], None]

_REQUEST = struct.Struct(">q")
_REPLY = struct.Struct(">qi")

FILES_MAX = 64
"""Descriptors in one message to the helper."""


class Syncer(Protocol):
    """Makes files durable without stopping the event loop."""

    def sync(self, files: Sequence[File], done: Done) -> None:
        """Sync the files in order, then call back on the loop, later, with the first error."""

    def close(self) -> None:
        """Let go of helpers; what is under way is reported as failed."""


class InlineSyncer:
    """Syncs on the loop after a delay in loop time: for simulations and tests."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    def sync(self, files: Sequence[File], done: Done) -> None:
        loop = asyncio.get_running_loop()
        if self.delay:
            loop.call_later(self.delay, _sync_now, files, done)
        else:
            loop.call_soon(_sync_now, files, done)

    def close(self) -> None:
        """There is nothing to let go of."""


def _sync_now(files: Sequence[File], done: Done) -> None:
    try:
        for file in files:
            file.sync()
    except OSError as error:
        done(error)
    else:
        done(None)


class HelperSyncer:
    """A helper process that receives descriptors, runs fdatasync on them and reports back.

    A worker thread of this process would wait for the interpreter lock after each sync, behind a
    busy loop; another process does not. It starts with the first sync and ends with the socket.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, Done] = {}
        self._ticket = 0

    def sync(self, files: Sequence[File], done: Done) -> None:
        if len(files) > FILES_MAX:
            rest = files[FILES_MAX:]
            self.sync(
                files[:FILES_MAX], lambda error: done(error) if error else self.sync(rest, done)
            )
            return
        try:
            link = self._socket or self._start()
            self._ticket += 1
            descriptors = [file.fileno() for file in files]
            socket.send_fds(link, [_REQUEST.pack(self._ticket)], descriptors)
        except OSError as error:
            asyncio.get_running_loop().call_soon(done, error)
        else:
            self._waiting[self._ticket] = done

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("sync_helper.py"))],
                stdin=theirs.fileno(),
                # A terminal's Ctrl-C must not end it before the broker's last flush.
                start_new_session=True,
            )
        ours.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours.fileno(), self._on_reply)
        self._socket = ours
        return ours

    def _on_reply(self) -> None:
        assert self._socket is not None
        try:
            reply = self._socket.recv(_REPLY.size)
        except BlockingIOError:
            return
        except OSError:
            reply = b""
        if not reply:
            # Whether the last sync failed is unknown now, so it counts as failed.
            self._drop(OSError(errno.EIO, "the sync helper has ended"))
            return
        ticket, number = _REPLY.unpack(reply)
        error = OSError(number, os.strerror(number)) if number else None
        self._waiting.pop(ticket)(error)

    def _drop(self, error: OSError) -> None:
        if self._socket is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._socket = None
        if self._process is not None:
            self._process.wait()
            self._process = None
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            done(error)

    def close(self) -> None:
        self._drop(OSError(errno.ECANCELED, "the sync helper was closed"))
