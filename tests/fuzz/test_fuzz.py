"""Two minutes of damaged input: every reader ends in a value or in a ProtocolError, soon.

Each target starts from real specimens and breaks them: bits, cuts, copies, lengths. The seed is
printed with a failure; GANTRY_FUZZ_SEED repeats it, GANTRY_FUZZ_SECONDS lengthens the run.
"""

import os
import random
import struct
import time
from collections.abc import Callable, Sequence

import pytest

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel import cut_commands
from gantrymq.kernel.records import walk_records
from gantrymq.protocol import batch, fastjson, properties
from gantrymq.protocol.bodies import Heartbeat, RegisterBrokerBody
from gantrymq.protocol.command import BINARY_CODEC, Command, decode_header, encode
from gantrymq.protocol.record import decode_record, decode_records

SECONDS = float(os.environ.get("GANTRY_FUZZ_SECONDS", "24"))
SEED = int(os.environ.get("GANTRY_FUZZ_SEED", str(int(time.time()) // 86_400)))
SLOWEST_SECONDS_MAX = 2.0

SEND = Command(
    code=310,
    ext={"a": "group", "b": "orders", "e": "3", "g": "1700000000000", "i": "TAGS\x01a\x02"},
    body=b"hello" * 9,
)
BINARY_SEND = Command(code=310, ext=SEND.ext, body=SEND.body, codec=BINARY_CODEC, remark="why")
RECORD = bytes.fromhex(
    "00000078daa320a73610a686000000000000000000000000000000050000000000001000000000000000018bcfe568"
    "000a0000020000c3500000018bcfe56801c0a8000100002a9f000000000000000000000000000000056865"
    "6c6c6f01540017554e49515f4b4559014142430254414753015461674102"
)
BODIES = [
    b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]}',
    b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7},"a":{"$ref":"$.offsetTable"}}',
    b"{0:'a',b:[1,,2.5e3,{}],\"\\u0041\":null}",
    b'{"clientID":7,"consumerDataSet":{"groupName":"g","consumeType":1,"subscriptionDataSet":'
    b'[{"topic":{{"a":1}:2},"codeSet":["7",1.5,null],"subVersion":"1,000"/* c */}]}}',
    b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1},"topicConfigTable":{}}}',
]
INTERESTING = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]


def broken(specimens: Sequence[bytes], rng: random.Random) -> bytes:
    """A specimen with a few wounds."""
    data = bytearray(rng.choice(specimens))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        wound = rng.randrange(6)
        if wound == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif wound == 1:
            del data[at : at + rng.randint(1, 8)]
        elif wound == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        elif wound == 3 and len(data) >= 4:
            at = rng.randrange(len(data) - 3)
            data[at : at + 4] = struct.pack(">I", rng.choice(INTERESTING))
        elif wound == 4:
            data[at:at] = data[at : at + rng.randint(1, 32)]
        else:
            data[at:at] = rng.choice([b"{", b"}", b'"', b"\x01", b"\x02", b"\\u", b"[", b":", b","])
    return bytes(data)


def read_frames(data: bytes) -> None:
    commands, used, error = cut_commands(bytearray(data), 1 << 20, 64)
    assert used <= len(data)
    assert error is None or isinstance(error, ProtocolError)
    assert all(isinstance(command.ext, dict) for command in commands)


def read_header(data: bytes) -> None:
    decode_header(data[0] & 1 if data else 0, data[1:])


def read_record(data: bytes) -> None:
    walk = walk_records(data, 4096, len(data) + 8, True)
    assert walk.end <= 4096 + len(data)
    for message in decode_records(data):
        assert isinstance(message.properties, dict)
    decode_record(data)


def read_properties(data: bytes) -> None:
    found = properties.decode(data)
    assert found == properties.decode(properties.encode(found))
    batch.decode(data)


def read_fastjson(data: bytes) -> None:
    fastjson.loads(data)
    for kind in (Heartbeat, RegisterBrokerBody):
        fastjson.load_as(data, kind)
        fastjson.load_request(data, kind)


TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "frame": (read_frames, [encode(SEND) * 3, encode(BINARY_SEND) * 2]),
    "header": (read_header, [b"\x00" + encode(SEND)[8:-45], b"\x01" + encode(BINARY_SEND)[8:-45]]),
    "record": (read_record, [RECORD, RECORD * 3]),
    "properties": (
        read_properties,
        [
            b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01ABC\x02",
            batch.encode([batch.Item(0, b"hello", b"TAGS\x01a\x02")] * 2),
        ],
    ),
    "fastjson": (read_fastjson, BODIES),
}


@pytest.mark.timeout(SECONDS * 4 + 60)
@pytest.mark.parametrize("name", TARGETS)
def test_damage_ends_in_a_value_or_a_protocol_error(name: str) -> None:
    """
    No other exception, and no input that takes seconds.
    """
    read, specimens = TARGETS[name]
    rng = random.Random(f"{SEED}-{name}")
    end = time.monotonic() + SECONDS
    count, slowest = 0, 0.0
    while time.monotonic() < end:
        for _ in range(200):
            data = broken(specimens, rng)
            began = time.perf_counter()
            try:
                read(data)
            except ProtocolError:
                pass
            except Exception as error:
                pytest.fail(f"seed {SEED}, {name}: {type(error).__name__} {error} on {data.hex()}")
            slowest = max(slowest, time.perf_counter() - began)
            count += 1

    assert count > 1000
    assert slowest < SLOWEST_SECONDS_MAX
