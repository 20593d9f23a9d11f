"""Stores on disk for tests that read them from outside: small files, filled without a broker."""

import asyncio
import struct
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gantrymq.base.disk import OsDisk
from gantrymq.base.offload import InlineOffload
from gantrymq.protocol import properties as props
from gantrymq.protocol.ids import encode_host
from gantrymq.store.append import Append
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts
from gantrymq.store.writing.dispatch import Marker

HOST = encode_host("127.0.0.1", 10911)
BORN = encode_host("10.0.0.2", 50000)
START_MS = 1_700_000_000_000
TOPIC, BROKER = "orders", "broker-a"
NAMES = {"tags": "TAGS", "keys": "KEYS", "unique": "UNIQ_KEY", "delay": "DELAY", "price": "price"}


class StepClock:
    """Ten milliseconds pass each time somebody looks."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        self.ms += 10
        return self.ms


def message(queue_id: int, body: str | bytes, *, topic: str = TOPIC, **words: Any) -> Append:
    """An append; `tags`, `keys`, `unique`, `delay` and `price` become properties."""
    given = {NAMES[name]: str(words.pop(name)) for name in list(words) if name in NAMES}
    return Append(
        topic, queue_id, body.encode() if isinstance(body, str) else body,
        born_ms=START_MS - 5, born_host=BORN, properties=props.encode(given).encode(), **words,
    )  # fmt: skip


def small(directory: Path, **changes: Any) -> StoreConfig:
    """Files of a few KiB, and nothing happens in the background."""
    config = StoreConfig(
        directory=str(directory), segment_bytes=8192, queue_file_entries=8, index_slots=16,
        index_entries=64, flush="SYNC_FLUSH", flush_interval_ms=10**9,
        queue_write_interval_ms=10**9, clean_interval_ms=10**9, checkpoint_interval_ms=10**9,
        judge_by_free_bytes=True,
    )  # fmt: skip
    return msgspec.structs.replace(config, **changes)


def keep_store(
    directory: Path,
    messages: Iterable[Append],
    *,
    clock: StepClock | None = None,
    stays_open: bool = False,
    expire: bool = False,
    marker: Marker | None = None,
    **changes: Any,
) -> None:
    """Put messages into a store, one turn each; `stays_open` leaves it as a killed broker would."""

    async def fill() -> None:
        time = clock or StepClock()
        ports = StorePorts(OsDisk(), time, InlineOffload(), InlineSyncer())
        store = await Store.open(small(directory, **changes), ports, store_host=HOST, marker=marker)
        for each in messages:
            store.put(each)
            await asyncio.sleep(0)
        for _ in range(3):  # until the last one is in its queue
            await asyncio.sleep(0)
        await store.upkeep.checkpoint()
        if expire:
            await store.upkeep.delete_expired()
            await store.upkeep.checkpoint()
        if stays_open:
            store._lock.release()
        else:
            await store.close()

    asyncio.run(fill())


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def patch(path: Path, at: int, data: bytes) -> None:
    """Overwrite some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def flip(path: Path, at: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def records_in(store: Path, queue_id: int, topic: str = TOPIC) -> list[bytes]:
    """The records of a queue, cut out of the files where its entries say, without our readers."""
    log = {int(file.name): file.read_bytes() for file in (store / "commitlog").iterdir()}
    queue = sorted((store / "consumequeue" / topic / str(queue_id)).iterdir())
    found = []
    for at, size, _ in struct.iter_unpack(">qiq", b"".join(file.read_bytes() for file in queue)):
        if size == 0:
            break
        base = at - at % len(log[min(log)])
        found.append(log[base][at - base : at - base + size])
    return found


STORES = Path(__file__).parent / "stores"
"""Small stores of real brokers, packed by `make_stores.py`."""


def unpack_store(name: str, target: Path) -> Path:
    """Unpack one of the kept stores; returns its folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(STORES / f"{name}.tar.xz") as packed:
        packed.extractall(target, filter="data")
    return target
