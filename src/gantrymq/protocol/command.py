"""A command: one frame's header and body, in either of the two header codecs.

frame  = size(4) mark(4) header body        size counts everything after itself
mark   = codec << 24 | header size          codec 0 is JSON, 1 is ROCKETMQ's binary header

Reading accepts what RocketMQ's clients of all languages write; writing is strict: extension values
are strings, keys are in Java's order, nulls are left out.
"""

import struct
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from gantrymq.base.errors import DECODE_ERRORS, ProtocolError
from gantrymq.base.javatypes import Int32, java_enum
from gantrymq.base.layout import I16, I32, U8, U32, byte_layout
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import LANGUAGE_CODES, LANGUAGES, VERSION_4_9_8

JSON_CODEC: Final = 0
BINARY_CODEC: Final = 1
RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2
FRAME_BYTES_MAX: Final = 16_777_216


class FramePrefix(NamedTuple):
    """What every frame begins with."""

    size: U32
    """Bytes that follow this field."""
    mark: U32
    """Codec of the header in the first byte, bytes of the header in the other three."""


class BinaryHead(NamedTuple):
    """The fixed part of a binary header; remark and fields follow it."""

    code: I16
    """Request code, or the code of an answer."""
    language: U8
    """Number of the sender's language."""
    version: I16
    """Number of the sender's release."""
    opaque: I32
    """Number of the request; its answer has the same."""
    flag: I32
    """Bit 0: an answer; bit 1: nobody waits for an answer."""
    remark_size: I32
    """Bytes of the remark, which follows in UTF-8."""


PREFIX: Final = byte_layout(FramePrefix)
_BINARY_HEAD = byte_layout(BinaryHead)
_INT = struct.Struct(">i")
_KEY_SIZE = struct.Struct(">h")

_HIDDEN = {"body": "(body)", "codec": "(codec)", "ext": "extFields"}


class Command(msgspec.Struct, rename=_HIDDEN, gc=False):
    """A request or a response. `ext` holds the raw extension fields exactly as received."""

    code: int
    ext: dict[str, str] = {}
    flag: int = 0
    language: str | None = "PYTHON"
    opaque: int = 0
    remark: str | None = None
    version: int = VERSION_4_9_8
    body: bytes = b""
    codec: int = JSON_CODEC

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)


class _LenientHeader(msgspec.Struct):
    """A header as other clients may write it: see `casts`. ali-ons and Go send numbers."""

    code: Int32
    extFields: dict[str, str | None] | None = None  # noqa: N815
    flag: Int32 = 0
    language: Annotated[str, java_enum(*LANGUAGES)] | None = None
    opaque: Int32 = 0
    remark: str | None = None
    version: Int32 = 0


class _JsonHeader(msgspec.Struct, omit_defaults=True):
    """A header as GantryMQ writes it: in Java's alphabetical order, without nulls."""

    code: int
    extFields: dict[str, str] | None = None  # noqa: N815
    flag: int | msgspec.UnsetType = msgspec.UNSET
    language: str | msgspec.UnsetType = msgspec.UNSET
    opaque: int | msgspec.UnsetType = msgspec.UNSET
    remark: str | None = None
    serializeTypeCurrentRPC: str | msgspec.UnsetType = msgspec.UNSET  # noqa: N815
    version: int | msgspec.UnsetType = msgspec.UNSET


_strict_decoder = msgspec.json.Decoder(Command)
_encoder = msgspec.json.Encoder()


def java_text(value: Any) -> str:
    """A JSON scalar as Java prints it; ali-ons does not quote extension values."""
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, dict | list):
        return _encoder.encode(value).decode()
    return str(value)


def decode_header(codec: int, header: bytes | memoryview) -> Command:
    """Parse a header; the caller sets the body. Raises ProtocolError and nothing else."""
    if codec == JSON_CODEC:
        try:
            return _strict_decoder.decode(header)
        except DECODE_ERRORS:
            return _decode_lenient_json(header)
    if codec == BINARY_CODEC:
        return _decode_binary(bytes(header))
    raise ProtocolError(f"header codec {codec} is neither 0 (JSON) nor 1 (ROCKETMQ)")


