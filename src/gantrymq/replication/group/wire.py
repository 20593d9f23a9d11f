"""What members of a raft group send each other, as bytes. Pure.

A frame is a length, a kind, a head in MessagePack and the rest as it is: the bytes of the log that
an append carries.

    u32 length of what follows | u8 kind | u32 length of the head | head | payload

A connection goes one way: the member that connected sends messages, and the other side answers the
greeting only. Each greeting says who speaks, to whom, and what both have to agree on. Members with
a key prove it: each greeting has a challenge, the second one answers the first's, and a proof, the
next frame, answers the second's.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from gantrymq.base.errors import DECODE_ERRORS, ProtocolError
from gantrymq.replication.raft.messages import (
    AppendAnswer,
    AppendRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    LogRestartRequest,
    PreVoteAnswer,
    PreVoteRequest,
    RaftMessage,
    TimeoutNow,
    VoteAnswer,
    VoteRequest,
)

VERSION: Final = 1
FRAME_BYTES_MAX: Final = 64 << 20
"""More than the largest append: one record may be larger than what is usually sent at once."""
_HEAD: Final = struct.Struct(">IBI")


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """The first frame, from both sides."""

    version: int = VERSION
    group: str
    sender: str
    receiver: str
    members: tuple[str, ...]
    file_bytes: int
    """The size of a log file; logs are copied byte by byte, so all members have the same."""
    address: str
    """The sender's port for clients."""
    is_empty: bool
    """Whether the sender has neither a log nor a term: it is new, or lost its disk."""
    challenge: bytes = b""
    """To be hashed with the group's key; empty if the sender has none."""
    proof: bytes = b""
    """Answers the challenge of the greeting that this one answers."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a member with a key sends first once its greeting was answered."""

    proof: bytes


class GreetingRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a greeting that cannot be accepted; the connection ends with it."""

    reason: str


Frame = RaftMessage | Greeting | GreetingRefused | Proof

_KINDS: Final[tuple[type[Frame], ...]] = (
    Greeting,
    GreetingRefused,
    PreVoteRequest,
    PreVoteAnswer,
    VoteRequest,
    VoteAnswer,
    AppendRequest,
    AppendAnswer,
    LogRestartRequest,
    HeartbeatRequest,
    HeartbeatAnswer,
    TimeoutNow,
    Proof,
)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_DECODERS: Final = [msgspec.msgpack.Decoder(kind) for kind in _KINDS]
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode_frame(frame: Frame, payload: bytes = b"") -> bytes:
    """One frame; `payload` are the bytes of an append."""
    head = _ENCODER.encode(frame)
    size = _HEAD.size - 4 + len(head) + len(payload)
    return _HEAD.pack(size, _NUMBERS[type(frame)], len(head)) + head + payload


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole now; ProtocolError for bytes that are none."""
        self._bytes += data
        while len(self._bytes) >= 4:
            size = int.from_bytes(self._bytes[:4], "big")
            if not _HEAD.size - 4 <= size <= FRAME_BYTES_MAX:
                raise ProtocolError(f"a frame of {size} bytes is none of a raft group")
            if len(self._bytes) < 4 + size:
                return
            frame = bytes(self._bytes[: 4 + size])
            del self._bytes[: 4 + size]
            yield _decode(frame)


def _decode(frame: bytes) -> Frame:
    _, number, head_bytes = _HEAD.unpack_from(frame)
    head_end = _HEAD.size + head_bytes
    if number >= len(_KINDS) or head_end > len(frame):
        raise ProtocolError(f"a frame of kind {number} is none of a raft group")
    try:
        message: Frame = _DECODERS[number].decode(memoryview(frame)[_HEAD.size : head_end])
    except DECODE_ERRORS as error:
        raise ProtocolError(f"a frame of kind {number} cannot be read: {error}") from error
    if isinstance(message, AppendRequest):
        payload = frame[head_end:]
        if len(payload) != message.size:
            raise ProtocolError(f"an append of {message.size} bytes brought {len(payload)}")
        return msgspec.structs.replace(message, payload=payload)
    return message
