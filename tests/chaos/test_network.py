"""The parts of the network that can be tried without one."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaos.links import cut, lossy, passes
from chaos.modes import MODES, NAMESRV, leader_of
from chaos.relay import host_of, inode_of
from chaos.switch import Switch, parse_links

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  ...
   0: 0100007F:2694 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0201A87F:1F90 0100007F:2694 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
"""


@contextmanager
def hosts() -> Iterator[dict[str, tuple[str, socket.socket, socket.socket]]]:
    """Two hosts whose devices are socket pairs: the switch's end and the host's."""
    pairs = {name: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for name in ("a", "b")}
    for pair in pairs.values():
        for end in pair:
            end.setblocking(False)
    try:
        yield {name: (f"10.0.0.{at}", *pairs[name]) for at, name in enumerate(pairs)}
    finally:
        for pair in pairs.values():
            for end in pair:
                end.close()


def packet(address: str) -> bytes:
    return bytes(16) + socket.inet_aton(address) + b"payload"


def test_the_switch_forwards_by_address_and_cuts_links() -> None:
    """A packet comes to the host that it names, unless the link is cut; strangers get nothing."""
    with hosts() as made:
        ends = {name: (address, end.fileno()) for name, (address, end, _) in made.items()}
        switch = Switch(ends, random.Random(0))
        sender, receiver = made["a"][2], made["b"][2]
        source = made["a"][1].fileno()

        for links in ("[]", '[["a", "b", 1.0]]', '[["b", "a", 1.0]]'):
            switch.set_links(links)
            sender.send(packet("10.0.0.1"))
            sender.send(packet("10.0.0.77"))
            switch.forward(source)

        assert [packet("10.0.0.1")] * 2 == [receiver.recv(100) for _ in range(2)]
        with pytest.raises(BlockingIOError):
            receiver.recv(100)


def test_a_cut_link_passes_nothing() -> None:
    """In both directions, whatever chance says; other links pass everything."""
    links = cut([("a", "b")])

    assert not any(passes(links, link, 0.9999) for link in (("a", "b"), ("b", "a")))
    assert passes(links, ("a", "c"), 0.0)


def test_a_lossy_host_loses_its_share() -> None:
    """To and from everybody, but not to itself."""
    links = lossy(["a"], ["a", "b", "c"], 0.25)
    rng = random.Random(0)
    lost = sum(not passes(links, ("b", "a"), rng.random()) for _ in range(4_000))

    assert {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")} == set(links)
    assert 900 < lost < 1_100


def test_links_are_read_as_they_are_written() -> None:
    """A line to the switch is a list of origin, destination and share."""
    assert {("a", "b"): 0.5} == parse_links('[["a", "b", 0.5]]')


def test_a_socket_is_found_by_its_address() -> None:
    """The kernel's table has addresses as little-endian numbers."""
    assert "4712" == inode_of(TABLE, "127.168.1.2", 8080)
    assert "4711" == inode_of(TABLE, "127.0.0.1", 9876)
    assert None is inode_of(TABLE, "127.0.0.1", 9877)


def test_who_plays_no_host_has_no_name() -> None:
    """A connection of a process without the variable belongs to nobody."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connection,
    ):
        assert "" == host_of(connection.getsockname())


@pytest.mark.parametrize("mode", MODES.values(), ids=lambda mode: mode.name)
def test_the_leader_is_known_by_its_broker_id(mode: object) -> None:
    """Brokers are told apart by their host; without brokerId 0 nobody leads."""
    addresses = {NAMESRV: "10.91.0.1", "master": "10.91.0.2", "slave": "10.91.0.3"}

    assert "master" == leader_of({"0": "10.91.0.2:10911", "1": "10.91.0.3:10911"}, addresses)
    assert None is leader_of({"1": "10.91.0.3:10911"}, addresses)
