"""Settings of consumer groups, by broker: each broker keeps its own table."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.tables import group_table
from gantrymq.client.core.errors import ClientError
from gantrymq.model import GroupConfig, check_group_name
from gantrymq.protocol import calls
from gantrymq.protocol.headers.base import Nothing

INTERNAL_GROUPS: Final = (
    "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_", "CID_ONS", "CID_RMQ_SYS_",
)  # fmt: skip
"""Beginnings of the names of groups that belong to brokers and tools."""
CHANGEABLE: Final = frozenset(
    {
        "consume_enable",
        "consume_broadcast_enable",
        "consume_from_min_enable",
        "consume_message_orderly",
        "notify_consumer_ids_changed_enable",
        "retry_max_times",
        "retry_queue_nums",
        "broker_id",
        "which_broker_when_consume_slowly",
    }
)

Settings = dict[str, dict[str, GroupConfig]]
"""Group to broker name to settings."""


async def settings(
    admin: Admin, *, cluster: str | None = None, broker: str | None = None
) -> Settings:
    """The settings of all groups on the selected masters, sorted."""
    found: Settings = {}
    for name, address in sorted((await admin.masters(cluster=cluster, broker=broker)).items()):
        _, answer = await admin.instance.call(
            address, calls.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Nothing()
        )
        for group, config in group_table(answer.body).items():
            found.setdefault(group, {})[name] = config
    return dict(sorted(found.items()))


async def change_settings(
    admin: Admin,
    group: str,
    changes: Mapping[str, Any],
    *,
    cluster: str | None = None,
    broker: str | None = None,
) -> dict[str, GroupConfig]:
    """Change some settings of a group and leave the others as each broker has them.

    Creates the group on a broker that does not know it. Returns the settings by broker.
    """
    check_group_name(group)
    unknown = sorted(set(changes) - CHANGEABLE)
    if unknown:
        raise ClientError(f"a group has no setting {', '.join(unknown)}")
    known = (await settings(admin, cluster=cluster, broker=broker)).get(group, {})
    changed: dict[str, GroupConfig] = {}
    for name in sorted(await admin.masters(cluster=cluster, broker=broker)):
        before = known.get(name) or GroupConfig(group_name=group)
        changed[name] = msgspec.structs.replace(before, **changes)
        await admin.update_group(changed[name], broker=name)
    return changed
