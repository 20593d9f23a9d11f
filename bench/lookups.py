"""Asks a name server for the routes of many topics, over several connections.

python -m bench.lookups HOST:PORT --topics 1000 --connections 4 --window 64 --count 100000
"""

import argparse
import json

from bench.connections import BLOCK_FRAMES, pump
from bench.registering import topic_name
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command, encode
from gantrymq.protocol.headers.topics import RouteRequest


def make_blocks(topics: int) -> list[bytes]:
    """Frames of GET_ROUTEINFO_BY_TOPIC, as clients write them, for every topic in turn."""
    frames = [
        _frame(number, topic_name(number % topics)) for number in range(topics * BLOCK_FRAMES)
    ]
    return [b"".join(frames[at : at + BLOCK_FRAMES]) for at in range(0, len(frames), BLOCK_FRAMES)]


def _frame(number: int, topic: str) -> bytes:
    code, ext = RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest(topic=topic).to_ext()
    return encode(Command(code=code, ext=ext, opaque=number, language="JAVA"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--count", type=int, default=100_000)
    given = parser.parse_args()
    blocks = make_blocks(given.topics)
    print(json.dumps(pump(given.address, blocks, given.connections, given.window, given.count)))


if __name__ == "__main__":
    main()
