"""Reduces the queues of a topic without losing a message.

Write queues are reduced first, so that the queues to remove get no new message; the read queues
follow when every group has read them to the end. After an interruption the same call continues.
"""

import asyncio
from collections.abc import Callable

from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue, TopicConfig

SETTLE_SECONDS = 35.0
"""Producers learn of fewer write queues at their next look at the route, after 30 s at most."""
PAUSE_SECONDS = 1.0


class NotDrained(ClientError):
    """The queues to remove still have unread messages; the call can be repeated."""


async def shrink_topic(
    admin: Admin, name: str, queues: int, *, timeout: float, say: Callable[[str], None]
) -> None:
    """Reduce a topic to `queues` queues on each broker."""
    if queues < 1:
        raise ClientError("a topic needs at least one queue")
    configs = await _configs(admin, name)
    if all(max(c.read_queue_nums, c.write_queue_nums) <= queues for c in configs.values()):
        say(f"no broker has more than {counted(queues, 'queue')} of it: nothing to do")
        return
    for broker, config in configs.items():
        if config.write_queue_nums > queues:
            say(f"{broker}: write queues {config.write_queue_nums} to {queues}")
            await _set(admin, broker, config, max(config.read_queue_nums, queues), queues)
            config.write_queue_nums = queues
    say(f"waiting {SETTLE_SECONDS:g} s for producers to notice")
    await asyncio.sleep(SETTLE_SECONDS)
    await _drained(admin, name, queues, timeout, say)
    for broker, config in configs.items():
        if config.read_queue_nums > queues:
            say(f"{broker}: read queues {config.read_queue_nums} to {queues}")
            await _set(admin, broker, config, queues, queues)


async def _configs(admin: Admin, name: str) -> dict[str, TopicConfig]:
    found = {}
    for broker, address in (await admin.masters()).items():
        config = (await admin.topic_configs(address)).get(name)
        if config is not None:
            found[broker] = config
    if not found:
        raise ClientError(f"no broker has topic {name!r}")
    return found


async def _set(admin: Admin, broker: str, config: TopicConfig, read: int, write: int) -> None:
    await admin.create_topic(
        config.topic_name,
        read_queues=read,
        write_queues=write,
        perm=config.perm,
        order=config.order,
        broker=broker,
    )


async def _drained(
    admin: Admin, name: str, queues: int, timeout: float, say: Callable[[str], None]
) -> None:
    deadline = asyncio.get_running_loop().time() + timeout
    said = None
    while left := await unread_beyond(admin, name, queues):
        text = ", ".join(f"{who}: {count}" for who, count in left.items())
        if asyncio.get_running_loop().time() >= deadline:
            raise NotDrained(
                f"not read yet in the queues from {queues} on: {text}. Write queues are down "
                "already; run it again when the groups have caught up"
            )
        if text != said:
            say(f"waiting for {text}")
            said = text
        await asyncio.sleep(PAUSE_SECONDS)


async def unread_beyond(admin: Admin, name: str, queues: int) -> dict[str, int]:
    """Unread messages in the queues from `queues` on, by group; without a group all stored ones."""
    stored = await admin.topic_stats(name)
    going = {queue: row for queue, row in stored.items() if queue.queue_id >= queues}
    held = sum(row.max_offset - row.min_offset for row in going.values())
    if not held:
        return {}
    groups = await admin.topic_groups(name)
    if not groups:
        return {"nobody reads it": held}
    left = {group: await _unread(admin, group, name, list(going)) for group in groups}
    return {group: count for group, count in left.items() if count}


async def _unread(admin: Admin, group: str, name: str, going: list[Queue]) -> int:
    rows = (await admin.consume_stats(group, name)).queues
    return sum(rows[q].broker_offset - rows[q].consumer_offset for q in going if q in rows)
