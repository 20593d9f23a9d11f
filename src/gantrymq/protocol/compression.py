"""Compressed bodies: zlib always, lz4 and zstd where their packages are installed."""

import zlib
from collections.abc import Callable
from typing import Any, Final

from gantrymq.base.errors import ProtocolError

COMPRESSED: Final = 0x1
TYPE_MASK: Final = 0x700
LZ4, ZSTD, ZLIB = 0x100, 0x200, 0x300
UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024
"""A few kilobytes may unpack to gigabytes; larger bodies are refused before they are unpacked."""
STEP_BYTES: Final = 256
TYPES = {"zlib": ZLIB, "lz4": LZ4, "zstd": ZSTD}


class CompressionMissing(ProtocolError):
    """The peer used a compression whose package is not installed here."""


def compress(body: bytes, kind: str = "zlib", level: int = 5) -> tuple[bytes, int]:
    """The compressed body, and the bits to set in its sysFlag."""
    if kind == "zlib":
        return zlib.compress(body, level), COMPRESSED | ZLIB
    if kind == "lz4":
        return bytes(_lz4().compress(body)), COMPRESSED | LZ4
    if kind == "zstd":
        return bytes(_zstd().ZstdCompressor(level=level).compress(body)), COMPRESSED | ZSTD
    raise ProtocolError(f"compression {kind!r} is none of {', '.join(TYPES)}")


def decompress(body: bytes, sys_flag: int) -> bytes:
    """The body as the producer sent it; unchanged if the flag says it is not compressed."""
    if not sys_flag & COMPRESSED:
        return body
    unpack: Callable[[bytes], bytes]
    kind = sys_flag & TYPE_MASK
    unpack = _unpack_lz4 if kind == LZ4 else _unpack_zstd if kind == ZSTD else _unpack_zlib
    return unpack(body)


def _unpack_zlib(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        whole = stream.decompress(body, UNPACKED_BYTES_MAX)
    except zlib.error as error:
        raise ProtocolError(f"compressed body: {error}") from error
    if stream.unconsumed_tail:
        raise _too_large()
    if not stream.eof:
        raise ProtocolError("compressed body is cut off")
    return whole


def _too_large() -> ProtocolError:
    return ProtocolError(f"compressed body is larger than {UNPACKED_BYTES_MAX} bytes unpacked")


def _unpack_lz4(body: bytes) -> bytes:
    # In pieces: a frame that only claims to be huge makes the one-step function reserve its size.
    try:
        stream = _lz4().LZ4FrameDecompressor()
        whole = bytes(stream.decompress(body, UNPACKED_BYTES_MAX))
    except (RuntimeError, EOFError, MemoryError) as error:
        raise ProtocolError(f"lz4 body: {error}") from error
    if stream.eof:
        return whole
    raise _too_large() if len(whole) >= UNPACKED_BYTES_MAX else ProtocolError("lz4 body is cut off")


def _unpack_zstd(body: bytes) -> bytes:
    zstd = _zstd()
    try:
        size = zstd.frame_content_size(body)
        if size > UNPACKED_BYTES_MAX:
            raise _too_large()
        # A sender that streams does not say the size: then it is unpacked in small steps.
        return _unpack_in_steps(zstd, body, len(body) if size >= 0 else STEP_BYTES)
    except (zstd.ZstdError, MemoryError) as error:
        raise ProtocolError(f"zstd body: {error}") from error


def _unpack_in_steps(zstd: Any, body: bytes, step: int) -> bytes:
    stream, parts, total = zstd.ZstdDecompressor().decompressobj(), [], 0
    for at in range(0, len(body), step):
        parts.append(bytes(stream.decompress(body[at : at + step])))
        total += len(parts[-1])
        if total > UNPACKED_BYTES_MAX:
            raise _too_large()
        if stream.eof:
            return b"".join(parts)
    raise ProtocolError("zstd body is cut off")


def _lz4() -> Any:
    try:
        import lz4.frame
    except ImportError as error:
        raise CompressionMissing("lz4 body: install gantrymq[lz4]") from error
    return lz4.frame


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise CompressionMissing("zstd body: install gantrymq[zstd]") from error
    return zstandard
