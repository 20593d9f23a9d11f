"""Patterns of white lists."""

import pytest

from gantrymq.access.addresses import parse_pattern
from gantrymq.base.errors import ConfigError


@pytest.mark.parametrize(
    "pattern, inside, outside",
    [
        ("*", ["10.0.0.1", "::1"], []),
        ("*.*.*.*", ["10.0.0.1"], []),
        ("", [], ["10.0.0.1", ""]),
        ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1"], ["10.0.0.11", "10.0.0.2", "::1", "x"]),
        ("10.0.0.1,10.0.0.2", ["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]),
        ("10.0.0.{1,7}", ["10.0.0.1", "10.0.0.7"], ["10.0.0.17", "10.0.0.2"]),
        ("192.168.1-100.*", ["192.168.1.9", "192.168.100.0"], ["192.168.0.9", "192.168.101.1"]),
        ("192.168.0.10-20", ["192.168.0.10", "192.168.0.20"], ["192.168.0.9", "192.168.0.21"]),
        ("192.168.*.*", ["192.168.7.8"], ["192.169.7.8"]),
        ("10.0.1-9.7", ["10.0.3.7"], ["10.0.3.8"]),
        ("1050::5:600:300c:326b", ["1050:0:0:0:5:600:300C:326B"], ["1050::5:600:300c:326a"]),
        ("5::7:6:1-200:*", ["5::7:6:1:3", "5::7:6:200:ffff"], ["5::7:6:201:1", "6::7:6:1:3"]),
        ("1050::5:{1,ab}", ["1050::5:1", "1050::5:ab"], ["1050::5:2"]),
    ],
)
def test_a_pattern_has_these_addresses_inside(
    pattern: str, inside: list[str], outside: list[str]
) -> None:
    """
    RocketMQ's own kinds of patterns.
    """
    found = parse_pattern(pattern)

    assert ([], []) == (
        [each for each in inside if not found.matches(each)],
        [each for each in outside if found.matches(each)],
    )


@pytest.mark.parametrize(
    "pattern",
    ["10.0.0", "10.0.0.256", "10.0.0.9-5", "10.0.0.-5", "10.0.{1,2}.5", "10.0.0.{1", "host",
     "10.0.0.1_0", "1:2:3", "1::2::3", "10.0.0.{1,2},10.0.0.9"],
)  # fmt: skip
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    """
    It says what to write instead.
    """
    with pytest.raises(ConfigError, match="is no address and no pattern"):
        parse_pattern(pattern)
