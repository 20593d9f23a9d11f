"""The relay before servers on loopback addresses: a process that holds back what a link loses.

Arguments are the seed and `host=advertised=bound=port,port` of each server. Clients connect to the
advertised address, and the relay to the bound one. Who connects is found in `/proc`: the process
that has the other end of the socket, and in its environment the host that it plays. Lines on stdin
and answers are those of the switch.

TCP repeats what a network loses, so behind a relay a cut link holds bytes back until it is whole
again, and a lost packet is a late one. Only connecting differs: it succeeds, and is then silent.
"""

import asyncio
import os
import random
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.links import CUT, Link, passes
from chaos.switch import parse_links

HOST_VARIABLE: Final = "GANTRYMQ_CHAOS_HOST"
LATE_SECONDS: Final = 0.2
"""After which TCP sends a packet again."""
CHUNK_BYTES: Final = 65_536


class Gate:
    """Which links are open."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._links: dict[Link, float] = {}
        self._changed = asyncio.Event()

    def set_links(self, line: str) -> None:
        self._links = parse_links(line)
        self._changed.set()
        self._changed = asyncio.Event()

    async def pass_through(self, link: Link) -> None:
        """Return when a packet has come through."""
        while self._links.get(link, 0.0) >= CUT:
            await self._changed.wait()
        while not passes(self._links, link, self._rng.random()):
            await asyncio.sleep(LATE_SECONDS)


def inode_of(table: str, address: str, port: int) -> str | None:
    """The socket with this local address in the text of `/proc/net/tcp`."""
    number = int.from_bytes(socket.inet_aton(address), "little")
    local = f"{number:08X}:{port:04X}"
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[1] == local:
            return fields[9]
    return None


def host_of(peer: tuple[str, int]) -> str:
    """The host that the process at the other end of a connection plays."""
    inode = inode_of(Path("/proc/net/tcp").read_text(), *peer)
    wanted = f"socket:[{inode}]"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if any(os.readlink(each) == wanted for each in (process / "fd").iterdir()):
                return _variable((process / "environ").read_bytes())
    return ""


def _variable(environment: bytes) -> str:
    pairs = (entry.decode().partition("=") for entry in environment.split(b"\0"))
    return next((value for name, _, value in pairs if name == HOST_VARIABLE), "")


async def _pump(
    gate: Gate, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            await gate.pass_through(link)
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def _serve(gate: Gate, host: str, bound: str, port: int, addresses: dict[str, str]) -> None:
    """Relay one port of one host."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        origin = host_of(writer.get_extra_info("peername"))
        await gate.pass_through((origin, host))
        try:
            # A master knows its slaves by the address that they come from.
            own = (addresses.get(origin, "127.0.0.1"), 0)
            far_reader, far_writer = await asyncio.open_connection(bound, port, local_addr=own)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(
            _pump(gate, (origin, host), reader, far_writer),
            _pump(gate, (host, origin), far_reader, writer),
        )

    await asyncio.start_server(accept, addresses[host], port)


async def main(arguments: Sequence[str]) -> None:
    seed, *specs = arguments
    gate = Gate(random.Random(int(seed)))
    parts = [spec.split("=") for spec in specs]
    addresses = {host: advertised for host, advertised, _bound, _ports in parts}
    for host, _advertised, bound, ports in parts:
        for port in ports.split(","):
            await _serve(gate, host, bound, int(port), addresses)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while True:
        sys.stdout.write("ok\n")
        sys.stdout.flush()
        line = await lines.readline()
        if not line:
            return
        gate.set_links(line.decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
