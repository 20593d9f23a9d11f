"""Trace records: what clients write down about a message, in the text form of RocketMQ's clients.

Fields are joined by 0x01 and a record ends with 0x02. A missing text is written as `null`. Writers
of different ages leave fields out or add some at the end; the reader accepts all of these forms.

GantryMQ's clients end each trace message with a `TraceCount`, a record that RocketMQ's readers do
not know and skip: it numbers the records of one writer, so that a reader can tell how many are
missing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

FIELD_END, RECORD_END = "\x01", "\x02"
NULL: Final = "null"
COUNT_NAME: Final = "TraceCount"
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


class ConsumeReturnType(IntEnum):
    """How a consumption ended."""

    SUCCESS = 0
    TIMEOUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields of all records; empty texts are unknown."""

    msg_id: str
    """The message's unique id."""
    at_ms: int = 0
    """When it happened."""
    region: str = ""
    """The broker's region; DefaultRegion unless set."""
    group: str = ""
    """The client's group."""
    keys: str = ""
    """The message's keys, separated by spaces."""


class Pub(Record, frozen=True, kw_only=True, gc=False):
    """A message was sent. `ok` is False when it was stored less safely than asked for."""

    topic: str
    """The message's topic."""
    tags: str = ""
    """The message's tag."""
    store_host: str = ""
    """The broker's address."""
    body_bytes: int = 0
    """Size of the body."""
    cost_ms: int = 0
    """How long the send took."""
    message_type: int = MessageType.NORMAL
    """A number of `MessageType`."""
    offset_msg_id: str = ""
    """The id that the broker gave."""
    ok: bool = True
    """Whether it was stored as safely as asked for."""
    client_host: str = ""
    """Only older writers name it."""


class SubBefore(Record, frozen=True, kw_only=True, gc=False):
    """A message was handed to a consumer. `request_id` leads to the record of its end."""

    request_id: str
    """The same in both records of one consumption."""
    retry_times: int = 0
    """How often the message was retried before."""


class SubAfter(Record, frozen=True, kw_only=True, gc=False):
    """A consumption ended. Writers of cloud services leave out time and group."""

    request_id: str
    """The same in both records of one consumption."""
    cost_ms: int = 0
    """How long the handler took."""
    ok: bool = True
    """Whether the message was acknowledged."""
    outcome: int = ConsumeReturnType.SUCCESS
    """A number of `ConsumeReturnType`."""


class EndTransaction(Record, frozen=True, kw_only=True, gc=False):
    """A producer decided on a half message."""

    topic: str
    """The message's topic."""
    tags: str = ""
    """The message's tag."""
    store_host: str = ""
    """The broker's address."""
    message_type: int = MessageType.COMMIT
    """A number of `MessageType`."""
    transaction_id: str = ""
    """The transaction's id, which is the message's unique id."""
    state: str = "UNKNOW"
    """COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW."""
    from_check: bool = False
    """Whether a check-back asked for the decision."""


class Recall(Record, frozen=True, kw_only=True, gc=False):
    """A delayed message was recalled."""

    topic: str
    """The message's topic."""
    ok: bool = True
    """Whether the broker accepted it."""


class TraceCount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which records of a writer this trace message holds, and how many the writer dropped.

    The messages of one writer follow each other without a hole in `first` and `records`; a hole is
    a trace message that was not stored, or is no longer there.
    """

    at_ms: int
    """When the trace message was written."""
    group: str
    """The client's group."""
    side: str
    """PRODUCE or CONSUME."""
    client_id: str
    """The client that writes."""
    begun_ms: int
    """When the writer began; with side and client id it tells writers apart."""
    first: int
    """How many records this writer wrote into earlier messages."""
    records: int
    """Those of this message."""
    dropped: int = 0
    """Records dropped since the writer began, because too many waited."""
    waiting: int = 0
    """Records that were to follow when this message was written."""
    closed: bool = False
    """Nothing follows: the writer was closed in order."""
    met: int = 0
    """How many members of its group, itself included, a consumer has met since it began."""
    members: tuple[str, ...] = ()
    """The client ids of those that no earlier message of this writer names."""


