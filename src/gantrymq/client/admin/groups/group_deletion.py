"""Deletes a group with its progress and its retry topic, unless members still run."""

from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.group_settings import INTERNAL_GROUPS
from gantrymq.client.admin.topics.topic_settings import belongs_to_brokers
from gantrymq.client.core.errors import ClientError
from gantrymq.model import dead_topic, retry_topic


async def check_group_deletable(admin: Admin, name: str, *, force: bool = False) -> None:
    """ClientError for a group of the brokers; without `force` also for one whose members run."""
    if name.startswith(INTERNAL_GROUPS):
        raise belongs_to_brokers(name)
    running = len((await admin.consumers(name)).connection_set)
    if running and not force:
        raise ClientError(
            f"{counted(running, 'member')} of {name} still run{'s' if running == 1 else ''}: "
            "stop them first, or use --force"
        )


async def delete_group_and_retries(
    admin: Admin, name: str, *, with_dead_letters: bool = False
) -> None:
    """Delete settings, progress and retry topic of a group, and its dead letters if asked to."""
    await admin.delete_group(name, with_offsets=True)
    left = {retry_topic(name)} | ({dead_topic(name)} if with_dead_letters else set())
    for topic in sorted(left & set(await admin.topics())):
        await admin.delete_topic(topic)
