from collections.abc import Mapping, Sequence
from typing import Any

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel.batches import (
    Batchable,
    BatchLimits,
    EncodedBatch,
    ItemSizes,
    OwnProperties,
    StoredItem,
)
from gantrymq.kernel.dispatching import QueueTail as QueueTail
from gantrymq.kernel.dispatching import Tail
from gantrymq.kernel.keys import KeyRows as KeyRows
from gantrymq.kernel.pulled import Cut
from gantrymq.kernel.records import Buffer, ItemRun, RecordItem, Selected, Walk, Walked
from gantrymq.kernel.requests import EncodedSend, SendParts
from gantrymq.kernel.runs import EntryRun
from gantrymq.kernel.send_runs import Request, SendAccess, SendRules
from gantrymq.kernel.send_runs import SendRun as SendRun
from gantrymq.kernel.sends import PlainSend
from gantrymq.kernel.signing import HmacSha1 as HmacSha1
from gantrymq.kernel.syncing import SyncThread as SyncThread
from gantrymq.model import SendResult
from gantrymq.protocol.command import Command

def crc32(data: Buffer, /) -> int: ...
def cut_commands(
    buffer: Buffer, size_max: int, count_max: int
) -> tuple[list[Command], int, ProtocolError | None]: ...
def cut_requests(
    buffer: Buffer,
    size_max: int,
    count_max: int,
    rules: SendRules | None,
    born_host: bytes,
    access: SendAccess | None = None,
) -> tuple[list[Request], int, int, ProtocolError | None]: ...
def send_answer(
    codec: int,
    code: int,
    opaque: int,
    msg_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str = "",
) -> bytes: ...
def read_send(ext: Mapping[str, str], tail: bytes) -> PlainSend | None: ...
def stored_answer(
    codec: int,
    code: int,
    opaque: int,
    store_host: bytes,
    position: int,
    queue_id: int,
    queue_offset: int,
    transaction_id: str,
) -> bytes: ...
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
) -> bytes: ...
def encode_records(
    items: Sequence[RecordItem | ItemRun], base: int, store_ms: int, store_host: bytes
) -> tuple[bytes, list[int]]: ...
def walk_records(buffer: Buffer, base: int, room: int, check: bool) -> Walk: ...
def find_property(properties: bytes, name: bytes) -> bytes | None: ...
def index_keys(properties: bytes) -> list[bytes]: ...
def java_hash(text: str | bytes) -> int: ...
def hash_keys(keys: Sequence[bytes]) -> list[int]: ...
def select_entries(
    entries: Buffer,
    tag_codes: frozenset[int] | None,
    count_max: int,
    bytes_max: int,
    log_min: int,
) -> Selected: ...
def read_warm(fd: int, runs: Sequence[tuple[int, int]], base: int) -> bytes | None: ...
def cut_records(data: bytes, check: bool = False) -> tuple[list[Cut], ProtocolError | None]: ...
def encode_batch(
    messages: Sequence[Batchable],
    start: int,
    stem: str,
    counter: int,
    limits: BatchLimits,
    own: OwnProperties,
) -> EncodedBatch: ...
def batch_items(body: bytes, tail: bytes, count_max: int) -> list[StoredItem]: ...
def measure_items(items: Sequence[StoredItem]) -> ItemSizes: ...
def dispatch_records(
    data: bytes,
    base: int,
    queues: Mapping[tuple[bytes, int], Tail],
    rows: KeyRows | None,
    rows_from: int,
) -> tuple[int, list[Tail], int]: ...
def publish_queues(queues: list[Tail], tail_bytes_max: int) -> list[Tail]: ...
def entry_runs(records: list[Walked]) -> list[EntryRun]: ...
def offset_msg_ids(store_host: bytes, offsets: Sequence[int]) -> str: ...
def encode_sends(
    messages: Sequence[Batchable],
    parts: Sequence[SendParts],
    opaques: Sequence[int],
    born_ms: int,
    stem: str,
    counter: int,
) -> list[EncodedSend]: ...
def cut_stored(
    buffer: Buffer, calls: dict[int, Any], kind: type
) -> tuple[list[tuple[Any, SendResult]], int]: ...
