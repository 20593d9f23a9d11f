"""Copies of stored messages for another topic: retried, delayed, committed."""

import asyncio
import logging
from collections.abc import Sequence

from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import StoredMessage
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)


def copy_of(
    message: StoredMessage, topic: str, queue_id: int, stored_properties: bytes | None = None
) -> Append:
    """The same message for another queue; its append does not wait for the disk."""
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


HOPELESS = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)
"""The store will never take these, however often they are tried."""


async def put_all(store: Store, copies: Sequence[Append]) -> list[Append]:
    """Put copies in order and wait until all are answered; returns those to try again, in order.

    A message that the store can never take is logged and given up, as RocketMQ does.
    """
    if not copies:
        return []
    left = len(copies)
    done = asyncio.get_running_loop().create_future()

    def reply(_: Append) -> None:
        nonlocal left
        left -= 1
        if not left and not done.done():
            done.set_result(None)

    for copy in copies:
        copy.reply, copy.size = reply, 0
        store.put(copy)
    await done
    for copy in copies:
        if copy.status in HOPELESS:
            log.error("a message for %s is lost, the store refuses it: %s", copy.topic, copy.error)
    return [copy for copy in copies if not copy.status.is_stored and copy.status not in HOPELESS]


async def stored(store: Store, copy: Append) -> Append:
    """Put a message and wait until it is stored or refused; its `status` says which."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    # The callback must not refer to the copy: the cycle would wait for the garbage collector.
    copy.reply = lambda _: None if done.done() else done.set_result(None)
    store.put(copy)
    await done
    return copy
