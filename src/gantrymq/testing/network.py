"""A network in memory with delays, cuts, partitions and stalls; the same seed repeats them.

A connection is TCP's: bytes arrive in order and once, or the connection ends. A link between two
hosts can lose what is sent (`part`), or hold it back and deliver it later (`stall`). What a stalled
connection holds may arrive when both ends have long made another one, as on a real network.
"""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.base.network import ConnectFailed, Listener

P = TypeVar("P", bound=asyncio.Protocol)

FIRST_PORT = 20_000
LOCALHOST = "127.0.0.1"
WINDOW_BYTES = 1024 * 1024
"""What is under way to a peer that does not read before the sender is told to pause."""
RESUME_SECONDS_MAX = 1.0
"""How much later than its link a stalled connection goes on: each tries again at its own time."""


class MemoryTransport(asyncio.Transport):
    """One end of a connection: written bytes arrive at the other end, in order, after a delay."""

    def __init__(
        self, network: "MemoryNetwork", here: tuple[str, int], peer: tuple[str, int]
    ) -> None:
        super().__init__({"peername": peer, "sockname": here})
        self._network = network
        self._loop = asyncio.get_running_loop()
        self.host = here[0]
        self.other: MemoryTransport
        self.protocol: asyncio.Protocol
        self._arrives = 0.0
        self._inbox: list[bytes] = []
        self._held: list[tuple[Callable[..., None], Any]] = []
        """What a stalled link holds back."""
        self._reading, self._closing, self._lost = True, False, False
        self._under_way = 0
        self._high = WINDOW_BYTES
        self._paused_writer = False

    def write(self, data: Any) -> None:
        if self._closing or self._lost or not data:
            return
        data = bytes(data)
        self._under_way += len(data)
        if self._under_way > self._high and not self._paused_writer:
            self._paused_writer = True
            self.protocol.pause_writing()
        if self._network.loses(self):
            return  # partitioned: the bytes are lost; the connection will be cut or time out
        self._later(self.other._receive, data)

    def _later(self, action: Callable[..., None], arg: Any) -> None:
        """Schedule a delivery, in order: due later than the one before.

        A loop does not keep the order of timers that are due at the same moment.
        """
        if self._held or self._network.stalls(self):
            self._held.append((action, arg))
            return
        after = math.nextafter(self._arrives, math.inf)
        self._arrives = max(after, self._loop.time() + self._network.delay())
        self._loop.call_at(self._arrives, action, arg)

    def go_on(self) -> None:
        """Deliver what a stalled link has held back, unless it is stalled again."""
        if not self._network.stalls(self):
            held, self._held = self._held, []
            for action, arg in held:
                self._later(action, arg)

    def goes_on(self, seconds: float) -> None:
        """The link is open again; the connection notices a while later."""
        if self._held:
            self._loop.call_later(seconds, self.go_on)

    def _receive(self, data: bytes) -> None:
        if self._lost:
            return
        self._network.deliveries += 1
        self._inbox.append(data)
        self._drain()
        if self._network.after_each is not None:
            self._network.after_each()

    def _drain(self) -> None:
        while self._inbox and self._reading and not self._lost:
            data = self._inbox.pop(0)
            self.other._acknowledge(len(data))
            self.protocol.data_received(data)

    def _acknowledge(self, size: int) -> None:
        self._under_way -= size
        if self._paused_writer and self._under_way <= self._high // 4:
            self._paused_writer = False
            self.protocol.resume_writing()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.protocol = protocol

    def get_protocol(self) -> asyncio.Protocol:
        return self.protocol

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._drain)

    def is_reading(self) -> bool:
        return self._reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or WINDOW_BYTES

    def get_write_buffer_size(self) -> int:
        return self._under_way

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Close both ends after the written bytes have arrived."""
        if not self._closing:
            self._closing = True
            self._later(self.other._end, None)
            self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        self.cut(ConnectionResetError("aborted"))

    def cut(self, error: Exception | None = None) -> None:
        """Break the connection at both ends now; bytes under way are lost.

        Over a stalled link the other end learns of it after all that was written before.
        """
        self._loop.call_soon(self._end, error)
        if self._network.stalls(self):
            self._held.append((self.other._end, error))
        else:
            self._loop.call_soon(self.other._end, error)

    def _end(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._network.forget(self)
            self.protocol.connection_lost(error)


class _MemoryListener:
    def __init__(self, network: "MemoryNetwork", host: str, port: int) -> None:
        self._network, self._host, self.port = network, host, port

    async def close(self) -> None:
        self._network.stop_listening(self._host, self.port)


class MemoryNetwork:
    """The listening ports and connections of one simulation."""

    def __init__(
        self, rng: random.Random | None = None, delay: tuple[float, float] = (0.0001, 0.0005)
    ) -> None:
        self._rng = rng or random.Random(0)
        self._delay = delay
        self._ports: dict[tuple[str, int], Callable[[], asyncio.Protocol]] = {}
        self._next_port = FIRST_PORT
        self._open: dict[MemoryTransport, None] = {}
        self._parted: dict[tuple[str, str], None] = {}
        """From which host to which nothing arrives."""
        self._stalled: dict[tuple[str, str], None] = {}
        """From which host to which everything is held back."""
        self._holding: dict[MemoryTransport, None] = {}
        self._down: dict[str, None] = {}
        self.deliveries = 0
        """How often bytes have arrived somewhere."""
        self.after_each: Callable[[], None] | None = None
        """Called after each delivery."""
        self._deaf: dict[int, None] = {}

    # the port

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        port = port or self.free_port(host)
        if (host, port) in self._ports:
            raise GantryError(f"cannot listen on {host}:{port}: address already in use")
        self._ports[host, port] = factory
        return _MemoryListener(self, host, port)

    def under_way(self) -> int:
        """Bytes that were written somewhere and not read yet."""
        return sum(end.get_write_buffer_size() for end in self._open)

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        return await self.connect_from(LOCALHOST, host, port, factory, timeout)

    async def connect_from(
        self, source: str, host: str, port: int, factory: Callable[[], P], timeout: float
    ) -> P:
        """Connect as the host `source`."""
        await asyncio.sleep(self.delay())
        accept = self._ports.get((host, port))
        if source in self._down:
            raise ConnectFailed(f"connect to {host}:{port} failed: this host is down")
        if any(
            link in links
            for link in ((source, host), (host, source))
            for links in (self._parted, self._stalled)
        ):
            await asyncio.sleep(timeout)
            raise ConnectFailed(f"connect to {host}:{port} took over {timeout:g} s")
        if accept is None:
            raise ConnectFailed(f"connect to {host}:{port} failed: connection refused")
        protocol, accepted = factory(), accept()
        here = (source, self.free_port(source))
        near = MemoryTransport(self, here, (host, port))
        far = MemoryTransport(self, (host, port), here)
        near.other, far.other = far, near
        near.protocol, far.protocol = protocol, accepted
        self._open |= {near: None, far: None}
        accepted.connection_made(far)
        protocol.connection_made(near)
        return protocol

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        self._next_port += 1 - min((0, *beside))
        port = self._next_port
        self._next_port += max((0, *beside))
        return port

    # used by transports

    def delay(self) -> float:
        return self._rng.uniform(*self._delay)

    def forget(self, transport: MemoryTransport) -> None:
        self._open.pop(transport, None)

    def stop_listening(self, host: str, port: int) -> None:
        self._ports.pop((host, port), None)

    def loses(self, sender: MemoryTransport) -> bool:
        """Whether what this end writes never arrives."""
        to = sender.get_extra_info("peername")[1]
        return to in self._deaf or self.parted(sender.host, sender.other.host)

    def stalls(self, sender: MemoryTransport) -> bool:
        """Whether what this end writes is held back; then `resume` will let it go on."""
        if (sender.host, sender.other.host) not in self._stalled:
            return False
        self._holding[sender] = None
        return True

    def parted(self, one: str, other: str) -> bool:
        """Whether what one host sends does not arrive at the other."""
        return (one, other) in self._parted

    # faults

    def set_delay(self, least: float, most: float) -> None:
        self._delay = (least, most)

    def cut_all(self) -> int:
        """Break all connections; returns how many."""
        gone = list(self._open)
        for transport in gone[::2]:
            transport.cut(ConnectionResetError("cut"))
        return len(gone) // 2

    def cut_port(self, port: int) -> None:
        """Break all connections to one listening port."""
        for transport in list(self._open):
            if transport.get_extra_info("sockname")[1] == port:
                transport.cut(ConnectionResetError("cut"))

    def part(self, one: str, other: str) -> None:
        """Partition two hosts: bytes between them are lost until `join`."""
        self.part_one_way(one, other)
        self.part_one_way(other, one)

    def part_one_way(self, sender: str, receiver: str) -> None:
        """Lose what one host sends to another until `join`; the other way is open."""
        self._parted[sender, receiver] = None

    def stall(self, sender: str, receiver: str) -> None:
        """Hold back what one host sends to another until `resume`; the other way is open."""
        self._stalled[sender, receiver] = None

    def resume(self, sender: str, receiver: str) -> None:
        """Let go what `stall` has held back: each connection goes on at a time of its own."""
        self._stalled.pop((sender, receiver), None)
        for transport in list(self._holding):
            if (transport.host, transport.other.host) == (sender, receiver):
                del self._holding[transport]
                transport.goes_on(self._rng.uniform(0, RESUME_SECONDS_MAX))

    def take_down(self, host: str) -> None:
        """Let a host vanish: its ports and connections are gone, and it can make no new ones."""
        self._down[host] = None
        for address in [address for address in self._ports if address[0] == host]:
            del self._ports[address]
        for transport in list(self._open):
            if transport.host == host:
                transport.cut(ConnectionResetError("the host is down"))

    def bring_up(self, host: str) -> None:
        self._down.pop(host, None)

    def at(self, host: str) -> "HostNetwork":
        """The network as one host uses it."""
        return HostNetwork(self, host)

    def deafen(self, port: int) -> None:
        """Lose all bytes towards one listening port until `hear`; its answers still arrive."""
        self._deaf[port] = None

    def hear(self, port: int) -> None:
        self._deaf.pop(port, None)

    def join(self, one: str, other: str) -> None:
        self._parted.pop((one, other), None)
        self._parted.pop((other, one), None)


class HostNetwork:
    """The network port of one host: its connections come from its address."""

    def __init__(self, network: MemoryNetwork, host: str) -> None:
        self._network, self._host = network, host

    async def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.Protocol]
    ) -> Listener:
        return await self._network.listen(host, port, factory)

    async def connect(self, host: str, port: int, factory: Callable[[], P], timeout: float) -> P:
        return await self._network.connect_from(self._host, host, port, factory, timeout)

    def free_port(self, host: str, beside: Sequence[int] = ()) -> int:
        return self._network.free_port(host, beside)
