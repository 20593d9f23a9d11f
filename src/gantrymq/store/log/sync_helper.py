"""The helper process behind `HelperSyncer`: receives descriptors, syncs them, reports.

It runs as a bare script with nothing but the standard library. Its standard input is a socket that
keeps message boundaries: a request is an i64 ticket together with descriptors, a reply is the
ticket and an errno, 0 for success. It ends when the other side closes.
"""

import os
import signal
import socket
import struct

DESCRIPTORS_MAX = 64


def sync_all(descriptors: list[int]) -> int:
    """Sync every descriptor and close it; the errno of the first failure, or 0."""
    failed = 0
    for descriptor in descriptors:
        try:
            getattr(os, "fdatasync", os.fsync)(descriptor)
        except OSError as error:
            failed = failed or error.errno or 5
        finally:
            os.close(descriptor)
    return failed


def main() -> None:
    """Serve until the socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(fileno=0) as link:
        while True:
            request, descriptors, _, _ = socket.recv_fds(link, 8, DESCRIPTORS_MAX)
            if not request:
                return
            (ticket,) = struct.unpack(">q", request)
            link.send(struct.pack(">qi", ticket, sync_all(descriptors)))


if __name__ == "__main__":
    main()
