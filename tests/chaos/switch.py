"""The switch between hosts: a process that forwards IP packets, and cuts or loses them.

Each host has a tun device whose other end is here. Arguments are the seed and `name=address=device`
of each host; the devices are made here and moved by whoever started the switch. A line on stdin is
a JSON list of [from, to, share]: the links that lose packets from now on. It is answered with `ok`.
When stdin ends, so does the switch, and its devices vanish.
"""

import fcntl
import json
import os
import random
import select
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

from chaos.links import Link, passes

TUNSETIFF: Final = 0x400454CA
IFF_TUN: Final = 0x0001
IFF_NO_PI: Final = 0x1000
PACKET_BYTES_MAX: Final = 65_536
DESTINATION: Final = slice(16, 20)
PACKETS_PER_TURN: Final = 64


def open_tun(device: str) -> int:
    """A new tun device; it is there as long as the descriptor is open."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def parse_links(line: str) -> dict[Link, float]:
    """The links of a line: a JSON list of [from, to, share]."""
    return {(a, b): share for a, b, share in json.loads(line)}


class Switch:
    """Forwards between hosts by the destination address of each packet."""

    def __init__(self, hosts: dict[str, tuple[str, int]], rng: random.Random) -> None:
        self._names = {descriptor: name for name, (_, descriptor) in hosts.items()}
        self._ports = {
            socket.inet_aton(address): (name, descriptor)
            for name, (address, descriptor) in hosts.items()
        }
        self._rng = rng
        self._links: dict[Link, float] = {}

    def set_links(self, line: str) -> None:
        self._links = parse_links(line)

    def forward(self, source: int) -> None:
        """Take packets of one host until there are none, or others are due."""
        for _ in range(PACKETS_PER_TURN):
            try:
                packet = os.read(source, PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            self._send(self._names[source], packet)

    def _send(self, origin: str, packet: bytes) -> None:
        name, port = self._ports.get(packet[DESTINATION], ("", -1))
        if port < 0 or not passes(self._links, (origin, name), self._rng.random()):
            return
        try:
            os.write(port, packet)
        except OSError:
            return  # a full or missing device loses the packet, as a wire would


def main(arguments: Sequence[str]) -> int:
    seed, *specs = arguments
    hosts: dict[str, tuple[str, int]] = {}
    for spec in specs:
        name, address, device = spec.split("=")
        hosts[name] = (address, open_tun(device))
    switch = Switch(hosts, random.Random(int(seed)))
    poller = select.epoll()
    for _, descriptor in hosts.values():
        poller.register(descriptor, select.EPOLLIN)
    poller.register(0, select.EPOLLIN)
    sys.stdout.write("ok\n")
    sys.stdout.flush()
    while True:
        for descriptor, _events in poller.poll():
            if descriptor != 0:
                switch.forward(descriptor)
                continue
            line = sys.stdin.readline()
            if not line:
                return 0
            switch.set_links(line)
            sys.stdout.write("ok\n")
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
