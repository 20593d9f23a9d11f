"""Answers to sends in a region of their own."""

import pytest

from gantrymq.broker.handlers.send_answers import answers_in
from gantrymq.kernel import cut_commands
from gantrymq.protocol.command import BINARY_CODEC, JSON_CODEC, Command
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.trace import DEFAULT_REGION

HOST = encode_host("127.0.0.1", 10911)


def read(frame: bytes) -> Command:
    (command,), size, error = cut_commands(bytearray(frame), 1 << 20, 2)
    assert (len(frame), None) == (size, error)
    return command


@pytest.mark.parametrize("codec", [JSON_CODEC, BINARY_CODEC])
@pytest.mark.parametrize("unique_key", ["", "id"])
def test_only_the_region_differs_from_the_kernels_answer(codec: int, unique_key: str) -> None:
    """
    The kernel writes the default region; any other is written field by field, in both codecs.
    """
    place = (0, 77, HOST, 4_096, 3, 12, unique_key)
    sent = (0, 78, "id-1,id-2", 3, 12, unique_key)
    usual, batch = answers_in(DEFAULT_REGION)
    other, other_batch = answers_in("north")
    for known, found in (
        (read(usual(codec, *place)), read(other(codec, *place))),
        (read(batch(codec, *sent)), read(other_batch(codec, *sent))),
    ):
        assert "north" == found.ext["MSG_REGION"]
        found.ext["MSG_REGION"] = DEFAULT_REGION
        assert known == found
