"""A store directory with messages in it, made by the store itself and without a broker."""

import asyncio
import json
import random
from pathlib import Path

import msgspec

from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.offload import ThreadOffload
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.config import MIB, StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts

TOPIC, BROKER = "orders", "broker-a"
QUEUES, TURN = 4, 200
BODY_BYTES = 1024
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
TEXT_BYTES = 1 << 20
SEGMENT_BYTES, INDEX_SLOTS, INDEX_ENTRIES = 256 * MIB, 500_000, 4_000_000
SERVED = {
    "mappedFileSizeCommitLog": str(SEGMENT_BYTES),
    "maxHashSlotNum": str(INDEX_SLOTS),
    "maxIndexNum": str(INDEX_ENTRIES),
}
"""The settings of a broker that opens such a store."""
FINE = (PutStatus.PUT_OK, PutStatus.PAGECACHE_BUSY)


def make_store(directory: Path, count: int) -> int:
    """A clean store of `count` orders of 1 KiB over four queues; returns the bytes of its log."""
    size = asyncio.run(_fill(directory, count))
    counts = {BROKER: 1, TOPIC: QUEUES}  # a store tells its broker's name by a topic
    topics = {
        name: {"topicName": name, "perm": 7, "readQueueNums": count, "writeQueueNums": count}
        for name, count in counts.items()
    }
    path = directory / "config" / "topics.json"
    path.write_text(json.dumps({"topicConfigTable": topics}))
    return size


async def _fill(directory: Path, count: int) -> int:
    config = msgspec.structs.replace(
        StoreConfig.dev(str(directory)), segment_bytes=SEGMENT_BYTES,
        index_slots=INDEX_SLOTS, index_entries=INDEX_ENTRIES,
    )  # fmt: skip
    ports = StorePorts(OsDisk(), SystemClock(), ThreadOffload(), InlineSyncer())
    store = await Store.open(config, ports, store_host=HOST)
    rng = random.Random(7)
    text = rng.randbytes(TEXT_BYTES // 2).hex()
    for first in range(0, count, TURN):
        await _put(store, [
            _order(number, text, rng.randrange(TEXT_BYTES - BODY_BYTES))
            for number in range(first, min(count, first + TURN))
        ])  # fmt: skip
    await store.close()
    return store.log_max


async def _put(store: Store, orders: list[Append]) -> None:
    """Store all of them, those again that were refused while the next log file is being made."""
    while orders:
        answered: asyncio.Queue[Append] = asyncio.Queue()
        for order in orders:
            order.reply = answered.put_nowait
            store.put(order)
        answers = [await answered.get() for _ in orders]
        orders = [each for each in answers if each.status is PutStatus.PAGECACHE_BUSY]
        bad = next((each for each in answers if each.status not in FINE), None)
        if bad is not None:
            raise OSError(f"a store was not filled: {bad.status.name} {bad.error}")


def _order(number: int, text: str, at: int) -> Append:
    head = {"id": number, "customer": f"c{number % 9973}", "amount": number % 10_000 / 100}
    body = json.dumps(head)[:-1] + ', "note": "'
    body += text[at : at + BODY_BYTES - len(body) - 2] + '"}'
    properties = b"UNIQ_KEY\x01%032X\x02KEYS\x01k%d\x02TAGS\x01Tag%d\x02WAIT\x01true\x02"
    return Append(
        TOPIC, number % QUEUES, body.encode(),
        properties=properties % (number, number % 100_000, number % 5),
    )  # fmt: skip
