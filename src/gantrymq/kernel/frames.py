"""Decoding of frames and encoding of answers: the pure twin."""

import struct

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.codes import LANGUAGE_CODES, VERSION_4_9_8
from gantrymq.protocol.command import (
    BINARY_CODEC,
    PREFIX,
    RESPONSE_FLAG,
    Command,
    decode_header,
    encode,
)

Buffer = bytes | bytearray | memoryview

_SIZE = struct.Struct(">i")
_BINARY_ANSWER = struct.Struct(">IIhBhiiii")
"""Frame size, mark, then a binary header up to its fields."""
_SEND_FIELDS = b"".join(
    len(name).to_bytes(2, "big") + name + len(value).to_bytes(4, "big") + value
    for name, value in ((b"MSG_REGION", b"DefaultRegion"), (b"TRACE_ON", b"true"))
)

_SEND_TEMPLATE = (
    b'{"code":%d,"extFields":{"MSG_REGION":"DefaultRegion","TRACE_ON":"true","msgId":"%b",'
    b'"queueId":"%d","queueOffset":"%d"%b},"flag":1,"language":"PYTHON","opaque":%d,'
    b'"serializeTypeCurrentRPC":"JSON","version":%d}'
)
_PULL_TEMPLATE = (
    b'{"code":%d,"extFields":{"maxOffset":"%d","minOffset":"%d","nextBeginOffset":"%d",'
    b'"suggestWhichBrokerId":"%d"},"flag":1,"language":"PYTHON","opaque":%d,"remark":"%b",'
    b'"serializeTypeCurrentRPC":"JSON","version":%d}'
)


def cut_commands(
    buffer: Buffer, size_max: int, count_max: int
) -> tuple[list[Command], int, ProtocolError | None]:
    """Decode whole frames from the front of `buffer`, at most `count_max` of them.

    Returns the commands, how many bytes they took (the caller deletes them), and the error of the
    first bad frame, None without one: the commands before it must still be answered.
    """
    commands: list[Command] = []
    at, end = 0, len(buffer)
    with memoryview(buffer) as view:
        while end - at >= 8 and len(commands) < count_max:
            size, mark = PREFIX.unpack_from(view, at)
            frame_end, header_end = at + 4 + size, at + 8 + (mark & 0xFF_FFFF)
            if 4 + size > size_max:
                error = ProtocolError(f"frame of {4 + size} bytes is over the limit of {size_max}")
                return commands, at, error
            if header_end > frame_end:
                error = ProtocolError(f"header of {mark & 0xFF_FFFF} bytes in {4 + size}")
                return commands, at, error
            if frame_end > end:
                break
            try:
                command = decode_header(mark >> 24, bytes(view[at + 8 : header_end]))
            except ProtocolError as bad:
                return commands, at, bad
            command.body = bytes(view[header_end:frame_end])
            commands.append(command)
            at = frame_end
    return commands, at, None


def send_answer(
    codec: int,
    code: int,
    opaque: int,
    msg_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str = "",
) -> bytes:
    """The answer to a stored message, as a whole frame."""
    if codec == BINARY_CODEC:
        return _binary_send_answer(
            code, opaque, msg_id, str(queue_id), str(queue_offset), transaction_id
        )
    more = b',"transactionId":"%b"' % transaction_id.encode() if transaction_id else b""
    header = _SEND_TEMPLATE % (
        code,
        msg_id.encode(),
        queue_id,
        queue_offset,
        more,
        opaque,
        VERSION_4_9_8,
    )
    return PREFIX.pack(4 + len(header), len(header)) + header


def _binary_send_answer(
    code: int, opaque: int, msg_id: str, queue_id: str, queue_offset: str, transaction_id: str
) -> bytes:
    """The same with a binary header; the two constant fields are ready-made."""
    if not -32768 <= code <= 32767:
        raise ProtocolError(f"code {code} needs a JSON header: binary ones carry 16 bits")
    named = [
        (b"\0\x05msgId", msg_id),
        (b"\0\x07queueId", queue_id),
        (b"\0\x0bqueueOffset", queue_offset),
    ]
    if transaction_id:
        named.append((b"\0\x0dtransactionId", transaction_id))
    parts = [b"", _SEND_FIELDS]
    size = len(_SEND_FIELDS)
    for name, value in named:
        text = value.encode()
        parts += (name, _SIZE.pack(len(text)), text)
        size += len(name) + 4 + len(text)
    parts[0] = _BINARY_ANSWER.pack(
        _BINARY_ANSWER.size - 4 + size,
        BINARY_CODEC << 24 | _BINARY_ANSWER.size - 8 + size,
        code,
        LANGUAGE_CODES["PYTHON"],
        VERSION_4_9_8,
        opaque,
        RESPONSE_FLAG,
        0,
        size,
    )
    return b"".join(parts)


def pull_answer(
    codec: int,
    code: int,
    opaque: int,
    remark: str,
    suggest: int,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    body_size: int,
) -> bytes:
    """The head of an answer to a pull; the body follows it on the wire untouched."""
    if codec == BINARY_CODEC:
        ext = {
            "maxOffset": str(max_offset),
            "minOffset": str(min_offset),
            "nextBeginOffset": str(next_offset),
            "suggestWhichBrokerId": str(suggest),
        }
        frame = encode(
            Command(
                code=code,
                ext=ext,
                flag=RESPONSE_FLAG,
                opaque=opaque,
                remark=remark,
                codec=BINARY_CODEC,
            )
        )
        header = frame[8:]
    else:
        header = _PULL_TEMPLATE % (
            code,
            max_offset,
            min_offset,
            next_offset,
            suggest,
            opaque,
            remark.encode(),
            VERSION_4_9_8,
        )
    return PREFIX.pack(4 + len(header) + body_size, codec << 24 | len(header)) + header
