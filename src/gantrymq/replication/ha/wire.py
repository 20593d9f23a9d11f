"""The bytes of the HA port. Pure.

A slave sends reports of 8 bytes: the end of its log. The first one asks for the log from there on,
every later one acknowledges. The master sends transfers: a head of 12 bytes and raw bytes of its
log; a transfer without bytes is a heartbeat. A transfer never crosses a log file, but it may begin
and end inside a record.
"""

from typing import Final, NamedTuple

from gantrymq.base.errors import ProtocolError
from gantrymq.base.layout import I32, I64, byte_layout


class HaReport(NamedTuple):
    """What a slave sends."""

    log_end: I64
    """The end of the slave's log."""


class HaTransferHead(NamedTuple):
    """What stands before the bytes that a master sends."""

    log_offset: I64
    """The log offset of the first byte that follows."""
    size: I32
    """How many bytes follow; 0 is a heartbeat."""


REPORT: Final = byte_layout(HaReport)
TRANSFER_HEAD: Final = byte_layout(HaTransferHead)

TRANSFER_BYTES_MAX: Final = 1 << 20
"""What our master sends in one transfer. A Java slave reads into a buffer of 4 MiB."""
PEER_TRANSFER_BYTES_MAX: Final = 64 << 20
"""A transfer of another master above this size is taken for garbage."""


class ReportReader:
    """Cuts what a slave sends into reports."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[int]:
        """The reports that are complete now."""
        data = self._rest + data
        whole = len(data) - len(data) % REPORT.size
        self._rest = data[whole:]
        return [offset for (offset,) in REPORT.iter_unpack(data[:whole])]


class TransferReader:
    """Cuts what a master sends into pieces of its log, without waiting for a whole transfer."""

    def __init__(self) -> None:
        self._head = b""
        self._at = self._left = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Each piece with its log offset; an empty one is a heartbeat."""
        pieces: list[tuple[int, bytes]] = []
        position = 0
        while position < len(data):
            if self._left:
                piece = data[position : position + self._left]
                pieces.append((self._at, piece))
                self._at += len(piece)
                self._left -= len(piece)
                position += len(piece)
                continue
            missing = TRANSFER_HEAD.size - len(self._head)
            self._head += data[position : position + missing]
            position += missing
            if len(self._head) == TRANSFER_HEAD.size:
                self._at, self._left = TRANSFER_HEAD.unpack(self._head)
                self._head = b""
                if self._at < 0 or not 0 <= self._left <= PEER_TRANSFER_BYTES_MAX:
                    raise ProtocolError(
                        f"a transfer of {self._left} bytes at log offset {self._at}: "
                        "the peer is no HA port of a master"
                    )
                if not self._left:
                    pieces.append((self._at, b""))
        return pieces
