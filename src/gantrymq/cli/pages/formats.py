"""The tables of docs/formats.md: `python -m gantrymq.cli.pages.formats docs/formats.md`.

Each table comes from the declaration that the code itself packs and unpacks with. In the page a
line `<!-- table NAME -->` stands above the table of that name; the text between is the page's own.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from gantrymq.base.layout import byte_fields
from gantrymq.broker.pop import checkpoints
from gantrymq.broker.publishing import notes
from gantrymq.broker.waiting.timer import checkpoint as timercheck
from gantrymq.cli.pages.field_docs import field_docs
from gantrymq.kernel import FILLER_SIZE
from gantrymq.kernel.records import QueueEntry
from gantrymq.protocol import (
    batch,
    command,
    compression,
    ids,
    pop,
    publishing,
    recall,
    record,
    trace,
)
from gantrymq.replication.ha import wire
from gantrymq.store.config import StoreConfig
from gantrymq.store.index import index_file
from gantrymq.store.queues import queueext
from gantrymq.store.recovery import checkpoint

_HOSTS_V4: Final = {"born": "8s", "store": "8s"}
_TYPE_NAMES: Final[dict[Any, str]] = {
    int: "number",
    str: "text",
    bool: "true or false",
    list[int]: "list of numbers",
    tuple[str, ...]: "list of texts",
    str | None: "text",
    publishing.EpochDecision: "object",
    publishing.Share: "list",
}


def byte_table(kind: type[Any], formats: Mapping[str, str] | None = None) -> str:
    """Bytes at fixed places."""
    docs = field_docs(kind)
    rows = [
        (str(field.at), field.type, f"`{field.name}`", docs[field.name])
        for field in byte_fields(kind, formats)
    ]
    return table(("at", "type", "field", "meaning"), rows)


def word_table(kind: type[Any], first: Sequence[tuple[str, str]] = ()) -> str:
    """Words separated by spaces, in the order of a named tuple's fields."""
    docs = field_docs(kind)
    words = [*first, *((f"`{name}`", docs[name]) for name in kind._fields)]
    return table(
        ("word", "field", "meaning"),
        [(str(number), name, text) for number, (name, text) in enumerate(words, 1)],
    )


def member_table(kind: type[msgspec.Struct]) -> str:
    """Members of a JSON object, or the places of a JSON array, in the order they are written."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    rows = [
        (f"`{written}`", _TYPE_NAMES[hints[name]], docs[name])
        for name, written in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    ]
    return table(("member", "type", "meaning"), rows)


def trace_table(kind: type[Any]) -> str:
    """Fields of a trace record, found by writing it: which place changes with which field."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    probes: dict[Any, tuple[Any, Any]] = {
        int: (1, 2),
        str: ("a", "b"),
        bool: (True, False),
        tuple[str, ...]: (("a",), ("b",)),
    }
    plain = {name: probes[hints[name]][0] for name in kind.__struct_fields__}
    before = _trace_fields(kind(**plain))
    rows = [("1", f"`{before[0]}`", "text", "Says what kind of record this is.")]
    places: dict[int, str] = {}
    for name in kind.__struct_fields__:
        after = _trace_fields(kind(**plain | {name: probes[hints[name]][1]}))
        places |= {at: name for at, text in enumerate(after) if text != before[at]}
    for at, name in sorted(places.items()):
        rows.append((str(at + 1), f"`{name}`", _TYPE_NAMES[hints[name]], docs[name]))
    assert [row[0] for row in rows] == [str(at + 1) for at in range(len(before))]
    return table(("place", "field", "type", "meaning"), rows)


def _trace_fields(made: Any) -> list[str]:
    return trace.encode(made).removesuffix(trace.RECORD_END).split(trace.FIELD_END)


def value_table(rows: Iterable[tuple[str, str, str]]) -> str:
    """Constants: their names, values and meanings."""
    return table(("name", "value", "meaning"), [(f"`{n}`", v, text) for n, v, text in rows])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines).replace("| --- ", "|---")


