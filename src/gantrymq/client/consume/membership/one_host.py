"""Checks that all members of a group run on this machine, as a store on one machine needs."""

from collections.abc import Iterable

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.membership.rebalance import members_of
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.instance import Instance


async def check_one_host(instance: Instance, group: str, topics: Iterable[str]) -> None:
    """Raise when a member's client id (`ip@name`) has another address than this client's."""
    own = instance.client_id.partition("@")[0]
    for topic in topics:
        try:
            route = await instance.routes.get(topic)
        except GantryError:
            continue  # a topic without a route has no queues to read yet
        members = await members_of(instance, group, route) or []
        foreign = [member for member in members if member.partition("@")[0] != own]
        if foreign:
            raise ConsumerMisused(
                f"group {group!r} has members on other machines ({', '.join(foreign)}), but the "
                f"store of finished work is a file of this one ({own}): use PostgresStore or "
                "RedisStore, or run all members here"
            )
