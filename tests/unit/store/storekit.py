"""What the store's tests share: tiny files, a clock that obeys, a store that is easy to drive."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.offload import InlineOffload
from gantrymq.kernel import walk_records
from gantrymq.protocol import properties as props
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer, Syncer
from gantrymq.store.shared import StorePorts

HOST = encode_host("127.0.0.1", 10911)
BORN = encode_host("10.0.0.2", 50000)
NEVER_MS = 10**9
START_MS = 1_700_000_000_000
FOREVER = 1 << 62


class ManualClock:
    """Time that passes when a test says so."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


def tiny(directory: str = "store", **changes: Any) -> StoreConfig:
    """Files of a few KiB, and no background work unless a test asks for it."""
    config = StoreConfig(
        directory=directory,
        segment_bytes=8192,
        queue_file_entries=8,
        index_slots=16,
        index_entries=32,
        flush="SYNC_FLUSH",
        flush_interval_ms=NEVER_MS,
        queue_write_interval_ms=NEVER_MS,
        clean_interval_ms=NEVER_MS,
        judge_by_free_bytes=True,
    )
    return msgspec.structs.replace(config, **changes)


async def open_store(
    disk: Disk,
    config: StoreConfig | None = None,
    *,
    clock: ManualClock | None = None,
    syncer: Syncer | None = None,
    host: bytes = HOST,
) -> Store:
    """Open a store with inline parts."""
    ports = StorePorts(disk, clock or ManualClock(), InlineOffload(), syncer or InlineSyncer())
    return await Store.open(config or tiny(), ports, store_host=host)


def message(
    topic: str = "orders", queue_id: int = 0, body: bytes = b"hello", **changes: Any
) -> Append:
    """An append with sensible fields; `tags`, `keys` and `unique` become properties."""
    names = {"tags": "TAGS", "keys": "KEYS", "unique": "UNIQ_KEY", "delay": "DELAY"}
    properties = {word: str(changes.pop(name)) for name, word in names.items() if name in changes}
    changes.setdefault("properties", props.encode(properties).encode())
    return Append(topic, queue_id, body, born_ms=START_MS - 5, born_host=BORN, **changes)


async def put(store: Store, *appends: Append) -> list[Append]:
    """Put messages in one turn and wait until each is answered."""
    answered = asyncio.Event()
    left = len(appends)

    def reply(append: Append) -> None:
        nonlocal left
        left -= 1
        if not left:
            answered.set()

    for append in appends:
        append.reply = reply
        store.put(append)
    await asyncio.wait_for(answered.wait(), 20)
    return list(appends)


async def pull(store: Store, topic: str, queue_id: int, offset: int, **changes: Any) -> ReadResult:
    """Pull, whether the answer is there at once or not."""
    limits = {"max_count": 32, "max_bytes": 1 << 20, "tag_codes": None} | changes
    answer = store.reads.pull(topic, queue_id, offset, **limits)
    return answer if isinstance(answer, ReadResult) else await as_awaitable(answer)


async def as_awaitable(answer: Awaitable[ReadResult]) -> ReadResult:
    """Wait for a cold pull."""
    return await answer


async def read_queue(store: Store, topic: str, queue_id: int) -> list[StoredMessage]:
    """Everything a queue holds."""
    found: list[StoredMessage] = []
    offset = store.queues.min_offset(topic, queue_id)
    while True:
        answer = await pull(store, topic, queue_id, offset)
        if answer.status is not ReadStatus.FOUND:
            return found
        found += decode_records(answer.body)
        offset = answer.next_offset


def read_log(store: Store) -> Iterator[StoredMessage]:
    """Every record of the log, whatever queues say."""
    log = store._log
    at = log.min
    while at < log.end:
        room = log.rest_of_file(at)
        data = log.read(min(room, log.end - at), at)
        walk = walk_records(data, at, room, True)
        yield from decode_records(data[: walk.end - at])
        if walk.end == log.end:
            return
        assert walk.end > at or room < log.segment_bytes, f"the log is broken at {walk.end}"
        at = walk.end + log.rest_of_file(walk.end)


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine, bounded in time."""

    async def bounded() -> None:
        await asyncio.wait_for(body(), 60)

    asyncio.run(bounded())