class Decoded(NamedTuple):
    """The records of one trace message, and how many could not be read."""

    records: list[Record]
    unreadable: int


def encode(record: Record | TraceCount) -> str:
    """One record as RocketMQ's clients write it."""
    return _WRITERS[type(record)](record)


def index_keys(records: Sequence[Record]) -> list[str]:
    """The index keys of a trace message: the ids and keys of the messages in its records."""
    found = dict.fromkeys(record.msg_id for record in records)
    for record in records:
        found |= dict.fromkeys(record.keys.split())
    return list(found)


def decode(body: bytes) -> Decoded:
    """All records of a trace message; unreadable ones are counted and left out."""
    records, unreadable = [], 0
    for name, fields in _lines(body):
        read = _READERS.get(name)
        try:
            if read is None:
                raise ValueError(name)
            records.append(read([("" if field == NULL else field) for field in fields]))
        except (ValueError, IndexError):
            if name != COUNT_NAME:
                unreadable += 1
    return Decoded(records, unreadable)


def decode_counts(body: bytes) -> list[TraceCount]:
    """The counts in a trace message; RocketMQ's clients write none."""
    if COUNT_NAME.encode() not in body:
        return []
    found = []
    for name, fields in _lines(body):
        if name == COUNT_NAME:
            with suppress(ValueError, IndexError, msgspec.DecodeError):
                found.append(_read_count(fields))
    return found


def _lines(body: bytes) -> Iterator[tuple[str, list[str]]]:
    for line in body.decode("utf-8", "replace").split(RECORD_END):
        if line:
            name, *fields = line.split(FIELD_END)
            yield name, fields


# The order of the fields, once for writing and once for reading. Writing is one formatted text for
# each kind, because busy clients write tens of thousands of records a second.


def _write_pub(r: Pub) -> str:
    return (
        f"Pub\x01{r.at_ms}\x01{r.region or NULL}\x01{r.group or NULL}\x01{r.topic or NULL}\x01"
        f"{r.msg_id or NULL}\x01{r.tags or NULL}\x01{r.keys or NULL}\x01{r.store_host or NULL}\x01"
        f"{r.body_bytes}\x01{r.cost_ms}\x01{int(r.message_type)}\x01{r.offset_msg_id or NULL}\x01"
        f"{_word(r.ok)}\x02"
    )


def _write_before(r: SubBefore) -> str:
    return (
        f"SubBefore\x01{r.at_ms}\x01{r.region or NULL}\x01{r.group or NULL}\x01"
        f"{r.request_id or NULL}\x01{r.msg_id or NULL}\x01{r.retry_times}\x01{r.keys or NULL}\x02"
    )


def _write_after(r: SubAfter) -> str:
    return (
        f"SubAfter\x01{r.request_id or NULL}\x01{r.msg_id or NULL}\x01{r.cost_ms}\x01"
        f"{_word(r.ok)}\x01{r.keys or NULL}\x01{int(r.outcome)}\x01{r.at_ms}\x01"
        f"{r.group or NULL}\x02"
    )


def _write_end(r: EndTransaction) -> str:
    return (
        f"EndTransaction\x01{r.at_ms}\x01{r.region or NULL}\x01{r.group or NULL}\x01"
        f"{r.topic or NULL}\x01{r.msg_id or NULL}\x01{r.tags or NULL}\x01{r.keys or NULL}\x01"
        f"{r.store_host or NULL}\x01{int(r.message_type)}\x01{r.transaction_id or NULL}\x01"
        f"{r.state or NULL}\x01{_word(r.from_check)}\x02"
    )