def _note_table() -> str:
    rows = []
    for kind in notes.PROPERTIES:
        tag = kind.__struct_config__.tag
        docs = field_docs(kind)
        doc = (kind.__doc__ or "").splitlines()[0]
        rows.append((f"`{tag}`", "", doc))
        rows += [(f"`{tag}`", f"`{name}`", docs[name]) for name in kind.__struct_fields__]
    return table(("type", "member", "meaning"), rows)


def _hex(bits: int) -> str:
    return f"`0x{bits:02X}`"


def _hex32(number: int) -> str:
    return f"`0x{number & 0xFFFF_FFFF:08X}`"


def _host_table() -> str:
    rows = []
    for bits, layout in record.LAYOUTS.items():
        born = "IPv6" if bits & record.BORN_V6 else "IPv4"
        store = "IPv6" if bits & record.STORE_V6 else "IPv4"
        rows.append((born, store, _hex(bits), str(layout.size)))
    return table(("born host", "store host", "bits of `sys_flag`", "bytes of the head"), rows)


def _size_table() -> str:
    full, dev = StoreConfig.rocketmq(""), StoreConfig.dev("")
    names = ("segment_bytes", "queue_file_entries", "index_slots", "index_entries",
             "ext_file_bytes")  # fmt: skip
    rows = [(f"`{n}`", f"{getattr(full, n):,}", f"{getattr(dev, n):,}") for n in names]
    return table(("size", "RocketMQ's", "`storeProfile=dev`"), rows)


