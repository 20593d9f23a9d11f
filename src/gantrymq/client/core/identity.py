"""The address of a client, and the ids it gives to its messages."""

import datetime
import ipaddress
import socket
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.protocol.ids import UniqueIds

DEFAULT_INSTANCE: Final = "DEFAULT"
_NOWHERE: Final = ("192.0.2.1", 9)
"""An address reserved for documentation: asking for the way there sends nothing."""


def local_ip() -> str:
    """The address that this machine sends from; the loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_NOWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def month_bounds_ms(now_ms: int) -> tuple[int, int]:
    """The begin, in ms, of the local month of `now_ms`, and of the next month."""
    first = datetime.datetime.fromtimestamp(now_ms / 1000).astimezone()
    first = first.replace(day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    following = (first + datetime.timedelta(days=32)).replace(day=1)
    return int(first.timestamp() * 1000), int(following.timestamp() * 1000)


class MessageIds:
    """Makes the UNIQ_KEYs of one client. Their time counts from the start of the month."""

    def __init__(self, client_ip: str, pid: int, salt: int, clock: WallClock) -> None:
        self._address = _packed(client_ip)
        self._pid, self._salt, self._clock = pid, salt, clock
        self._month_end_ms = 0
        self._ids = UniqueIds(self._address, pid, salt, 0)

    def next(self) -> tuple[str, int]:
        """A new id and its time in ms."""
        now_ms = self._now()
        return self._ids.next(now_ms), now_ms

    def coming(self) -> tuple[str, int, int]:
        """What the next ids are made of, for who makes many at once: their stem, the counter of the
        first, and their time in ms. `skip` says how many were made."""
        now_ms = self._now()
        return *self._ids.coming(now_ms), now_ms

    def skip(self, count: int) -> None:
        """So many ids of those to come are taken."""
        self._ids.skip(count)

    def _now(self) -> int:
        now_ms = self._clock.now_ms()
        if now_ms >= self._month_end_ms:
            start_ms, self._month_end_ms = month_bounds_ms(now_ms)
            self._ids = UniqueIds(self._address, self._pid, self._salt, start_ms)
        return now_ms


def _packed(client_ip: str) -> bytes:
    """The address as bytes; 127.0.0.1 for a `clientIP` that is a name, to keep the length."""
    try:
        return ipaddress.ip_address(client_ip).packed
    except ValueError:
        return b"\x7f\x00\x00\x01"
