"""Bitmaps with RocketMQ's numbers; expected values are from its own classes."""

import pytest

from gantrymq.filter.bloom import Bloom, mask_of, murmur3


@pytest.mark.parametrize(
    "error, keys, hashes, bits",
    [(20, 32, 3, 112), (10, 128, 4, 616), (1, 1, 7, 16), (50, 1000, 1, 1448)],
)
def test_a_bitmap_has_rocketmqs_size(error: int, keys: int, hashes: int, bits: int) -> None:
    """
    From the error rate and the expected number of groups.
    """
    made = Bloom(error, keys)

    assert (hashes, bits, bits // 8) == (made.hashes, made.bits, made.size)


@pytest.mark.parametrize(
    "key, digest, positions",
    [
        ("", 0, [0, 0, 0]),
        ("a", 9607679276477937801, [94, 99, 7]),
        ("group#topic", 11909421818044895524, [79, 21, 21]),
        ("audit#orders", 13332571743807142709, [97, 13, 70]),
        ("12345678", 4272337174398058908, [18, 23, 33]),
        ("1234567890123456", 5746133278497385720, [29, 98, 88]),
        (
            "a_rather_long_group_name#a_rather_long_topic_name",
            13610030153244126840,
            [56, 88, 103],
        ),
        ("grüppe#тема", 10882245549574499045, [48, 84, 38]),
    ],
)
def test_a_key_has_rocketmqs_bits(key: str, digest: int, positions: list[int]) -> None:
    """
    Murmur 3 as Guava computes it, and positions in Java's 32 bits.
    """
    assert (digest, positions) == (murmur3(key.encode()), Bloom(20, 32).positions(key))


def test_bits_count_from_the_first_byte() -> None:
    """
    Bit 9 is the second bit of the second byte.
    """
    assert b"\x01\x02" == mask_of([0, 9, 9]).to_bytes(2, "little")


@pytest.mark.parametrize("error, keys", [(0, 1), (100, 1), (20, 0)])
def test_impossible_sizes_are_refused(error: int, keys: int) -> None:
    """
    As RocketMQ refuses them.
    """
    with pytest.raises(ValueError, match="1 to 99 percent"):
        Bloom(error, keys)