def _decode_lenient_json(header: bytes | memoryview) -> Command:
    try:
        raw = fastjson.load_request(bytes(header), _LenientHeader)
    except ProtocolError as error:
        raise ProtocolError(f"header is not a command: {error}") from error
    return Command(
        code=raw.code,
        ext={name: value for name, value in (raw.extFields or {}).items() if value is not None},
        flag=raw.flag,
        language=raw.language,
        opaque=raw.opaque,
        remark=raw.remark,
        version=raw.version,
    )


def _decode_binary(data: bytes) -> Command:
    try:
        code, language, version, opaque, flag, remark_size = _BINARY_HEAD.unpack_from(data)
        at = _BINARY_HEAD.size
        remark, at = _text(data, at, remark_size)
        (ext_size,) = _INT.unpack_from(data, at)
        ext = _decode_ext(data, at + 4, ext_size) if ext_size else {}
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"binary header of {len(data)} bytes: {error}") from error
    name = LANGUAGES[language] if language < len(LANGUAGES) else None
    return Command(
        code=code,
        ext=ext,
        flag=flag,
        language=name,
        opaque=opaque,
        remark=remark or None,
        version=version,
        codec=BINARY_CODEC,
    )


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    if size < 0 or at + size > len(data):
        raise _bad_text(size, at, data)
    return data[at : at + size].decode(), at + size


def _bad_text(size: int, at: int, data: bytes) -> ProtocolError:
    return ProtocolError(f"binary header: {size} bytes of text at {at} of {len(data)}")


def _decode_ext(data: bytes, at: int, size: int) -> dict[str, str]:
    """Read extension fields; one loop, as it is most of a header's cost without the kernel."""
    end, length = at + size, len(data)
    if size < 0 or end > length:
        raise ProtocolError(f"binary header: {size} bytes of fields at {at} of {length}")
    ext = {}
    key_size, value_size = _KEY_SIZE.unpack_from, _INT.unpack_from
    while at < end:
        stop = at + 2 + key_size(data, at)[0]
        if not at + 2 <= stop <= length:
            raise _bad_text(stop - at - 2, at + 2, data)
        key = data[at + 2 : stop].decode()
        at = stop + 4
        stop = at + value_size(data, at - 4)[0]
        if not at <= stop <= length:
            raise _bad_text(stop - at, at, data)
        value = data[at:stop].decode()
        if key and value:
            ext[key] = value
        at = stop
    return ext


def encode(command: Command) -> bytes:
    """The whole frame, in the command's own codec."""
    to_bytes = _encode_binary if command.codec == BINARY_CODEC else _encode_json
    header = to_bytes(command)
    body = command.body
    size = 4 + len(header) + len(body)
    return PREFIX.pack(size, command.codec << 24 | len(header)) + header + body


def _encode_json(command: Command) -> bytes:
    return _encoder.encode(
        _JsonHeader(
            command.code,
            command.ext or None,
            command.flag,
            command.language or "OTHER",
            command.opaque,
            command.remark,
            "JSON",
            command.version,
        )
    )


def _encode_binary(command: Command) -> bytes:
    if not -32768 <= command.code <= 32767:
        raise ProtocolError(f"code {command.code} needs a JSON header: binary ones carry 16 bits")
    remark = (command.remark or "").encode()
    parts: list[bytes] = []
    for name, value in command.ext.items():
        key, text = name.encode(), value.encode()
        parts += (_KEY_SIZE.pack(len(key)), key, _INT.pack(len(text)), text)
    ext = b"".join(parts)
    language = LANGUAGE_CODES.get(command.language or "OTHER", LANGUAGE_CODES["OTHER"])
    head = _BINARY_HEAD.pack(
        command.code, language, command.version, command.opaque, command.flag, len(remark)
    )
    return b"".join((head, remark, _INT.pack(len(ext)), ext))


def response(
    request: Command,
    code: int = 0,
    *,
    ext: dict[str, str] | None = None,
    remark: str | None = None,
    body: bytes = b"",
) -> Command:
    """The answer to a request, in the request's own codec (ali-ons reads nothing else)."""
    return Command(
        code=code,
        ext=ext or {},
        flag=RESPONSE_FLAG,
        opaque=request.opaque,
        remark=remark,
        body=body,
        codec=request.codec,
    )
