"""Message ids and host addresses as bytes."""

import ipaddress
import struct
from typing import NamedTuple

from gantrymq.base.errors import ProtocolError
from gantrymq.base.layout import U16, U32, byte_layout

_PORT = struct.Struct(">i")
_PLACE = struct.Struct(">iq")


class UniqueTail(NamedTuple):
    """What follows the client's address in an id that a client makes."""

    pid: U16
    """Low bits of the process number."""
    salt: U32
    """Random for each client; RocketMQ has the hash of a class loader here."""
    since_ms: U32
    """Milliseconds since the month began."""
    counter: U16
    """Counts the ids of this client."""


_UNIQUE_TAIL = byte_layout(UniqueTail)


class Place(NamedTuple):
    """Where a stored message lies: the broker's address and the log offset."""

    host: str
    port: int
    offset: int


def encode_host(host: str, port: int) -> bytes:
    """8 bytes for IPv4, 20 for IPv6: the form records and ids use."""
    return ipaddress.ip_address(host.split("%")[0]).packed + _PORT.pack(port)


def decode_host(data: bytes) -> tuple[str, int]:
    return str(ipaddress.ip_address(data[:-4])), _PORT.unpack(data[-4:])[0]


def offset_msg_id(store_host: bytes, offset: int) -> str:
    """The offset message id: the broker's address and the record's log offset."""
    return f"{store_host.hex()}{offset:016x}".upper()


def parse_offset_msg_id(text: str) -> Place:
    try:
        data = bytes.fromhex(text)
        host = str(ipaddress.ip_address(data[:-12]))
        port, offset = _PLACE.unpack(data[-12:])
    except (ValueError, struct.error) as error:
        raise ProtocolError(
            f"{text!r} is not an offset message id (32 or 56 hex digits)"
        ) from error
    return Place(host, port, offset)


def read_unique_id(text: str) -> tuple[str, int]:
    """The address in an id that a client made, and its milliseconds since the month began."""
    try:
        data = bytes.fromhex(text)
        host, tail = (
            data[: -_UNIQUE_TAIL.size],
            UniqueTail(*_UNIQUE_TAIL.unpack(data[-_UNIQUE_TAIL.size :])),
        )
        return str(ipaddress.ip_address(host)), tail.since_ms
    except (ValueError, struct.error) as error:
        raise ProtocolError(f"{text!r} is no id of a client (32 or 56 hex digits)") from error


class UniqueIds:
    """Makes the client's own message ids (UNIQ_KEY): address, process, time in month, counter."""

    def __init__(self, address: bytes, pid: int, salt: int, month_start_ms: int) -> None:
        self._head = address
        self._pid = pid & 0xFFFF
        self._salt = salt & 0xFFFF_FFFF
        self._month_start_ms = month_start_ms
        self._counter = 0
        self._stem = ""
        self._stem_ms = -1

    def next(self, now_ms: int) -> str:
        """A new id; unique in this process, ordered within a millisecond."""
        stem, counter = self.coming(now_ms)
        self._counter = (counter + 1) & 0xFFFF
        return f"{stem}{counter:04X}"

    def coming(self, now_ms: int) -> tuple[str, int]:
        """The stem of the next ids, and the counter of the first: four hex digits at its end."""
        if now_ms != self._stem_ms:
            self._stem_ms = now_ms
            since = (now_ms - self._month_start_ms) & 0xFFFF_FFFF
            tail = _UNIQUE_TAIL.pack(self._pid, self._salt, since, 0)[:-2]
            self._stem = (self._head + tail).hex().upper()
        return self._stem, self._counter

    def skip(self, count: int) -> None:
        """So many ids of those to come are taken."""
        self._counter = (self._counter + count) & 0xFFFF
