"""Where replayed messages go: the target topic, through the sink."""

import asyncio
from typing import Any, Protocol

from gantrymq.base.errors import ConfigError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.core.routes import publish_queues
from gantrymq.model import Queue
from gantrymq.pipelines.replay.journal import ReplayPlan


class ChunkPublisher(Protocol):
    """Publishes chunks. After a crash the same chunk of a plan may come again."""

    def queues(self, namesrv: str, topic: str) -> tuple[Queue, ...]:
        """The queues that may be written, in order; an error if there is no such topic."""
        ...

    def publish(self, frame: Any, plan: ReplayPlan, number: int) -> None:
        """Send a chunk's messages; when this returns, all are stored."""
        ...


class SinkPublisher:
    """The format "rocketmq": each chunk is an epoch of a writer named after the replay."""

    def queues(self, namesrv: str, topic: str) -> tuple[Queue, ...]:
        async def ask() -> tuple[Queue, ...]:
            async with Admin(namesrv) as admin:
                return tuple(sorted(publish_queues(await admin.topic_route(topic), topic)))

        try:
            queues = asyncio.run(ask())
        except NoRoute as error:
            raise ConfigError(
                f"there is no topic {topic} to replay into: create it first"
            ) from error
        if not queues:
            raise ConfigError(f"the topic {topic} has no queue that may be written")
        return queues

    def publish(self, frame: Any, plan: ReplayPlan, number: int) -> None:
        options = {
            "nameServer": plan.namesrv,
            "topic": plan.request.into,
            "writerId": f"replay-{plan.id}",
            "epoch": str(number),
        }
        frame.write.format("rocketmq").options(**options).mode("append").save()
