"""Bloom bitmaps, with RocketMQ's numbers: which groups' conditions a message matched."""

import math

BITS_A_BYTE = 8
_LOW_32, _LOW_64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


class Bloom:
    """The size of a bitmap, and the bits of a key."""

    def __init__(self, error_percent: int, keys: int) -> None:
        if not 1 <= error_percent < 100 or keys < 1:
            raise ValueError("a bitmap needs an error of 1 to 99 percent and at least one key")
        error = error_percent / 100.0
        self.hashes = math.ceil(math.log(error) / math.log(0.5))
        bits = math.ceil(
            keys * (math.log(1 / error) / math.log(2)) * (math.log(math.e) / math.log(2))
        )
        self.bits = BITS_A_BYTE * math.ceil(bits / BITS_A_BYTE)

    @property
    def size(self) -> int:
        """Bytes of a bitmap."""
        return self.bits // BITS_A_BYTE

    def positions(self, key: str) -> list[int]:
        """The bits of a key, as 32-bit arithmetic in Java finds them; two may be the same."""
        digest = murmur3(key.encode())
        first, second = digest & _LOW_32, digest >> 32
        found = []
        for number in range(1, self.hashes + 1):
            mixed = (first + number * second) & _LOW_32
            found.append((~mixed & _LOW_32 if mixed >> 31 else mixed) % self.bits)
        return found


def mask_of(positions: list[int]) -> int:
    """The bits as one number: bit `b` is bit `b % 8` of byte `b // 8`."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def murmur3(data: bytes, seed: int = 0) -> int:
    """The first 64 bits of MurmurHash3 x64 128."""
    one = two = seed
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        one ^= _mixed(int.from_bytes(data[at : at + 8], "little"), _C1, 31, _C2)
        one = (_turned(one, 27) + two) * 5 + 0x52DCE729 & _LOW_64
        two ^= _mixed(int.from_bytes(data[at + 8 : at + 16], "little"), _C2, 33, _C1)
        two = (_turned(two, 31) + one) * 5 + 0x38495AB5 & _LOW_64
    rest = data[whole:]
    two ^= _mixed(int.from_bytes(rest[8:], "little"), _C2, 33, _C1)
    one ^= _mixed(int.from_bytes(rest[:8], "little"), _C1, 31, _C2)
    one ^= len(data)
    two ^= len(data)
    one = one + two & _LOW_64
    two = two + one & _LOW_64
    return _finished(one) + _finished(two) & _LOW_64


def _mixed(block: int, before: int, turn: int, after: int) -> int:
    return _turned(block * before & _LOW_64, turn) * after & _LOW_64


def _turned(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _LOW_64


def _finished(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _LOW_64
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _LOW_64
    return value ^ value >> 33
