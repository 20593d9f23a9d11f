"""Cutting a byte stream into frames, with the limits named."""

import struct
from typing import NamedTuple

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.command import FRAME_BYTES_MAX

_PREFIX = struct.Struct(">II")


class Frame(NamedTuple):
    """One frame, not yet looked into."""

    codec: int
    header: bytes
    body: bytes


def take_frame(buffer: bytearray, size_max: int = FRAME_BYTES_MAX) -> Frame | None:
    """Cut one whole frame off the front of `buffer`; None means: feed me more bytes."""
    if len(buffer) < 8:
        return None
    size, mark = _PREFIX.unpack_from(buffer)
    header_end = 8 + (mark & 0xFF_FFFF)
    end = 4 + size
    if end > size_max:
        raise ProtocolError(f"frame of {end} bytes is over the limit of {size_max}")
    if header_end > end:
        raise ProtocolError(f"header of {header_end - 8} bytes in a frame of {end}")
    if len(buffer) < end:
        return None
    frame = Frame(mark >> 24, bytes(buffer[8:header_end]), bytes(buffer[header_end:end]))
    del buffer[:end]
    return frame


def encode_frame(frame: Frame) -> bytes:
    size = 4 + len(frame.header) + len(frame.body)
    return _PREFIX.pack(size, frame.codec << 24 | len(frame.header)) + frame.header + frame.body
