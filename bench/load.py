"""Sends frames made in advance, so that the broker is the bottleneck and not its client.

python -m bench.load HOST:PORT --codec json|binary --size 1024 --count 100000
"""

import argparse
import json
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from gantrymq.access.key_sources import credentials_of_file
from gantrymq.access.signature import RequestSigner
from gantrymq.base.network import split_address
from gantrymq.kernel import cut_commands
from gantrymq.model import BENCHMARK_TOPIC
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import BINARY_CODEC, JSON_CODEC, Command, encode
from gantrymq.protocol.headers.messages import SendRequestV2

BLOCK_FRAMES = 128
BLOCKS = 32
"""Different blocks in turn: 4,096 messages with different ids before the first comes again."""
WINDOW_FRAMES = 4096
CODECS = {"json": JSON_CODEC, "binary": BINARY_CODEC}


def _properties(serial: int, tag: str = "TagA") -> str:
    return f"UNIQ_KEY\x017F000001{serial:024X}\x02WAIT\x01true\x02TAGS\x01{tag}\x02"


def _body(serial: int, size: int) -> bytes:
    return (b"%08d" % serial * (size // 8 + 1))[:size]


def _in_batch(serial: int, size: int) -> bytes:
    """One message of a batch: its size, magic code, checksum, flag, body and properties."""
    text, body = _properties(serial).encode(), _body(serial, size)
    front = struct.pack(">iiiii", 22 + len(body) + len(text), 0, 0, 0, len(body))
    return front + body + struct.pack(">h", len(text)) + text


def make_block(
    number: int,
    codec: int,
    size: int,
    queues: int,
    count: int = BLOCK_FRAMES,
    signer: RequestSigner | None = None,
    topics: Sequence[str] = (BENCHMARK_TOPIC,),
    batch: int = 1,
    tags: int = 1,
) -> bytes:
    """The frames that one write sends, over all topics and their queues in turn.

    Each is a send of one message, or of a batch of so many. Each queue has all tags in turn.
    """
    frames = []
    for index in range(count):
        serial = number * count + index
        topic, queue_id = topics[serial % len(topics)], serial // len(topics) % queues
        tag = f"Tag{serial // queues % tags}" if tags > 1 else "TagA"
        header = SendRequestV2(
            producer_group="bench", topic=topic, queue_id=queue_id,
            born_timestamp=int(time.time() * 1000), unit_mode=False, batch=batch > 1,
            properties=_properties(serial, tag), reconsume_times=0, bname="broker-a",
        )  # fmt: skip
        command = Command(
            code=RequestCode.SEND_MESSAGE_V2, ext=header.to_ext(), opaque=serial,
            body=_body(serial, size), codec=codec, language="JAVA",
        )  # fmt: skip
        if batch > 1:
            command.code = RequestCode.SEND_BATCH_MESSAGE
            command.body = b"".join(_in_batch(serial * batch + at, size) for at in range(batch))
        if signer is not None:
            signer.sign(command)
        frames.append(encode(command))
    return b"".join(frames)


def connect(address: str, trusted: Path | None) -> socket.socket:
    """A connection, with TLS if the certificate of an authority is given."""
    link = socket.create_connection(split_address(address))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if trusted is None:
        return link
    context = ssl.create_default_context(cafile=str(trusted))
    context.check_hostname = False  # a test's certificate is made for no address
    return context.wrap_socket(link)


def pump(
    address: str,
    codec: int,
    size: int,
    count: int,
    queues: int,
    *,
    keys: Path | None = None,
    trusted: Path | None = None,
) -> dict[str, float]:
    """Send `count` messages, a window of them under way; signed with the keys of a file."""
    signer = None if keys is None else RequestSigner(credentials_of_file(keys))
    blocks = [make_block(n, codec, size, queues, signer=signer) for n in range(BLOCKS)]
    rounds = max(1, count // BLOCK_FRAMES)
    sent = answered = failed = 0
    buffer = bytearray()
    with connect(address, trusted) as link:
        began = time.perf_counter()
        while answered < rounds * BLOCK_FRAMES:
            while sent < rounds and sent * BLOCK_FRAMES - answered < WINDOW_FRAMES:
                link.sendall(blocks[sent % BLOCKS])
                sent += 1
            chunk = link.recv(1 << 18)
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            buffer += chunk
            commands, used, error = cut_commands(buffer, 1 << 24, 1 << 20)
            if error is not None:
                raise error
            del buffer[:used]
            answered += len(commands)
            failed += sum(command.code != 0 for command in commands)
        seconds = time.perf_counter() - began
    total = rounds * BLOCK_FRAMES
    return {"tps": total / seconds, "count": total, "seconds": seconds, "failed": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--codec", choices=sorted(CODECS), default="json")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--keys", type=Path, help="a file with accessKey: and secretKey:")
    parser.add_argument("--tls", type=Path, help="the certificate of the authority to trust")
    given = parser.parse_args()
    figures = pump(
        given.address,
        CODECS[given.codec],
        given.size,
        given.count,
        given.queues,
        keys=given.keys,
        trusted=given.tls,
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
