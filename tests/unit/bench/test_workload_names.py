"""The words of `python -m bench`."""

import pytest
from bench.names import UnknownWorkload, chosen

NAMES = ["send-json", "send-binary", "sendings", "limit"]


def test_a_word_is_a_name_or_the_beginning_of_some() -> None:
    """
    Up to a hyphen, in the order of the words, each workload once.
    """
    assert chosen(["limit", "send", "send-json"], NAMES) == ["limit", "send-json", "send-binary"]


def test_an_unknown_word_is_refused() -> None:
    """
    Also when only a part of a word fits.
    """
    with pytest.raises(UnknownWorkload, match="no workload lim"):
        chosen(["lim"], NAMES)
