"""Two minutes of damaged input: every reader ends in a value or in an error on purpose, soon.

Each target starts from real specimens and breaks them: bits, cuts, copies, lengths. The seed is
printed with a failure; GANTRY_FUZZ_SEED repeats it, GANTRY_FUZZ_SECONDS lengthens the run. `make
fuzz` looks longer, and by coverage.
"""

import os
import random
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from targets import ON_PURPOSE, TARGETS

SECONDS = float(os.environ.get("GANTRY_FUZZ_SECONDS", "9"))
SEED = int(os.environ.get("GANTRY_FUZZ_SEED", str(int(time.time()) // 86_400)))
SLOWEST_SECONDS_MAX = 2.0
FOUND = Path(__file__).parent / "found"
"""Inputs that were a fault once, by target."""

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


@pytest.mark.timeout(SECONDS * 4 + 60)
@pytest.mark.parametrize("name", TARGETS)
def test_damage_ends_in_a_value_or_an_error_on_purpose(name: str) -> None:
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
            except ON_PURPOSE:
                pass
            except Exception as error:
                pytest.fail(f"seed {SEED}, {name}: {type(error).__name__} {error} on {data.hex()}")
            slowest = max(slowest, time.perf_counter() - began)
            count += 1

    assert count > 1000
    assert slowest < SLOWEST_SECONDS_MAX


@pytest.mark.parametrize(
    "name, path", [(path.parent.name, path) for path in sorted(FOUND.glob("*/*"))], ids=str
)
def test_what_was_a_fault_once_is_none(name: str, path: Path) -> None:
    """
    Inputs that fuzzing found, kept small.
    """
    said = None
    try:
        TARGETS[name].read(path.read_bytes())
    except ON_PURPOSE as error:
        said = str(error)
    assert said is None or said
