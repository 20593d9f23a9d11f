"""Settings of topics, by broker: each broker keeps its own table. And what may not be changed."""

from collections.abc import Mapping
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.model import (
    DEAD_PREFIX,
    READ,
    RETRY_PREFIX,
    WRITE,
    TopicConfig,
    is_system_topic,
)
from gantrymq.protocol.codes import ResponseCode

PERMISSIONS: Final = {"rw": READ | WRITE, "r": READ, "w": WRITE}

TopicConfigs = dict[str, TopicConfig]
"""The settings of one topic, by broker name."""


def permission_text(perm: int) -> str:
    """Permission bits as `rw`, `r` or `w`; `-` if a topic may be neither read nor written."""
    return (("r" if perm & READ else "") + ("w" if perm & WRITE else "")) or "-"


def of_groups(name: str) -> bool:
    """Whether a broker made the topic for a group: its retries or dead letters."""
    return name.startswith((RETRY_PREFIX, DEAD_PREFIX))


def is_internal(name: str, known: Mapping[str, TopicConfigs]) -> bool:
    """Whether no user created the topic: system, retry and dead letter topics, names of brokers."""
    return of_groups(name) or is_of_brokers(name, known, broker_names(known))


def is_of_brokers(name: str, known: Mapping[str, TopicConfigs], brokers: frozenset[str]) -> bool:
    """Whether the topic belongs to brokers and clusters themselves."""
    return (
        is_system_topic(name)
        or name in brokers
        or name.endswith("_REPLY_TOPIC")
        or f"{name}_REPLY_TOPIC" in known
    )


def broker_names(known: Mapping[str, TopicConfigs]) -> frozenset[str]:
    """The brokers that have any topic, which each has."""
    return frozenset(broker for each in known.values() for broker in each)


async def all_topic_configs(admin: Admin, *, cluster: str | None = None) -> dict[str, TopicConfigs]:
    """The settings of all topics on all masters, sorted by topic."""
    found: dict[str, TopicConfigs] = {}
    for broker, address in sorted((await admin.masters(cluster=cluster)).items()):
        for name, config in (await admin.topic_configs(address)).items():
            found.setdefault(name, {})[broker] = config
    return dict(sorted(found.items()))


async def change_topic(
    admin: Admin,
    name: str,
    *,
    reads: int | None = None,
    writes: int | None = None,
    perm: int | None = None,
    order: bool | None = None,
    attributes: Mapping[str, str | None] | None = None,
    cluster: str | None = None,
    broker: str | None = None,
    force: bool = False,
) -> None:
    """Change a topic on the brokers that have it; what is not given stays as each broker has it.

    Fewer read queues hide what lies in the others, so that needs `force`.
    """
    masters = await admin.masters(cluster=cluster, broker=broker)
    before = (await all_topic_configs(admin)).get(name, {})
    chosen = sorted(masters.keys() & before.keys())
    if not chosen:
        raise ClientError(f"{name!r} is on none of {', '.join(sorted(masters))}")
    for each in chosen:
        config = before[each]
        if reads is not None and reads < config.read_queue_nums and not force:
            raise ClientError(
                f"{name!r} has {counted(config.read_queue_nums, 'queue')} to read on {each}: fewer "
                "hide what lies in the others; `gantry topic shrink` waits until they are read, "
                "--force does not"
            )
    for each in chosen:
        config = before[each]
        await admin.create_topic(
            name,
            read_queues=reads or config.read_queue_nums,
            write_queues=writes or config.write_queue_nums,
            perm=config.perm if perm is None else perm,
            order=config.order if order is None else order,
            attributes=attributes,
            broker=each,
        )


async def what_topic_deletion_loses(admin: Admin, name: str) -> str:
    """What is deleted with a topic, in words; ClientError for one that belongs to the brokers."""
    known = await all_topic_configs(admin)
    if is_internal(name, known) and not of_groups(name):
        raise belongs_to_brokers(name)
    if name not in known:
        return "its route in the name servers: no broker has it"
    try:
        rows, groups = await admin.topic_stats(name), await admin.topic_groups(name)
    except BrokerRefused as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        # The route names a broker that lost the topic, and that has nothing to count.
        return f"all that {', '.join(known[name])} stored in it"
    stored = sum(row.max_offset - row.min_offset for row in rows.values())
    return counted(stored, "message") + (f", read by {', '.join(groups)}" if groups else "")


def belongs_to_brokers(name: str) -> ClientError:
    """The error for a topic or group that belongs to the brokers."""
    return ClientError(f"{name!r} belongs to the brokers and cannot be deleted")


async def configs_by_broker(
    admin: Admin,
) -> tuple[dict[str, TopicConfigs], dict[str, str]]:
    """The settings of all topics as far as brokers answer, and why others do not, by broker."""
    found: dict[str, TopicConfigs] = {}
    silent: dict[str, str] = {}
    for broker, address in sorted((await admin.masters()).items()):
        try:
            configs = await admin.topic_configs(address)
        except GantryError as error:
            silent[broker] = str(error)
            continue
        for name, config in configs.items():
            found.setdefault(name, {})[broker] = config
    return dict(sorted(found.items())), silent
