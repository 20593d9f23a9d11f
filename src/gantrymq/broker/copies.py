"""Copies of stored messages on their way to another topic: retried, delivered late, committed."""

import asyncio

from gantrymq.protocol import properties
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import StoredMessage
from gantrymq.store.append import Append
from gantrymq.store.engine import Store


def copy_of(
    message: StoredMessage, topic: str, queue_id: int, stored_properties: bytes | None = None
) -> Append:
    """The same message for another queue; nobody waits for the disk with it."""
    return Append(
        topic,
        queue_id,
        message.body,
        properties=message.raw_properties if stored_properties is None else stored_properties,
        flag=message.flag,
        sys_flag=message.sys_flag,
        born_ms=message.born_ms,
        born_host=encode_host(*message.born_host),
        reconsume_times=message.reconsume_times,
        wait=False,
    )


def real_place(found: dict[str, str]) -> tuple[str, int]:
    """Topic and queue that a message in a waiting room was sent to; no topic is an empty one."""
    queue = found.get(properties.REAL_QUEUE, "0")
    return found.get(properties.REAL_TOPIC, ""), int(queue) if queue.isdigit() else 0


async def stored(store: Store, copy: Append) -> Append:
    """Put a message and wait until its fate is known; look at its `status`."""
    done: asyncio.Future[Append] = asyncio.get_running_loop().create_future()
    copy.reply = done.set_result
    store.put(copy)
    return await done
