"""What stories with copies share: a store of small files, and what it shows in the end."""

from gantrymq.protocol.record import decode_records
from gantrymq.store.append import ReadResult
from gantrymq.store.engine import Store

SMALL_FILES = {
    "mapped_file_size_commit_log": 16 * 1024,
    "mapped_file_size_consume_queue": 20 * 1000,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
    "max_message_size": 4 * 1024,
}


async def bodies_of(store: Store, topic: str, queues: int) -> set[str]:
    """The bodies of a topic that consumers can see."""
    found: set[str] = set()
    for queue_id in range(queues):
        offset = store.queues.min_offset(topic, queue_id)
        end = store.queues.max_offset(topic, queue_id)
        while offset < end:
            pulled = store.reads.pull(topic, queue_id, offset, 1000, 1 << 24)
            if not isinstance(pulled, ReadResult):
                pulled = await pulled
            found |= {each.body.decode().strip() for each in decode_records(pulled.body)}
            offset = max(pulled.next_offset, offset + 1)
    return found
