"""Topics that a workload needs before it begins."""

import asyncio
from collections.abc import Sequence

from gantrymq import Admin
from gantrymq.model import TopicConfig

TOPICS_AT_ONCE = 500


def numbered(topic: str, count: int) -> list[str]:
    """So many names."""
    return [f"{topic}-{number}" for number in range(count)]


def make_topics(namesrv: str, broker: str, names: Sequence[str], queues: int) -> None:
    """Make topics with so many queues each, on one broker."""
    configs = [
        TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
        for name in names
    ]

    async def make() -> None:
        async with Admin(namesrv) as admin:
            for at in range(0, len(configs), TOPICS_AT_ONCE):
                await admin.put_topics(broker, configs[at : at + TOPICS_AT_ONCE])

    asyncio.run(make())
