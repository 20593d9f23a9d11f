"""Sends frames made in advance over several connections, each with a window of its own.

python -m bench.connections HOST:PORT --connections 8 --window 64 --count 100000
"""

import argparse
import json
import selectors
import socket
import time
from collections.abc import Sequence

from bench.load import CODECS, make_block
from bench.topics import numbered
from gantrymq.base.network import split_address
from gantrymq.kernel import cut_commands
from gantrymq.model import BENCHMARK_TOPIC

BLOCK_FRAMES = 16
"""Frames of one write."""
FRAMES = 4_000
"""Different ones, before the first comes again; more if there are more queues."""
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
    address: str,
    blocks: Sequence[bytes],
    connections: int,
    window: int,
    count: int,
    frames: int = BLOCK_FRAMES,
) -> dict[str, float]:
    """Send `count` requests, the blocks in turn; each block has `frames` of them."""
    total = count // frames * frames
    sent = answered = failed = 0
    links = [Link(address) for _ in range(connections)]
    began = time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for link in links:
            ready.register(link.socket, selectors.EVENT_READ, link)
        waiting = links
        while answered < total:
            for link in waiting:
                while sent < total and link.pending + frames <= window:
                    link.socket.sendall(blocks[sent // frames % len(blocks)])
                    link.pending += frames
                    sent += frames
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
    parser.add_argument("--codec", choices=sorted(CODECS), default="json")
    parser.add_argument("--batch", type=int, default=1, help="messages of a request")
    parser.add_argument("--queues", type=int, default=QUEUES, help="of each topic")
    parser.add_argument("--topic", default=BENCHMARK_TOPIC)
    parser.add_argument("--topics", type=int, help="so many, with a number behind the name")
    parser.add_argument("--tags", type=int, default=1, help="different ones, in turn")
    given = parser.parse_args()
    frames = min(BLOCK_FRAMES, given.window)
    topics = numbered(given.topic, given.topics) if given.topics else [given.topic]
    different = max(FRAMES // given.batch, given.queues * len(topics)) // frames
    blocks = [
        make_block(
            at,
            CODECS[given.codec],
            SIZE,
            given.queues,
            frames,
            topics=topics,
            batch=given.batch,
            tags=given.tags,
        )
        for at in range(different)
    ]
    figures = pump(given.address, blocks, given.connections, given.window, given.count, frames)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
