"""Runs fdatasync: an interface, and behind it a thread, a helper process or the loop itself.

A sync must neither block the event loop nor wait for its interpreter lock; otherwise a busy broker
commits only a few times a second. With the compiled kernel a thread without Python does it, else a
process.
"""

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
from gantrymq.kernel import GRADE, SyncThread
from gantrymq.kernel.syncing import REPLY_BYTES, replies_of, request_bytes

log = logging.getLogger(__name__)

Done = Callable[[OSError | None], None]

_REQUEST = struct.Struct(">q")
_REPLY = struct.Struct(">qi")

FILES_MAX = 64
"""Descriptors in one message to the helper or the thread."""
_NO_PIPE = (-1, -1)


class Syncer(Protocol):
    """Makes files durable without blocking the event loop."""

    def sync(self, files: Sequence[File], done: Done) -> None:
        """Sync the files in order; later call `done` on the loop with the first error or None."""

    def close(self) -> None:
        """End the thread or process; syncs under way are reported as failed."""


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
        """Nothing to end."""


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
            # The result of the last sync is unknown, so it counts as failed.
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


class ThreadSyncer:
    """A thread of the kernel that runs fdatasync; replies come through a pipe the loop watches.

    It starts with the first sync. Descriptors are duplicated for it, so a file that the store
    closes meanwhile is synced all the same.
    """

    def __init__(self) -> None:
        self._thread: SyncThread | None = None
        self._requests, self._replies = _NO_PIPE, _NO_PIPE
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
        copies: list[int] = []
        try:
            if self._thread is None:
                self._start()
            copies += (os.dup(file.fileno()) for file in files)
            self._ticket += 1
            os.write(self._requests[1], request_bytes(self._ticket, copies))
        except OSError as error:
            for copy in copies:
                os.close(copy)
            asyncio.get_running_loop().call_soon(done, error)
        else:
            self._waiting[self._ticket] = done

    def _start(self) -> None:
        self._requests, self._replies = os.pipe(), os.pipe()
        # Neither an early wake-up nor a full pipe may block the loop.
        os.set_blocking(self._requests[1], False)
        os.set_blocking(self._replies[0], False)
        self._thread = SyncThread(self._requests[0], self._replies[1])
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._replies[0], self._on_replies)

    def _on_replies(self) -> None:
        try:
            data = os.read(self._replies[0], REPLY_BYTES * FILES_MAX)
        except BlockingIOError:
            return
        for ticket, number in replies_of(data):
            error = OSError(number, os.strerror(number)) if number else None
            done = self._waiting.pop(ticket, None)
            if done is not None:  # an earlier callback may have closed this syncer
                done(error)

    def close(self) -> None:
        if self._thread is None:
            return
        os.close(self._requests[1])
        self._thread.join()
        self._thread = None
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._replies[0])
        for descriptor in (self._requests[0], *self._replies):
            os.close(descriptor)
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            done(OSError(errno.ECANCELED, "the sync thread was closed"))


def best_syncer() -> Syncer:
    """The syncer of a broker: a busy loop does not slow down its commits."""
    return ThreadSyncer() if GRADE == "compiled" else HelperSyncer()
