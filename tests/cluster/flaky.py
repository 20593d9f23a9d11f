"""A line to the network that one client has for itself, so that it alone can be cut off."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from gantrymq.base.network import ConnectFailed, Listener, Network
from gantrymq.remoting.connection import Connection

P = TypeVar("P", bound=asyncio.Protocol)


class FlakyLine:
    """Passes everything on to a real network, until it is cut."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._down = False
        self._made: list[asyncio.Protocol] = []

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        if self._down:
            await asyncio.sleep(0.05)
            raise ConnectFailed(f"connect to {host}:{port} failed: the line is down")
        made = await self._network.connect(host, port, factory, timeout)
        self._made.append(made)
        return made

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        return await self._network.listen(host, port, factory)

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        return self._network.free_port(host, beside)

    def cut(self) -> None:
        """Lose every connection and make no new one, as after a crash or a pulled plug."""
        self._down = True
        made, self._made = self._made, []
        for connection in made:
            if isinstance(connection, Connection):
                connection.abort()

    def mend(self) -> None:
        self._down = False
