"""A network whose connections are TLS: those it opens, and on its ports those that ask for it.

The first byte of a connection tells: a TLS handshake begins with 0x16, and no frame of RocketMQ
does. So one port serves both, and what a plain connection costs is one look at its first bytes.
"""

import asyncio
import enum
import logging
import ssl
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar, cast

from gantrymq.base.network import ConnectFailed, CountedFactory, Listener, Network
from gantrymq.base.tls.layer import TlsLayer

log = logging.getLogger(__name__)

P = TypeVar("P", bound=asyncio.Protocol)

TLS_FIRST_BYTE: Final = 0x16
FIRST_BYTE_SECONDS_MAX: Final = 120.0
"""A connection that says nothing for so long is closed, like any idle one."""


class TlsMode(enum.Enum):
    """`tls.server.mode`: whether a port takes TLS, both, or nothing else."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ServerTls(Protocol):
    """What a port knows of TLS; both may change while it is open, for connections to come."""

    @property
    def mode(self) -> TlsMode: ...

    @property
    def context(self) -> ssl.SSLContext | None:
        """None as long as there is no certificate."""


class FirstByte(asyncio.Protocol):
    """Waits for the first byte of a connection, then steps aside for the protocol that it needs."""

    def __init__(self, above: Callable[[], asyncio.Protocol], tls: ServerTls) -> None:
        self._make_above, self._tls = above, tls
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._counted_at: str | None = None
        """The address under which this connection is counted, until its protocol begins."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if isinstance(self._make_above, CountedFactory):
            address = str((transport.get_extra_info("peername") or ("",))[0])
            if not self._make_above.enter(address):
                self._transport.abort()
                return
            self._counted_at = address
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(FIRST_BYTE_SECONDS_MAX, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_counting()

    def _stop_counting(self) -> None:
        address, self._counted_at = self._counted_at, None
        if address is not None and isinstance(self._make_above, CountedFactory):
            self._make_above.leave(address)

    def _above(self) -> asyncio.Protocol:
        """The protocol above, which is counted from now on."""
        self._stop_counting()
        return self._make_above()

    def data_received(self, data: bytes) -> None:
        self._stop_timer()
        refusal = self._refusal(data[0])
        if refusal is not None:
            log.warning("%s refused: %s", self._transport.get_extra_info("peername"), refusal)
            self._transport.abort()
            return
        context = self._tls.context if data[0] == TLS_FIRST_BYTE else None
        protocol: asyncio.Protocol
        if context is None:
            protocol = self._above()
        else:
            protocol = TlsLayer(
                self._above, context, server_side=True, on_ready=lambda _: self._stop_counting()
            )
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)

    def _refusal(self, first: int) -> str | None:
        mode = self._tls.mode
        if first != TLS_FIRST_BYTE:
            if mode is TlsMode.ENFORCING:
                return "it does not speak TLS, and tls.server.mode is enforcing"
        elif mode is TlsMode.DISABLED:
            return "it speaks TLS, and tls.server.mode is disabled"
        elif self._tls.context is None:
            return "it speaks TLS, and there is no certificate (tls.server.certPath)"
        return None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class TlsNetwork:
    """Another network, with TLS on its ports or on the connections that it opens."""

    def __init__(
        self,
        below: Network,
        *,
        server: ServerTls | None = None,
        client: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._below, self._server, self._client = below, server, client

    @property
    def takes_tls_only(self) -> bool:
        """Whether its ports refuse plain connections."""
        return self._server is not None and self._server.mode is TlsMode.ENFORCING

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        """Accept connections, plain or TLS."""
        server = self._server
        if server is None:
            return await self._below.listen(host, port, factory)
        return await self._below.listen(host, port, lambda: FirstByte(factory, server))

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        """Connect, and shake hands if connections are to be TLS."""
        if self._client is None:
            return await self._below.connect(host, port, factory, timeout)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        context = self._client()

        def settle(failure: Exception | None) -> None:
            if ready.done():
                return
            if failure is None:
                ready.set_result(None)
            else:
                ready.set_exception(failure)

        def layer() -> TlsLayer:
            name = host if context.check_hostname else None
            return TlsLayer(factory, context, server_side=False, server_name=name, on_ready=settle)

        made = await self._below.connect(host, port, layer, timeout)
        try:
            async with asyncio.timeout(timeout):
                await ready
        except TimeoutError as error:
            made.close()
            raise ConnectFailed(f"TLS to {host}:{port} took over {timeout:g} s") from error
        except (ssl.SSLError, OSError) as error:
            raise ConnectFailed(f"TLS to {host}:{port} failed: {error}") from error
        return cast(P, made.above)

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        return self._below.free_port(host, beside)
