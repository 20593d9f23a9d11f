"""Answers to sends, read without a command for each: the pure twin."""

import re
from typing import Any, Final, NamedTuple

from gantrymq.kernel.records import Buffer
from gantrymq.model import Queue, SendResult
from gantrymq.protocol.command import PREFIX

FRAME_BYTES_MAX: Final = 1024
_NAMES: Final = {
    b"msgId", b"queueId", b"queueOffset", b"transactionId", b"MSG_REGION", b"TRACE_ON"
}  # fmt: skip
_FIELD = re.compile(rb'"([A-Za-z_]+)":"([ !#-\[\]-~]*)"')
_STORED = re.compile(
    rb'\{"code":0,"extFields":\{((?:%b,)*%b)\},"flag":1,"language":"[A-Z_]+","opaque":([0-9]{1,10}),'
    rb'"serializeTypeCurrentRPC":"JSON","version":[0-9]{1,10}\}' % ((_FIELD.pattern,) * 2)
)
_NUMBER = re.compile(rb"[0-9]{1,18}")


class _Stored(NamedTuple):
    """Where the message of a request is stored."""

    opaque: int
    offset_msg_id: str
    queue_id: int
    offset: int
    transaction_id: str | None


def cut_stored(
    buffer: Buffer, calls: dict[int, Any], kind: type
) -> tuple[list[tuple[Any, SendResult]], int]:
    """Take answers that say "stored" from the front of `buffer`, as far as there is nothing else.

    Only those to calls of the type `kind` (sends that have a target and a prepared message), which
    are taken out of `calls`, and only headers in JSON as brokers write them, with the fields that
    each such answer has. Returns each call with its result, and how many bytes they took.
    """
    found: list[tuple[Any, SendResult]] = []
    at, end = 0, len(buffer)
    while end - at >= 8:
        size, mark = PREFIX.unpack_from(buffer, at)
        if mark != size - 4 or size > FRAME_BYTES_MAX or at + 4 + size > end:
            break
        read = _stored(bytes(buffer[at + 8 : at + 4 + size]))
        if read is None:
            break
        call: Any = calls.get(read.opaque)
        if not _is_exactly(call, kind):
            break
        target = call.target
        if target is None or target.queue.queue_id != read.queue_id:
            break
        del calls[read.opaque]
        found.append((call, _result(call.prepared.msg_id, target.queue, read)))
        at += 4 + size
    return found, at


def _is_exactly(call: object, kind: type) -> bool:
    return type(call) is kind


def _result(msg_id: str, queue: Queue, read: _Stored) -> SendResult:
    return SendResult(
        "SEND_OK", msg_id, read.offset_msg_id, queue, read.offset, read.transaction_id
    )


def _stored(header: bytes) -> _Stored | None:
    """What an answer says; None if it is not plain."""
    whole = _STORED.fullmatch(header)
    if whole is None:
        return None
    fields = dict(_FIELD.findall(whole[1]))
    queue_id, offset = fields.get(b"queueId", b""), fields.get(b"queueOffset", b"")
    if b"msgId" not in fields or not fields.keys() <= _NAMES:
        return None
    if not _NUMBER.fullmatch(queue_id) or not _NUMBER.fullmatch(offset):
        return None
    transaction = fields.get(b"transactionId")
    return _Stored(
        int(whole.group(whole.re.groups)),
        fields[b"msgId"].decode(),
        int(queue_id),
        int(offset),
        None if transaction is None else transaction.decode(),
    )
