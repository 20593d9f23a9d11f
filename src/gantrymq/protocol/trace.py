"""Trace records: what clients write down about a message, in the text form of RocketMQ's clients.

Fields are joined by 0x01 and a record ends with 0x02. A missing text is written as `null`. Writers
of different ages leave fields out or add some at the end; the reader takes what is there.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

FIELD_END, RECORD_END = "\x01", "\x02"
NULL: Final = "null"
DEFAULT_REGION: Final = "DefaultRegion"

STATES: Final = {
    "commit": "COMMIT_MESSAGE",
    "rollback": "ROLLBACK_MESSAGE",
    "unknown": "UNKNOW",
}
"""What a producer decided, in RocketMQ's words."""


class MessageType(IntEnum):
    """What kind of message was sent."""

    NORMAL = 0
    HALF = 1
    COMMIT = 2
    DELAY = 3
    ORDER = 4


class Outcome(IntEnum):
    """How a consumption ended."""

    SUCCESS = 0
    TIMEOUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What all records tell; empty texts are unknown."""

    msg_id: str
    at_ms: int = 0
    region: str = ""
    group: str = ""
    keys: str = ""
    """The message's keys, separated by spaces."""


class Pub(Record, frozen=True, kw_only=True):
    """A message was sent. `ok` is False when it was stored less safely than asked for."""

    topic: str
    tags: str = ""
    store_host: str = ""
    body_bytes: int = 0
    cost_ms: int = 0
    message_type: int = MessageType.NORMAL
    offset_msg_id: str = ""
    ok: bool = True
    client_host: str = ""
    """Only older writers name it."""


class SubBefore(Record, frozen=True, kw_only=True):
    """A message was handed to a consumer. `request_id` leads to the record of its end."""

    request_id: str
    retry_times: int = 0


class SubAfter(Record, frozen=True, kw_only=True):
    """A consumer is done with a message. The clouds' writers leave out time and group."""

    request_id: str
    cost_ms: int = 0
    ok: bool = True
    outcome: int = Outcome.SUCCESS


class EndTransaction(Record, frozen=True, kw_only=True):
    """A producer decided on a half message."""

    topic: str
    tags: str = ""
    store_host: str = ""
    message_type: int = MessageType.COMMIT
    transaction_id: str = ""
    state: str = "UNKNOW"
    """COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW."""
    from_check: bool = False


class Recall(Record, frozen=True, kw_only=True):
    """A delayed message was called back."""

    topic: str
    ok: bool = True


class Decoded(NamedTuple):
    """The records of one trace message, and how many could not be read."""

    records: list[Record]
    unreadable: int


def encode(record: Record) -> str:
    """One record as RocketMQ's clients write it."""
    name, fields = type(record).__name__, _WRITERS[type(record)](record)
    return FIELD_END.join((name, *map(_text, fields))) + RECORD_END


def index_keys(records: Sequence[Record]) -> list[str]:
    """What a trace message is found by: the ids and the keys of the messages it tells about."""
    found = dict.fromkeys(record.msg_id for record in records)
    for record in records:
        found |= dict.fromkeys(record.keys.split())
    return list(found)


def decode(body: bytes) -> Decoded:
    """All records of a trace message; what no writer known writes is counted and left out."""
    records, unreadable = [], 0
    for line in body.decode("utf-8", "replace").split(RECORD_END):
        if not line:
            continue
        name, *fields = line.split(FIELD_END)
        read = _READERS.get(name)
        try:
            if read is None:
                raise ValueError(name)
            records.append(read([("" if field == NULL else field) for field in fields]))
        except (ValueError, IndexError):
            unreadable += 1
    return Decoded(records, unreadable)


# the order of the fields, once for writing and once for reading


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else str(value) or NULL


def _write_pub(r: Pub) -> tuple[object, ...]:
    return (
        r.at_ms, r.region, r.group, r.topic, r.msg_id, r.tags, r.keys, r.store_host, r.body_bytes,
        r.cost_ms, r.message_type, r.offset_msg_id, r.ok,
    )  # fmt: skip


def _write_before(r: SubBefore) -> tuple[object, ...]:
    return r.at_ms, r.region, r.group, r.request_id, r.msg_id, r.retry_times, r.keys


def _write_after(r: SubAfter) -> tuple[object, ...]:
    return r.request_id, r.msg_id, r.cost_ms, r.ok, r.keys, r.outcome, r.at_ms, r.group


def _write_end(r: EndTransaction) -> tuple[object, ...]:
    return (
        r.at_ms, r.region, r.group, r.topic, r.msg_id, r.tags, r.keys, r.store_host,
        r.message_type, r.transaction_id, r.state, r.from_check,
    )  # fmt: skip


def _write_recall(r: Recall) -> tuple[object, ...]:
    return r.at_ms, r.region, r.group, r.topic, r.msg_id, r.ok


def _read_pub(f: list[str]) -> Pub:
    # The first writers had no offset id, later ones add where they run at the end.
    old = len(f) == 12
    return Pub(
        at_ms=int(f[0]), region=f[1], group=f[2], topic=f[3], msg_id=f[4], tags=f[5], keys=f[6],
        store_host=f[7], body_bytes=int(f[8]), cost_ms=int(f[9]), message_type=int(f[10]),
        offset_msg_id="" if old else f[11], ok=_truth(f[11] if old else f[12]),
        client_host=_optional(f, 13),
    )  # fmt: skip


def _read_before(f: list[str]) -> SubBefore:
    return SubBefore(
        at_ms=int(f[0]), region=f[1], group=f[2], request_id=f[3], msg_id=f[4],
        retry_times=int(f[5]), keys=_optional(f, 6),
    )  # fmt: skip


def _read_after(f: list[str]) -> SubAfter:
    return SubAfter(
        request_id=f[0], msg_id=f[1], cost_ms=int(f[2]), ok=_truth(f[3]), keys=_optional(f, 4),
        outcome=int(_optional(f, 5) or Outcome.SUCCESS), at_ms=int(_optional(f, 6) or 0),
        group=_optional(f, 7),
    )  # fmt: skip


def _read_end(f: list[str]) -> EndTransaction:
    return EndTransaction(
        at_ms=int(f[0]), region=f[1], group=f[2], topic=f[3], msg_id=f[4], tags=f[5], keys=f[6],
        store_host=f[7], message_type=int(f[8]), transaction_id=f[9], state=f[10],
        from_check=_truth(_optional(f, 11)),
    )  # fmt: skip


def _read_recall(f: list[str]) -> Recall:
    return Recall(
        at_ms=int(f[0]), region=f[1], group=f[2], topic=f[3], msg_id=f[4], ok=_truth(f[5])
    )


def _optional(fields: list[str], at: int) -> str:
    return fields[at] if at < len(fields) else ""


def _truth(text: str) -> bool:
    return text.lower() == "true"


_WRITERS: dict[type[Record], Callable[[Any], tuple[object, ...]]] = {
    Pub: _write_pub,
    SubBefore: _write_before,
    SubAfter: _write_after,
    EndTransaction: _write_end,
    Recall: _write_recall,
}
_READERS: dict[str, Callable[[list[str]], Record]] = {
    "Pub": _read_pub,
    "SubBefore": _read_before,
    "SubAfter": _read_after,
    "EndTransaction": _read_end,
    "Recall": _read_recall,
}
