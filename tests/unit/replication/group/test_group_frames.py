"""Frames between members of a raft group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.replication.group.wire import (
    FRAME_BYTES_MAX,
    FrameReader,
    Greeting,
    GreetingRefused,
    encode_frame,
)
from gantrymq.replication.raft.log_view import EpochStart, LogView
from gantrymq.replication.raft.messages import (
    AppendAnswer,
    AppendRequest,
    HeartbeatRequest,
    VoteAnswer,
)

WAY = {"group": "g", "term": 7, "sender": "n0", "receiver": "n1"}
GREETING = Greeting(
    group="g",
    sender="n0",
    receiver="n1",
    members=("n0", "n1", "n2"),
    file_bytes=1 << 30,
    address="10.0.0.1:10911",
    is_empty=True,
)
LOG = LogView(4, 20, 12, (EpochStart(1, 0), EpochStart(3, 8)))
APPEND = AppendRequest(
    **WAY, start=8, start_term=1, size=5, epochs=(EpochStart(3, 8),), commit=8, payload=b"bytes"
)  # type: ignore[arg-type]
FRAMES = [
    GREETING,
    GreetingRefused(reason="no"),
    HeartbeatRequest(**WAY, commit=1 << 40),  # type: ignore[arg-type]
    VoteAnswer(**WAY, granted=True, may_vote=False),  # type: ignore[arg-type]
    AppendAnswer(**WAY, accepted=False, offset=8, log=LOG),  # type: ignore[arg-type]
]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200))
def test_frames_come_out_as_they_went_in(cuts: list[int]) -> None:
    """
    However the stream is cut; an append carries its bytes behind its head.
    """
    stream = b"".join(encode_frame(frame) for frame in FRAMES)
    stream += encode_frame(_without_payload(APPEND), b"bytes")
    reader, found, at = FrameReader(), [], 0
    for size in [*cuts, len(stream)]:
        found += reader.feed(stream[at : at + size])
        at += size

    assert [*FRAMES, APPEND] == found


def _without_payload(append: AppendRequest) -> AppendRequest:
    """As the core hands it out."""
    return AppendRequest(
        **WAY,  # type: ignore[arg-type]
        start=append.start,
        start_term=append.start_term,
        size=append.size,
        epochs=append.epochs,
        commit=append.commit,
    )


@pytest.mark.parametrize(
    "stream, said",
    [
        (b"GET / HTTP/1.1\r\n", "is none of a raft group"),
        ((FRAME_BYTES_MAX + 1).to_bytes(4, "big"), "is none of a raft group"),
        (b"\0\0\0\x05\xff\0\0\0\0", "kind 255"),
        (b"\0\0\0\x05\x00\0\0\0\x09", "kind 0"),
        (b"\0\0\0\x06\x00\0\0\0\x01\xc1", "cannot be read"),
        (encode_frame(_without_payload(APPEND), b"four"), "an append of 5 bytes brought 4"),
    ],
)
def test_what_is_no_frame_is_refused(stream: bytes, said: str) -> None:
    """
    With a reason for the log.
    """
    with pytest.raises(ProtocolError, match=said):
        list(FrameReader().feed(stream))