def _write_recall(r: Recall) -> str:
    return (
        f"Recall\x01{r.at_ms}\x01{r.region or NULL}\x01{r.group or NULL}\x01{r.topic or NULL}\x01"
        f"{r.msg_id or NULL}\x01{_word(r.ok)}\x02"
    )


def _write_count(r: TraceCount) -> str:
    return (
        f"TraceCount\x01{r.at_ms}\x01{r.group}\x01{r.side}\x01{r.client_id}\x01{r.begun_ms}\x01"
        f"{r.first}\x01{r.records}\x01{r.dropped}\x01{r.waiting}\x01{_word(r.closed)}\x01{r.met}\x01"
        f"{msgspec.json.encode(r.members).decode()}\x02"
    )


def _word(truth: bool) -> str:
    return "true" if truth else "false"


def _read_pub(f: list[str]) -> Pub:
    # The first writers had no offset id; later ones add the client host at the end.
    old = len(f) == 12
    return Pub(
        at_ms=int(f[0]),
        region=f[1],
        group=f[2],
        topic=f[3],
        msg_id=f[4],
        tags=f[5],
        keys=f[6],
        store_host=f[7],
        body_bytes=int(f[8]),
        cost_ms=int(f[9]),
        message_type=int(f[10]),
        offset_msg_id="" if old else f[11],
        ok=_truth(f[11] if old else f[12]),
        client_host=_optional(f, 13),
    )


def _read_before(f: list[str]) -> SubBefore:
    return SubBefore(
        at_ms=int(f[0]),
        region=f[1],
        group=f[2],
        request_id=f[3],
        msg_id=f[4],
        retry_times=int(f[5]),
        keys=_optional(f, 6),
    )


def _read_after(f: list[str]) -> SubAfter:
    return SubAfter(
        request_id=f[0],
        msg_id=f[1],
        cost_ms=int(f[2]),
        ok=_truth(f[3]),
        keys=_optional(f, 4),
        outcome=int(_optional(f, 5) or ConsumeReturnType.SUCCESS),
        at_ms=int(_optional(f, 6) or 0),
        group=_optional(f, 7),
    )


def _read_end(f: list[str]) -> EndTransaction:
    return EndTransaction(
        at_ms=int(f[0]),
        region=f[1],
        group=f[2],
        topic=f[3],
        msg_id=f[4],
        tags=f[5],
        keys=f[6],
        store_host=f[7],
        message_type=int(f[8]),
        transaction_id=f[9],
        state=f[10],
        from_check=_truth(_optional(f, 11)),
    )


def _read_recall(f: list[str]) -> Recall:
    return Recall(
        at_ms=int(f[0]), region=f[1], group=f[2], topic=f[3], msg_id=f[4], ok=_truth(f[5])
    )


def _read_count(f: list[str]) -> TraceCount:
    return TraceCount(
        at_ms=int(f[0]),
        group=f[1],
        side=f[2],
        client_id=f[3],
        begun_ms=int(f[4]),
        first=int(f[5]),
        records=int(f[6]),
        dropped=int(f[7]),
        waiting=int(f[8]),
        closed=_truth(f[9]),
        met=int(_optional(f, 10) or 0),
        members=msgspec.json.decode(_optional(f, 11) or "[]", type=tuple[str, ...]),
    )


def _optional(fields: list[str], at: int) -> str:
    return fields[at] if at < len(fields) else ""


def _truth(text: str) -> bool:
    return text.lower() == "true"


_WRITERS: dict[type[Record | TraceCount], Callable[[Any], str]] = {
    Pub: _write_pub,
    SubBefore: _write_before,
    SubAfter: _write_after,
    EndTransaction: _write_end,
    Recall: _write_recall,
    TraceCount: _write_count,
}
_READERS: dict[str, Callable[[list[str]], Record]] = {
    "Pub": _read_pub,
    "SubBefore": _read_before,
    "SubAfter": _read_after,
    "EndTransaction": _read_end,
    "Recall": _read_recall,
}
