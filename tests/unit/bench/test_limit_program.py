"""The C program that our broker is compared with: it does what it is told to, and no less."""

import socket
import time
from collections.abc import Iterator

import pytest
from bench.limit.server import Limit
from bench.load import make_block

from gantrymq.base.network import split_address
from gantrymq.kernel import cut_commands
from gantrymq.protocol.command import BINARY_CODEC, JSON_CODEC, Command

SIZE = 1024


@pytest.fixture(scope="module")
def limit() -> Iterator[Limit]:
    with Limit() as running:
        yield running


def ask(limit: Limit, pieces: list[bytes], answers: int) -> list[Command]:
    """Write the pieces one by one, and read so many answers."""
    buffer, found = bytearray(), list[Command]()
    with socket.create_connection(split_address(limit.broker), timeout=10) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            link.sendall(piece)
            time.sleep(0.001)
        while len(found) < answers:
            chunk = link.recv(1 << 16)
            assert chunk, "the limit program closed the connection"
            buffer += chunk
            commands, used, error = cut_commands(buffer, 1 << 24, 1 << 20)
            assert error is None
            del buffer[:used]
            found += commands
    return found


@pytest.mark.parametrize("codec", [JSON_CODEC, BINARY_CODEC], ids=["json", "binary"])
@pytest.mark.parametrize("step", [1_000_000, 700], ids=["whole", "cut"])
def test_every_frame_is_kept_and_answered_with_its_number(
    limit: Limit, codec: int, step: int
) -> None:
    """
    However the frames arrive, the file grows by their bodies and each gets an answer of success.
    """
    block = make_block(5, codec, SIZE, 8, 32)
    before = limit.file.stat().st_size
    pieces = [block[at : at + step] for at in range(0, len(block), step)]

    found = ask(limit, pieces, 32)

    assert [5 * 32 + at for at in range(32)] == [command.opaque for command in found]
    assert all(command.code == 0 and command.is_response for command in found)
    assert all(command.ext["queueOffset"] == "0" for command in found)
    kept = limit.file.read_bytes()[before:]
    assert [(b"%08d" % (5 * 32 + at) * 128)[:SIZE] for at in range(32)] == [
        kept[at : at + SIZE] for at in range(0, len(kept), SIZE)
    ]


def test_nonsense_ends_the_connection(limit: Limit) -> None:
    """
    A frame larger than any message is not waited for.
    """
    with socket.create_connection(split_address(limit.broker), timeout=10) as link:
        link.sendall(b"\xff" * 64)

        assert link.recv(16) == b""
