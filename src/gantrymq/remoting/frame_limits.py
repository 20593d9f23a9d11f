"""Frames and headers that are larger than a server takes, found before they have arrived whole."""

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel import Buffer
from gantrymq.protocol.command import PREFIX, Command, decode_header
from gantrymq.remoting.limits import LIMITS, ConnectionLimits


class OversizedFrame(ProtocolError):
    """A frame over a limit; `command` is its request if the header could be read."""

    def __init__(self, key: str, text: str, command: Command | None) -> None:
        super().__init__(text)
        self.key, self.command = key, command
        self.code = LIMITS[key] or 1  # type: ignore[misc]


def oversized_front(buffer: bytearray, limits: ConnectionLimits) -> OversizedFrame | None:
    """The error of the frame at the front of `buffer`, of which the end may be missing."""
    if len(buffer) < PREFIX.size:
        return None
    size, mark = PREFIX.unpack_from(buffer)
    frame, header = 4 + size, mark & 0xFF_FFFF
    if header > frame - 8:
        return None  # no frame at all
    if header > limits.max_header_bytes:
        return _header_error(header, limits, None)
    if frame <= limits.max_frame_bytes:
        return None
    key = "maxFrameBytes"
    text = f"a request of {frame} bytes: raise {key} (now {limits.max_frame_bytes})"
    command = None
    if len(buffer) >= 8 + header:
        try:
            command = decode_header(mark >> 24, bytes(buffer[8 : 8 + header]))
        except ProtocolError:
            command = None
    return OversizedFrame(key, text, command)


def frames_within(
    buffer: Buffer,
    used: int,
    commands: list[Command],
    limits: ConnectionLimits,
    error: ProtocolError | None,
) -> tuple[ProtocolError | None, int]:
    """Drop the first command with too large a header, and those behind it, from `commands`.

    Returns its error and where its frame begins, or what was given if there is none. Frames were
    cut from the first `used` bytes of the buffer.
    """
    at = 0
    for number, command in enumerate(commands):
        size, mark = PREFIX.unpack_from(buffer, at)
        header = mark & 0xFF_FFFF
        if header > limits.max_header_bytes:
            del commands[number:]
            return _header_error(header, limits, command), at
        at += 4 + size
    return error, used


def _header_error(size: int, limits: ConnectionLimits, command: Command | None) -> OversizedFrame:
    key = "maxHeaderBytes"
    text = f"a header of {size} bytes: raise {key} (now {limits.max_header_bytes})"
    return OversizedFrame(key, text, command)
