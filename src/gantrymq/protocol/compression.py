"""Compressed bodies: zlib always, lz4 and zstd where their packages are installed."""

import zlib
from collections.abc import Callable
from typing import Any, Final

from gantrymq.base.errors import ProtocolError

COMPRESSED: Final = 0x1
TYPE_MASK: Final = 0x700
LZ4, ZSTD, ZLIB = 0x100, 0x200, 0x300
UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
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
    if not stream.eof:
        raise ProtocolError("compressed body is cut off or larger than 256 MiB unpacked")
    return whole


def _unpack_lz4(body: bytes) -> bytes:
    # In pieces: a frame that only claims to be huge makes the one-step function reserve its size.
    stream = _lz4().LZ4FrameDecompressor()
    try:
        whole = bytes(stream.decompress(body, max_length=UNPACKED_BYTES_MAX))
    except (RuntimeError, MemoryError) as error:
        raise ProtocolError(f"lz4 body: {error}") from error
    if not stream.eof:
        raise ProtocolError("lz4 body is cut off or larger than 256 MiB unpacked")
    return whole


def _unpack_zstd(body: bytes) -> bytes:
    zstd = _zstd()
    try:
        with zstd.ZstdDecompressor().stream_reader(body) as stream:
            whole = bytes(stream.read(UNPACKED_BYTES_MAX))
            more = stream.read(1)
    except (zstd.ZstdError, MemoryError) as error:
        raise ProtocolError(f"zstd body: {error}") from error
    if more:
        raise ProtocolError("zstd body is larger than 256 MiB unpacked")
    return whole


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
