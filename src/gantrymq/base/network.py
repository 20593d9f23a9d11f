"""The network as a port: asyncio's protocols and transports are the contract on both sides."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol, TypeVar

from gantrymq.base.errors import GantryError

P = TypeVar("P", bound=asyncio.Protocol)
LISTEN_BACKLOG = 1024


class ConnectFailed(GantryError):
    """Nobody answered at an address."""


class Listener(Protocol):
    """An open port."""

    @property
    def port(self) -> int:
        """The port in use; the one the system chose when 0 was asked for."""

    async def close(self) -> None:
        """Stop accepting; connections that exist are not touched."""


class Network(Protocol):
    """How protocols meet."""

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        """Accept connections, each with a protocol of its own."""

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        """Reach a peer or raise ConnectFailed, naming it."""

    def free_port(self, host: str) -> int:
        """A port nobody listens on, for those who must know it before they listen."""


class _TcpListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()


class TcpNetwork:
    """Real sockets."""

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(factory, host, port, backlog=LISTEN_BACKLOG)
        except OSError as error:
            raise GantryError(f"cannot listen on {host}:{port}: {error}") from error
        return _TcpListener(server)

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                _, protocol = await loop.create_connection(factory, host, port)
        except TimeoutError as error:
            raise ConnectFailed(f"connect to {host}:{port} took over {timeout:g} s") from error
        except OSError as error:
            raise ConnectFailed(f"connect to {host}:{port} failed: {error}") from error
        return protocol

    def free_port(self, host: str) -> int:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, 0))
            return int(probe.getsockname()[1])


def split_address(address: str, default_port: int | None = None) -> tuple[str, int]:
    """'host:port' in two; a missing port is an error unless there is a default."""
    host, mark, port = address.strip().rpartition(":")
    if not mark and default_port is not None:
        return address.strip(), default_port
    if not mark or not port.isdecimal() or not host:
        raise GantryError(f"{address!r} is no address: write host:port")
    return host.strip("[]"), int(port)
