"""What waits in the delay levels of a broker that has no request for it: RocketMQ's.

Each level is a queue of a system topic; the broker tells up to which offset it delivered. Timer
messages of RocketMQ 5 lie in a wheel that nobody can read from outside, so they are not in here.
"""

import re
from typing import Final

import msgspec

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import SCHEDULE_TOPIC, Queue
from gantrymq.protocol import calls, fastjson, properties
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.waiting import WaitingMessage, WaitingRoom, WaitingTable

READER: Final = "TOOLS_CONSUMER"
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class DeliveredOffsets(msgspec.Struct, rename="camel"):
    """Up to where a broker delivered each level."""

    offset_table: dict[str, int] = {}


async def waiting_levels(
    admin: Admin, broker: str, address: str, topic: str | None, count: int, from_ms: int
) -> WaitingTable:
    """The delay levels of one broker, and the messages that are due first."""
    _, answer = await admin.instance.call(address, calls.GET_ALL_DELAY_OFFSET, Nothing())
    delivered = fastjson.load_as(answer.body, DeliveredOffsets).offset_table
    config = await admin.broker_config(address)
    words = re.findall(r"(\d+)([smhd])", config.get("messageDelayLevel", ""))
    table = WaitingTable()
    now_ms = admin.instance.clock.now_ms()
    for level, (number, unit) in enumerate(words, 1):
        queue = Queue(SCHEDULE_TOPIC, broker, level - 1)
        try:
            end = await admin.max_offset(queue)
        except NoRoute:
            return table  # nothing was ever delayed there
        begin = delivered.get(str(level), 0)
        if begin >= end:
            continue
        wait_ms = int(number) * SECONDS[unit] * 1_000
        pulled = await pull_raw(admin.instance, READER, queue, begin, max_count=count)
        held = read_records(pulled.body, broker)
        next_due = held[0].store_ms + wait_ms if held else 0
        room = f"level {level}"
        table.rooms.append(
            WaitingRoom(
                room=room,
                count=end - begin,
                next_due_ms=next_due,
                overdue_ms=max(0, now_ms - next_due) if next_due else 0,
                delivered=begin,
                uncounted=end - begin,
            )
        )
        if held and from_ms > next_due:  # those of one level wait equally long
            later = await queue_offsets.search_offset(admin.instance, queue, from_ms - wait_ms)
            pulled = await pull_raw(
                admin.instance, READER, queue, max(begin, later), max_count=count
            )
            held = read_records(pulled.body, broker)
        rows = (_row(each, room, wait_ms) for each in held)
        table.messages += [
            row for row in rows if row.due_ms >= from_ms and topic in (None, row.topic)
        ]
    table.messages.sort(key=lambda row: row.due_ms)
    del table.messages[count:]
    return table


def _row(message: Received, room: str, wait_ms: int) -> WaitingMessage:
    return WaitingMessage(
        msg_id=message.msg_id,
        topic=message.properties.get(properties.REAL_TOPIC, ""),
        keys=list(message.keys),
        tags=message.tags,
        due_ms=message.store_ms + wait_ms,
        room=room,
    )
