"""Sends frames made in advance over several connections, each with a window of its own.

python -m bench.connections HOST:PORT --connections 8 --window 64 --count 100000
"""

import argparse
import json
import selectors
import socket
import time
from collections.abc import Sequence

from bench.load import BLOCKS, make_block
from gantrymq.base.network import split_address
from gantrymq.kernel import cut_commands
from gantrymq.protocol.command import JSON_CODEC

BLOCK_FRAMES = 16
SILENT_SECONDS_MAX = 30.0
SIZE, QUEUES = 1024, 8


class Link:
    """One connection and what is under way on it."""

    def __init__(self, address: str) -> None:
        self.socket = socket.create_connection(split_address(address))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = 0
        self._buffer = bytearray()

    def take_answers(self) -> tuple[int, int]:
        """Answers that have come, and how many of them are failures."""
        chunk = self.socket.recv(1 << 18)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self._buffer += chunk
        commands, used, error = cut_commands(self._buffer, 1 << 24, 1 << 20)
        if error is not None:
            raise error
        del self._buffer[:used]
        self.pending -= len(commands)
        return len(commands), sum(command.code != 0 for command in commands)


def pump(
    address: str, blocks: Sequence[bytes], connections: int, window: int, count: int
) -> dict[str, float]:
    """Send `count` requests, the blocks in turn; each block has BLOCK_FRAMES of them."""
    total = count // BLOCK_FRAMES * BLOCK_FRAMES
    sent = answered = failed = 0
    links = [Link(address) for _ in range(connections)]
    began = time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for link in links:
            ready.register(link.socket, selectors.EVENT_READ, link)
        waiting = links
        while answered < total:
            for link in waiting:
                while sent < total and link.pending + BLOCK_FRAMES <= window:
                    link.socket.sendall(blocks[sent // BLOCK_FRAMES % len(blocks)])
                    link.pending += BLOCK_FRAMES
                    sent += BLOCK_FRAMES
            waiting = [key.data for key, _ in ready.select(SILENT_SECONDS_MAX)]
            if not waiting:
                raise TimeoutError(f"{total - answered} requests were never answered")
            for link in waiting:
                found, bad = link.take_answers()
                answered, failed = answered + found, failed + bad
    seconds = time.perf_counter() - began
    for link in links:
        link.socket.close()
    return {"tps": total / seconds, "count": total, "seconds": seconds, "failed": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--count", type=int, default=100_000)
    given = parser.parse_args()
    blocks = [make_block(at, JSON_CODEC, SIZE, QUEUES, BLOCK_FRAMES) for at in range(BLOCKS * 8)]
    print(json.dumps(pump(given.address, blocks, given.connections, given.window, given.count)))


if __name__ == "__main__":
    main()
