"""Ports that are chosen a moment before somebody listens on them."""

import socket
from pathlib import Path

import pytest

from gantrymq.base import network
from gantrymq.base.errors import GantryError
from gantrymq.base.network import FIRST_FREE_PORT, free_port

HOST = "127.0.0.1"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> range:
    """Only ten ports to choose from."""
    first = free_port(HOST, range(1, 10))
    monkeypatch.setattr(network, "FIRST_FREE_PORT", first)
    monkeypatch.setattr(network, "_first_ephemeral_port", lambda: first + 10)
    return range(first, first + 10)


def test_a_port_is_never_one_that_an_outgoing_connection_may_be_given() -> None:
    """
    A free port lies below the range that the system gives to outgoing connections.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(200):
        assert FIRST_FREE_PORT <= free_port(HOST) < low


def test_a_port_that_somebody_has_is_not_chosen(narrow: range) -> None:
    """
    The only port of a range that nobody listens on is the one that is chosen.
    """
    free = narrow[4]
    held = [socket.create_server((HOST, port)) for port in narrow if port != free]
    try:
        assert {free_port(HOST) for _ in range(20)} == {free}
    finally:
        for server in held:
            server.close()


def test_the_neighbours_of_a_port_are_free_too(narrow: range) -> None:
    """
    With distances given, the ports at these distances from the chosen one are free as well.
    """
    with socket.create_server((HOST, narrow[5])):
        for _ in range(50):
            port = free_port(HOST, (-2, 1))
            assert narrow[5] not in (port - 2, port, port + 1)


def test_where_no_port_is_free_the_error_says_what_to_do(narrow: range) -> None:
    """
    A range in which every port is taken is an error that asks for a port by name.
    """
    held = [socket.create_server((HOST, port)) for port in narrow]
    try:
        with pytest.raises(GantryError, match=r"no free port on 127\.0\.0\.1 from .*: name one"):
            free_port(HOST)
    finally:
        for server in held:
            server.close()


@pytest.mark.parametrize("text", ["", "nonsense", "1024\t65535\n"])
def test_a_range_that_says_nothing_useful_leaves_the_usual_one(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An unreadable ephemeral range of the system is replaced by the usual one.
    """
    (tmp_path / "range").write_text(text)
    monkeypatch.setattr(network, "EPHEMERAL_PORTS", tmp_path / "range")
    assert network._first_ephemeral_port() == network.FIRST_EPHEMERAL_PORT
