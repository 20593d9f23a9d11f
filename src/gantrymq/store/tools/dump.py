"""Records of a log, and the contents of single files of a store, as rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel import FILLER_SIZE
from gantrymq.protocol import compression, properties
from gantrymq.protocol.record import StoredMessage, decode_record
from gantrymq.store.audit.against_ext import UnitFiles
from gantrymq.store.audit.scope import scope_of
from gantrymq.store.audit.survey import good_records
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import IndexView, index_files
from gantrymq.store.files.mapped import QueueFiles
from gantrymq.store.queues.queueext import ADDRESS_MAX
from gantrymq.store.recovery import checkpoint
from gantrymq.store.tools.dledger import DLedgerFolder

Row = dict[str, Any]
ENTRIES_PER_READ: Final = 1 << 14


@dataclass(frozen=True, kw_only=True)
class RecordQuery:
    """Which records are wanted; None stands for all."""

    first: int | None = None
    """A log offset, or with `queue_id` an offset of that queue."""
    end: int | None = None
    """The first offset that is not wanted."""
    topic: str | None = None
    queue_id: int | None = None
    key: str | None = None

    def wants(self, message: StoredMessage) -> bool:
        """Whether a record is one of those."""
        if self.topic is not None and message.topic != self.topic:
            return False
        return self.key is None or self.key in keys_of(message)


def keys_of(message: StoredMessage) -> list[str]:
    """The keys that a message is found by, its unique id among them."""
    found = message.properties
    unique = found.get(properties.UNIQ_KEY)
    return [*([unique] if unique else []), *found.get(properties.KEYS, "").split()]


def records(folder: StoreFolder, query: RecordQuery) -> Iterator[StoredMessage]:
    """The wanted records, in the order of the log, or of the queue if one is named."""
    if query.queue_id is None:
        yield from _in_log(folder, query)
        return
    if query.topic is None:
        raise StoreError("a queue is one of a topic: name the topic as well")
    yield from _in_queue(folder, query, folder.queue(query.topic, query.queue_id))


def ledger_records(ledger: DLedgerFolder, query: RecordQuery) -> Iterator[StoredMessage]:
    """The same of a store whose log is DLedger's."""
    if query.queue_id is not None:
        yield from records(ledger.folder, query)
        return
    for each in ledger.entries([]):
        if each.record is None or each.record[3] < (query.first or 0):
            continue
        if query.end is not None and each.record[3] >= query.end:
            return
        message = decode_record(each.data.tobytes())
        if query.wants(message):
            yield message


def _in_log(folder: StoreFolder, query: RecordQuery) -> Iterator[StoredMessage]:
    log = folder.log
    start = max(log.min, query.first or 0)
    stop = log.limit if query.end is None else min(query.end, log.limit)
    if scope_of(folder.directory, log.directory).dispatched is None:
        # RocketMQ leaves old bytes behind the end of a log that was cut.
        stop = min(stop, scope_of(folder.directory, log.directory).end)
    wanted = query.topic.encode() if query.topic is not None else None
    for base, view, found in good_records(log, start, stop):
        for topic, _, _, position, size, *_ in found:
            if (wanted is not None and topic != wanted) or not start <= position < stop:
                continue
            message = decode_record(view[position - base : position - base + size].tobytes())
            if query.wants(message):
                yield message


def _in_queue(
    folder: StoreFolder, query: RecordQuery, files: QueueFiles
) -> Iterator[StoredMessage]:
    written = files.written()
    at = max(files.first_at(folder.log.min, written), query.first or 0)
    stop = written if query.end is None else min(query.end, written)
    while at < stop:
        entries = files.whole(at, min(stop, at + ENTRIES_PER_READ))
        for position, size, _ in entries.tolist():
            message = _at(folder, position, size)
            if message is not None and query.wants(message):
                yield message
        at += entries.size


def _at(folder: StoreFolder, position: int, size: int) -> StoredMessage | None:
    if size in (0, FILLER_SIZE):
        return None
    base = folder.log.base_of(position)
    data = folder.log.file(base)[position - base : position - base + size].tobytes()
    try:
        return decode_record(data)
    except ProtocolError:
        return None  # what is damaged is for `verify` to report


def record_row(message: StoredMessage) -> Row:
    """A record as a row; the body is bytes, as it was sent if it can be unpacked."""
    found = message.properties
    try:
        body = compression.decompress(message.body, message.sys_flag)
    except ProtocolError:
        body = message.body
    return {
        "position": message.physical_offset,
        "size": message.size,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": found.get(properties.UNIQ_KEY) or message.offset_message_id,
        "tags": found.get(properties.TAGS),
        "keys": found.get(properties.KEYS, "").split(),
        "body": body,
        "storeTime": message.store_ms,
        "bornTime": message.born_ms,
        "bornHost": f"{message.born_host[0]}:{message.born_host[1]}",
        "sysFlag": message.sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "properties": found,
    }


def file_rows(folder: StoreFolder, path: Path) -> Iterator[Row]:
    """The contents of one file of a store: entries, an index, a checkpoint."""
    root = Path(folder.directory)
    whole = path if path.is_absolute() or path.exists() else root / path
    if not whole.is_file():
        raise StoreError(f"{path} is no file of {root}")
    parts = whole.resolve().parts
    if whole.name == "checkpoint":
        yield from _checkpoint_rows(whole)
    elif "consumequeue" in parts:
        yield from _entry_rows(whole, folder)
    elif "index" in parts:
        yield from _index_rows(whole, folder)
    else:
        raise StoreError(
            f"{whole} is no file of queue entries, no index file and no checkpoint; tables below "
            "config are text, and records are shown without --file"
        )


def _checkpoint_rows(path: Path) -> Iterator[Row]:
    known = checkpoint.decode(path.read_bytes())
    for name in known.__struct_fields__:
        yield {"field": name, "value": getattr(known, name)}


def _entry_rows(path: Path, folder: StoreFolder) -> Iterator[Row]:
    files = QueueFiles(str(path.parent), folder.file_entries)
    first = int(path.name) * folder.file_entries // files.file_bytes
    units = UnitFiles(str(path.parent).replace("consumequeue", "consumequeue_ext"))
    stop = min(files.written(), first + folder.file_entries)
    for number, (position, size, code) in enumerate(files.read(first, stop).tolist()):
        row: Row = {"queueOffset": first + number, "position": position, "size": size, "code": code}
        if code <= ADDRESS_MAX:
            unit = units.at(code)
            row["unit"] = (
                None if unit is None else [unit.tag_code, unit.store_ms, unit.bitmap.hex()]
            )
        yield row


def _index_rows(path: Path, folder: StoreFolder) -> Iterator[Row]:
    for view in index_files(folder.directory):
        if Path(view.path).name == path.name:
            yield from _rows_of(view)


def _rows_of(view: IndexView) -> Iterator[Row]:
    for number, (key_hash, at, seconds, previous) in enumerate(view.rows.tolist(), 1):
        yield {
            "entry": number,
            "hash": key_hash,
            "position": at,
            "storeTime": view.header.begin_ms + seconds * 1000,
            "previous": previous,
        }