TABLES: Final[dict[str, Callable[[], str]]] = {
    "frame": lambda: byte_table(command.FramePrefix),
    "frame values": lambda: value_table([
        ("JSON_CODEC", str(command.JSON_CODEC), "The header is JSON."),
        ("BINARY_CODEC", str(command.BINARY_CODEC), "The header is RocketMQ's binary one."),
        ("RESPONSE_FLAG", str(command.RESPONSE_FLAG), "Bit of `flag`: this is an answer."),
        ("ONEWAY_FLAG", str(command.ONEWAY_FLAG), "Bit of `flag`: nobody waits for an answer."),
        ("FRAME_BYTES_MAX", f"{command.FRAME_BYTES_MAX:,}",
         "A longer frame ends the connection."),
    ]),
    "binary header": lambda: byte_table(command.BinaryHead),
    "batch": lambda: byte_table(batch.BatchItemHead),
    "record head": lambda: byte_table(record.RecordHead, _HOSTS_V4),
    "record hosts": _host_table,
    "record values": lambda: value_table([
        ("MAGIC_V1", _hex32(record.MAGIC_V1), "A record of version 1."),
        ("MAGIC_V2", _hex32(record.MAGIC_V2), "A record of version 2."),
        ("MAGIC_BLANK", _hex32(record.MAGIC_BLANK), "The rest of the file is unused."),
        ("V1_TOPIC_BYTES_MAX", str(record.V1_TOPIC_BYTES_MAX),
         "Longer topics need version 2."),
        ("PROPERTIES_BYTES_MAX", str(record.PROPERTIES_BYTES_MAX), "Bytes of properties."),
        ("RECORD_BYTES_MIN", str(record.RECORD_BYTES_MIN), "The shortest record."),
    ]),
    "sys flag": lambda: value_table([
        ("COMPRESSED", _hex(record.COMPRESSED), "The body is compressed."),
        ("TRANSACTION_PREPARED", _hex(record.TRANSACTION_PREPARED),
         "In a send: a half message. Stored half messages lie in a system topic without this bit."),
        ("TRANSACTION_COMMIT", _hex(record.TRANSACTION_COMMIT),
         "The copy of a committed half message."),
        ("TRANSACTION_ROLLBACK", _hex(record.TRANSACTION_ROLLBACK),
         "Both bits: rolled back. Such a record has no queue entry and no key in the index."),
        ("BORN_V6", _hex(record.BORN_V6), "The born host is IPv6."),
        ("STORE_V6", _hex(record.STORE_V6), "The store host is IPv6."),
        ("LZ4", _hex(compression.LZ4), "Of the three bits `0x700`: compressed with LZ4."),
        ("ZSTD", _hex(compression.ZSTD), "Compressed with Zstandard."),
        ("ZLIB", _hex(compression.ZLIB), "Compressed with zlib, which is also meant by none."),
    ]),
    "ha report": lambda: byte_table(wire.HaReport),
    "ha transfer": lambda: byte_table(wire.HaTransferHead),
    "unique id": lambda: byte_table(ids.UniqueTail),
    "file sizes": _size_table,
    "queue entry": lambda: byte_table(QueueEntry),
    "queue values": lambda: value_table([
        ("FILLER_SIZE", _hex32(FILLER_SIZE), "As the size of an entry: there is no record."),
        ("ADDRESS_MAX", str(queueext.ADDRESS_MAX),
         "A tag code up to this is the address of a unit."),
    ]),
    "ext unit": lambda: byte_table(queueext.UnitHead),
    "ext values": lambda: value_table([
        ("ADDRESS_ZERO", str(queueext.ADDRESS_ZERO),
         "Added to the place of a unit in the row of files gives its address."),
        ("FILE_END", f"`0x{queueext.FILE_END.hex().upper()}`",
         "In place of a size: the next unit is in the next file."),
        ("END_BYTES", str(queueext.END_BYTES), "Always left free at the end of a file."),
        ("BITMAP_BYTES_MAX", str(queueext.BITMAP_BYTES_MAX), "The longest bitmap."),
    ]),
    "index header": lambda: byte_table(index_file.IndexHeader),
    "index entry": lambda: byte_table(index_file.IndexEntry),
    "checkpoint times": lambda: byte_table(checkpoint.CheckpointTimes),
    "checkpoint own": lambda: byte_table(checkpoint.CheckpointOwn),
    "timercheck": lambda: byte_table(timercheck.TimerNumbers),
    "timercheck own": lambda: byte_table(timercheck.TimerOwn),
    "trace Pub": lambda: trace_table(trace.Pub),
    "trace SubBefore": lambda: trace_table(trace.SubBefore),
    "trace SubAfter": lambda: trace_table(trace.SubAfter),
    "trace EndTransaction": lambda: trace_table(trace.EndTransaction),
    "trace Recall": lambda: trace_table(trace.Recall),
    "trace TraceCount": lambda: trace_table(trace.TraceCount),
    "trace values": lambda: value_table([
        *(("MessageType", str(int(kind)), kind.name) for kind in trace.MessageType),
        *(("ConsumeReturnType", str(int(kind)), kind.name) for kind in trace.ConsumeReturnType),
    ]),
    "pop handle": lambda: word_table(pop.Handle),
    "pop checkpoint": lambda: member_table(pop.CheckpointBody),
    "pop ack": lambda: member_table(pop.AckBody),
    "pop batch ack": lambda: member_table(pop.BatchAck),
    "pop values": lambda: value_table([
        ("CHECKPOINT_TAG", f"`{pop.CHECKPOINT_TAG}`", "Tag of a checkpoint."),
        ("ACK_TAG", f"`{pop.ACK_TAG}`", "Tag of the acknowledgement of one message."),
        ("BATCH_ACK_TAG", f"`{pop.BATCH_ACK_TAG}`", "Tag of that of several messages."),
        ("ORDER_REVIVE_QUEUE", str(pop.ORDER_REVIVE_QUEUE),
         "In place of a revive queue: popped in order."),
        ("MESSAGES_MAX", str(checkpoints.MESSAGES_MAX), "The most messages of a checkpoint."),
    ]),
    "notes": _note_table,
    "stretch": lambda: member_table(publishing.Stretch),
    "recall handle": lambda: word_table(
        recall.RecallHandle, [(f"`{recall.VERSION}`", "The version of the handle.")]
    ),
}  # fmt: skip
"""Every table by its name in the page."""

_PLACE: Final = re.compile(r"(<!-- table (.+) -->\n)(?:\|.*\n)*")


def filled(page: str) -> str:
    """The page with its tables printed anew."""
    return _PLACE.sub(lambda found: found[1] + TABLES[found[2]](), page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(filled(path.read_text()))
