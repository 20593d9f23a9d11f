"""Connections that the system breaks when their peer acknowledges nothing."""

import asyncio
import socket

from gantrymq.base.network import TcpNetwork, limit_silence

BYTES = 16 << 20


class Sender(asyncio.Protocol):
    """Sends more than anybody's buffers take."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        limit_silence(transport, 0.3)
        transport.write(bytes(BYTES))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


def test_a_peer_that_takes_nothing_is_given_up() -> None:
    """The connection ends by itself, and says that it timed out."""

    async def work() -> Exception | None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            sender = await TcpNetwork().connect("127.0.0.1", port, Sender, 3)
            silent, _ = server.accept()
            with silent:
                return await asyncio.wait_for(sender.lost, 30)

    assert isinstance(asyncio.run(work()), TimeoutError)


def test_a_transport_without_a_socket_is_left_alone() -> None:
    """Networks in memory have no such limit."""
    limit_silence(asyncio.Transport(), 1.0)
