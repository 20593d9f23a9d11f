"""Java's hash of a string: tag hashes, index keys and queue choices are computed with it. Pure."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
