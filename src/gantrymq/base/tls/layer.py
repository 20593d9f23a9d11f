"""TLS between a transport and a protocol, over memory buffers: any transport will do.

`TlsLayer` is the protocol of the transport below, and what it hands to the protocol above looks
like a plain transport. The handshake comes first; the protocol above hears of a connection only
when it is done.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, cast

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS_MAX: Final = 10.0
READ_BYTES: Final = 256 * 1024


class TlsTransport(asyncio.Transport):
    """What the protocol above writes to."""

    def __init__(self, layer: "TlsLayer", below: asyncio.Transport) -> None:
        super().__init__()
        self._layer, self._below = layer, below

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._layer.session
        return self._below.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._layer.encrypt((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._layer.encrypt(list_of_data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._layer.set_reading(False)

    def resume_reading(self) -> None:
        self._layer.set_reading(True)

    def is_reading(self) -> bool:
        return self._layer.reading

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def close(self) -> None:
        self._layer.close()

    def abort(self) -> None:
        self._below.abort()


class TlsLayer(asyncio.Protocol):
    """One connection: handshake, then bytes both ways."""

    def __init__(
        self,
        above: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_name: str | None = None,
        on_ready: Callable[[Exception | None], None] | None = None,
    ) -> None:
        self._make_above, self._context = above, context
        self._server_side, self._server_name = server_side, server_name
        self._on_ready = on_ready
        """Told of the end of the handshake: nothing, or why it failed."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._below: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self.session: ssl.SSLObject
        self.above: asyncio.Protocol | None = None
        """The protocol above, once the handshake is done."""
        self.reading = True

    # the side of the transport below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = cast(asyncio.Transport, transport)
        self.session = self._context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=self._server_side,
            server_hostname=self._server_name,
        )
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(HANDSHAKE_SECONDS_MAX, self._handshake_is_late)
        self._shake_hands()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        if self.above is None:
            self._shake_hands()
        if self.above is not None:
            self._decrypt()

    def eof_received(self) -> bool | None:
        return None  # the transport below closes, and says so

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.above is not None:
            self.above.connection_lost(exc)
        else:
            ended = "the connection was closed during the TLS handshake"
            self._tell(self._failure or exc or ConnectionResetError(ended))

    def pause_writing(self) -> None:
        if self.above is not None:
            self.above.pause_writing()

    def resume_writing(self) -> None:
        if self.above is not None:
            self.above.resume_writing()

    # handshake

    def _shake_hands(self) -> None:
        try:
            self.session.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._send()  # the alert that tells the peer why
            self._fail(error)
            return
        self._send()
        self._stop_timer()
        self.above = self._make_above()
        self.above.connection_made(TlsTransport(self, self._below))
        self._tell(None)

    def _handshake_is_late(self) -> None:
        self._fail(TimeoutError(f"no TLS handshake within {HANDSHAKE_SECONDS_MAX:g} s"))

    def _fail(self, error: Exception) -> None:
        self._failure = error
        if self._server_side:
            peer = self._below.get_extra_info("peername")
            log.warning("TLS connection of %s refused: %s", peer, error)
        self._below.close()

    def _tell(self, failure: Exception | None) -> None:
        on_ready, self._on_ready = self._on_ready, None
        if on_ready is not None:
            on_ready(failure)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # bytes

    def _decrypt(self) -> None:
        """Hand all that has arrived to the protocol above, as long as it reads."""
        assert self.above is not None
        while self.reading and not self._below.is_closing():
            try:
                data = self.session.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                self.close()
                break
            except ssl.SSLError as error:
                log.warning("%s: %s", self._below.get_extra_info("peername"), error)
                self._below.abort()
                break
            if not data:
                self.close()
                break
            self.above.data_received(data)
        self._send()  # answers of TLS itself, such as to a change of keys

    def encrypt(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send bytes of the protocol above."""
        if self._below.is_closing():
            return
        try:
            for part in parts:
                if len(part):
                    self.session.write(part)
        except ssl.SSLError as error:
            log.warning("%s: %s", self._below.get_extra_info("peername"), error)
            self._below.abort()
            return
        self._send()

    def _send(self) -> None:
        if self._outgoing.pending and not self._below.is_closing():
            self._below.write(self._outgoing.read())

    def set_reading(self, wanted: bool) -> None:
        """Read on, or stop: what has arrived then waits here."""
        if wanted == self.reading:
            return
        self.reading = wanted
        if wanted:
            self._below.resume_reading()
            asyncio.get_running_loop().call_soon(self._decrypt)
        else:
            self._below.pause_reading()

    def close(self) -> None:
        """Say goodbye to the peer, then close once everything has left."""
        if self.above is not None and not self._below.is_closing():
            with suppress(ssl.SSLError):
                self.session.unwrap()
            self._send()
        self._below.close()
