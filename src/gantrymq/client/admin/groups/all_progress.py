"""The progress of all groups, in few requests: one a broker where brokers know it."""

from collections.abc import Collection, Mapping
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.admin import tables
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.members import together
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused
from gantrymq.model import Queue
from gantrymq.protocol import calls
from gantrymq.protocol.bodies import OffsetWrapper
from gantrymq.protocol.headers.clients import ConsumeStatsRequest
from gantrymq.protocol.headers.progress import BrokerConsumeStatsRequest

SECONDS_MAX: Final = 15.0
"""A broker with very many queues takes a while."""

AllProgress = dict[str, dict[Queue, OffsetWrapper]]
"""Group to queue to progress."""


async def all_progress(
    admin: Admin, groups: Collection[str], masters: Mapping[str, str]
) -> AllProgress:
    """The progress of these groups on these masters; a group without any has an empty table."""
    found: AllProgress = {group: {} for group in groups}
    for address in masters.values():
        for group, rows in (await progress_at(admin, address, groups)).items():
            if group in found:
                found[group] |= rows
    return found


async def progress_at(admin: Admin, address: str, groups: Collection[str]) -> AllProgress:
    """The progress of groups on one broker.

    GET_BROKER_CONSUME_STATS has it in one answer; a broker that refuses it is asked for each group.
    """
    try:
        _, answer = await admin.instance.call(
            address,
            calls.GET_BROKER_CONSUME_STATS,
            BrokerConsumeStatsRequest(is_order=False),
            timeout=SECONDS_MAX,
        )
        return tables.all_progress(answer.body)
    except BrokerRefused:
        pass
    asked = await together(_of_group(admin, address, group) for group in groups)
    return dict(zip(groups, asked, strict=True))


async def _of_group(admin: Admin, address: str, group: str) -> dict[Queue, OffsetWrapper]:
    header = ConsumeStatsRequest(consumer_group=group, topic=None)
    try:
        _, answer = await admin.instance.call(address, calls.GET_CONSUME_STATS, header)
    except TRANSPORT_ERRORS:
        raise
    except GantryError:
        return {}  # this broker does not know the group
    return tables.progress(answer.body).queues
