"""One client's own way into the network: it can be torn out, as when its process dies."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from gantrymq.base.network import ConnectFailed, Listener
from gantrymq.testing.network import MemoryNetwork

P = TypeVar("P", bound=asyncio.Protocol)


class Uplink:
    """A network port for one client process."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._made: list[asyncio.Protocol] = []
        self.dead = False

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        return await self._network.listen(host, port, factory)

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        if self.dead:
            raise ConnectFailed("this process is dead")
        protocol = await self._network.connect(host, port, factory, timeout)
        self._made.append(protocol)
        if self.dead:
            self.tear_out()
        return protocol

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        return self._network.free_port(host, beside)

    def tear_out(self) -> None:
        """From now on nothing goes out and nothing comes in."""
        self.dead = True
        for protocol in self._made:
            protocol.abort()  # type: ignore[attr-defined]
        self._made.clear()
