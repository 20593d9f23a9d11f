"""A thread that makes files durable: the twin of the compiled thread.

It is controlled through two pipes, which an event loop can watch and C can read. A request is a
ticket and the descriptors to sync, which the thread closes afterwards; a reply is the ticket and
the errno of the first failure, 0 for none. Both have a fixed size below PIPE_BUF, so each arrives
completely or not at all. The twin needs the interpreter lock after every sync; the compiled thread
never does.
"""

import errno
import os
import struct
import threading
from collections.abc import Sequence
from typing import Final

FILES_MAX: Final = 64
"""Descriptors in one request."""

_REQUEST = struct.Struct("=qi64ii")
_REPLY = struct.Struct("=qii")
REPLY_BYTES: Final = _REPLY.size


def request_bytes(ticket: int, descriptors: Sequence[int]) -> bytes:
    """A request, in the machine's own byte order."""
    padding = (0,) * (FILES_MAX - len(descriptors))
    return _REQUEST.pack(ticket, len(descriptors), *descriptors, *padding, 0)


def replies_of(data: bytes) -> list[tuple[int, int]]:
    """Ticket and errno of each reply."""
    return [(ticket, number) for ticket, number, _ in _REPLY.iter_unpack(data)]


class SyncThread:
    """Serves `requests` until its other end is closed."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._thread = threading.Thread(target=self._serve, name="sync", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while request := os.read(self._requests, _REQUEST.size):
            ticket, count, *descriptors = _REQUEST.unpack(request)
            failed = 0
            for descriptor in descriptors[:count]:
                error = _sync(descriptor)
                failed = failed or error
                os.close(descriptor)
            os.write(self._replies, _REPLY.pack(ticket, failed, 0))

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()


def _sync(descriptor: int) -> int:
    try:
        getattr(os, "fdatasync", os.fsync)(descriptor)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
