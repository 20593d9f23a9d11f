"""Which packets pass between hosts: a table of loss. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

Link = tuple[str, str]
"""Two hosts; packets from the first to the second."""
Links = Mapping[Link, float]
"""The share of packets that is lost on each link; links that are not named lose nothing."""

CUT: Final = 1.0


def passes(links: Links, link: Link, chance: float) -> bool:
    """Whether a packet goes through; `chance` is its number between 0 and 1, 1 excluded."""
    return chance >= links.get(link, 0.0)


def cut(pairs: Iterable[Link]) -> Links:
    """Nothing passes between the hosts of each pair, in either direction."""
    return dict.fromkeys((link for a, b in pairs for link in ((a, b), (b, a))), CUT)


def lossy(hosts: Iterable[str], everybody: Iterable[str], share: float) -> Links:
    """These hosts lose a share of what they send and of what is sent to them."""
    peers = list(everybody)
    links = (link for host in hosts for peer in peers for link in ((host, peer), (peer, host)))
    return {link: share for link in links if link[0] != link[1]}
