"""The network as a port: asyncio's protocols and transports are the contract on both sides."""

import asyncio
import random
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from gantrymq.base.errors import GantryError

P = TypeVar("P", bound=asyncio.Protocol)
LISTEN_BACKLOG = 1024
FIRST_FREE_PORT = 10_000
EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_EPHEMERAL_PORT = 32_768


class ConnectFailed(GantryError):
    """No connection could be made to an address."""


class Listener(Protocol):
    """An open port."""

    @property
    def port(self) -> int:
        """The port in use; the one the system chose when 0 was asked for."""

    async def close(self) -> None:
        """Stop accepting; connections that exist are not touched."""


class CountedFactory(ABC):
    """A factory of protocols that is told of connections before their protocol begins.

    With TLS a connection may be silent, or shake hands, for a while; it has to be counted all the
    same.
    """

    @abstractmethod
    def __call__(self) -> asyncio.Protocol:
        """The protocol of a connection."""

    @abstractmethod
    def enter(self, address: str) -> bool:
        """A connection came from an IP address; False if it is to be cut."""

    @abstractmethod
    def leave(self, address: str) -> None:
        """Its protocol begins now, or it ended before."""


class Network(Protocol):
    """Opens ports and connections."""

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        """Accept connections, each with a protocol of its own."""

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        """Connect to a peer, or raise ConnectFailed, which names it; `timeout` in seconds."""

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        """A free port to listen on, with free neighbours at these distances."""


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

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        return free_port(host, beside)


def limit_silence(transport: asyncio.BaseTransport, seconds: float) -> None:
    """Let the system break a connection whose peer has acknowledged nothing for so long.

    Otherwise TCP tries for a quarter of an hour, in pauses that double. Systems other than Linux,
    and networks in memory, do not know this limit.
    """
    connected = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if connected is not None and option is not None:
        connected.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))


def limit_received(transport: asyncio.BaseTransport, size: int) -> None:
    """Let the system keep so many bytes that have arrived and are not read; 0 leaves it alone.

    Networks in memory do not know this limit.
    """
    connected = transport.get_extra_info("socket")
    if connected is not None and size:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def free_port(host: str, beside: Sequence[int] = ()) -> int:
    """A free port, whose neighbours at these distances are free, too.

    It is never one of the ports that the system uses for outgoing connections: such a port may be
    taken before the caller listens on it, or while a server restarts.
    """
    candidates = range(FIRST_FREE_PORT, _first_ephemeral_port())
    for port in random.sample(candidates, len(candidates)):
        if all(_is_free(host, port + distance) for distance in (0, *beside)):
            return port
    raise GantryError(
        f"no free port on {host} from {candidates.start} to {candidates.stop - 1}: name one"
    )


def _first_ephemeral_port() -> int:
    try:
        first = int(EPHEMERAL_PORTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return FIRST_EPHEMERAL_PORT
    return first if first > FIRST_FREE_PORT + 1_000 else FIRST_EPHEMERAL_PORT


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def split_address(address: str, default_port: int | None = None) -> tuple[str, int]:
    """'host:port' in two; a missing port is an error unless there is a default."""
    host, mark, port = address.strip().rpartition(":")
    if not mark and default_port is not None:
        return address.strip(), default_port
    if not mark or not port.isdecimal() or not host or int(port) > 65_535:
        raise GantryError(f"{address!r} is no address: write host:port")
    return host.strip("[]"), int(port)


def local_address() -> str:
    """An address of this machine that others may reach; loopback when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
