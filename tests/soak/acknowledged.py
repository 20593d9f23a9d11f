"""What the broker has acknowledged, and whether it is still there.

A message is its number; an acknowledgement names its place. After a kill every place is read
through the broker and has to have its number.
"""

import struct
from array import array
from collections.abc import Mapping
from typing import Final, NamedTuple

from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import PullRequest, PullResponse
from gantrymq.remoting.connection import Connection

CALL_SECONDS_MAX: Final = 30.0
PULL_MESSAGES: Final = 2_000
RECORD: Final = struct.Struct(">i16xq")
"""Size and queue offset of a record."""
BODY_AT: Final = 88
"""Where the body of a record begins whose hosts are IPv4."""
NUMBER_DIGITS: Final = 16


class Acknowledged:
    """The acknowledgements of one topic with one queue."""

    __slots__ = ("numbers", "offsets")

    def __init__(self) -> None:
        self.offsets, self.numbers = array("q"), array("q")

    def add(self, offset: int, number: int) -> None:
        self.offsets.append(offset)
        self.numbers.append(number)


class Verdict(NamedTuple):
    """What a look at all places found."""

    checked: int
    lost: list[str]
    """Each with its place, the first few."""


def body_of(number: int, size: int) -> bytes:
    return b"%0*d" % (NUMBER_DIGITS, number) + b"." * (size - NUMBER_DIGITS)


async def check(connection: Connection, found: Mapping[str, Acknowledged]) -> Verdict:
    """Read every acknowledged place."""
    checked, lost = 0, []
    for topic, acknowledged in found.items():
        wanted = dict(zip(acknowledged.offsets, acknowledged.numbers, strict=True))
        checked += len(wanted)
        at, end = min(wanted), max(wanted)
        while at <= end:
            numbers, following = await _pull(connection, topic, at)
            for offset, number in numbers.items():
                expected = wanted.pop(offset, number)
                if expected != number:
                    lost.append(f"{topic} at {offset}: message {number} instead of {expected}")
            if following <= at:
                break
            at = following
        lost += [f"{topic} at {offset}: message {number}" for offset, number in wanted.items()]
    return Verdict(checked, lost)


async def _pull(connection: Connection, topic: str, at: int) -> tuple[dict[int, int], int]:
    """The numbers by offset, and where to go on."""
    request = PullRequest(
        consumer_group="soak-check",
        topic=topic,
        queue_id=0,
        queue_offset=at,
        max_msg_nums=PULL_MESSAGES,
        subscription="*",
        sys_flag=4,
        expression_type="TAG",
    )
    command = Command(code=RequestCode.PULL_MESSAGE, ext=request.to_ext())
    answer = await connection.call(command, CALL_SECONDS_MAX)
    following = PullResponse.parse(answer.ext).next_begin_offset
    if answer.code != ResponseCode.SUCCESS:
        return {}, at if answer.code == ResponseCode.PULL_NOT_FOUND else following
    return _numbers(answer.body), following


def _numbers(records: bytes) -> dict[int, int]:
    """Queue offsets and numbers of records of this load, ten times as fast as decoding them: a
    check must not take longer than the life that it looks at."""
    found, at, end = {}, 0, len(records)
    while at < end:
        size, offset = RECORD.unpack_from(records, at)
        found[offset] = int(records[at + BODY_AT : at + BODY_AT + NUMBER_DIGITS])
        at += size
    return found
