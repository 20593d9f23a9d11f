"""Hosts as loopback addresses, for machines on which no namespaces can be made.

Each host has an address that others are told and one that its server binds; a relay takes what
comes to the first and brings it to the second, or does not. Each network has addresses of its own,
so that several run side by side.
"""

from collections.abc import Sequence
from itertools import count
from os import getpid
from typing import Final

from chaos.links import Links
from chaos.network import PORTS, LinkProcess
from chaos.relay import HOST_VARIABLE

NETWORKS_MAX: Final = 120
_numbers = count()


class Loopback:
    """Hosts of one cluster."""

    def __init__(self, hosts: Sequence[str], seed: int) -> None:
        number = next(_numbers) % NETWORKS_MAX
        place = f"127.{getpid() % 100 + 100}"
        self.addresses = {host: f"{place}.{number}.{at + 1}" for at, host in enumerate(hosts)}
        self.bound = {
            host: f"{place}.{number + NETWORKS_MAX}.{at + 1}" for at, host in enumerate(hosts)
        }
        ports = ",".join(map(str, PORTS))
        specs = [f"{host}={self.addresses[host]}={self.bound[host]}={ports}" for host in hosts]
        self._relay = LinkProcess("chaos.relay", [str(seed), *specs])

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        return ["env", f"{HOST_VARIABLE}={host}", *command]

    def set_links(self, links: Links) -> None:
        self._relay.set_links(links)

    def close(self) -> None:
        self._relay.close()
