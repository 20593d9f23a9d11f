"""What became of one message in each group of its topic, from the groups' progress.

RocketMQ's tools call this the track of a message. It is a guess by offsets: a group whose progress
is beyond the message has consumed it or skipped it. `message_history` knows more where messages are
traced.
"""

from typing import NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.messages.received import Received
from gantrymq.model import Subscription
from gantrymq.protocol.bodies import ConsumerConnections
from gantrymq.protocol.codes import ResponseCode


class GroupTrack(NamedTuple):
    """One group's part in the track of a message."""

    group: str
    state: str
    """RocketMQ's TrackType: CONSUMED, CONSUMED_BUT_FILTERED, PULL, NOT_CONSUME_YET, NOT_ONLINE,
    CONSUME_BROADCASTING or UNKNOWN."""
    why: str | None = None


async def track_of(admin: Admin, message: Received) -> list[GroupTrack]:
    """The state of each group of the message's topic."""
    return [
        await _track(admin, message, group) for group in await admin.topic_groups(message.topic)
    ]


async def _track(admin: Admin, message: Received, group: str) -> GroupTrack:
    try:
        members = await admin.consumers(group)
        if not members.connection_set:
            code = int(ResponseCode.CONSUMER_NOT_ONLINE)
            return GroupTrack(group, "NOT_ONLINE", f"CODE:{code} DESC:no consumer is online")
        if members.consume_type == "CONSUME_ACTIVELY":
            return GroupTrack(group, "PULL")
        if members.message_model == "BROADCASTING":
            return GroupTrack(group, "CONSUME_BROADCASTING")
        rows = (await admin.consume_stats(group, message.topic)).queues
    except GantryError as error:
        return GroupTrack(group, "UNKNOWN", str(error))
    row = rows.get(message.queue)
    if row is None or row.consumer_offset <= message.offset:
        return GroupTrack(group, "NOT_CONSUME_YET")
    return GroupTrack(group, "CONSUMED" if _wanted(members, message) else "CONSUMED_BUT_FILTERED")


def _wanted(members: ConsumerConnections, message: Received) -> bool:
    """Whether the group's subscription takes the tag; SQL conditions are not looked at."""
    found: Subscription | None = members.subscription_table.get(message.topic)
    if found is None or found.expression_type != "TAG" or not found.tags_set:
        return True
    return message.tags in found.tags_set
