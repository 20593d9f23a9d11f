"""What a changed setting does: one trial for each setting that is in force at once.

A trial runs against a broker in memory and in virtual time. It sees what the broker does, changes
the setting over the wire, and sees the broker do something else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from peer import Peer

from gantrymq.protocol.command import Command
from gantrymq.store.engine import Store
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk


class Trial:
    """A running broker whose settings are changed."""

    def __init__(self, cluster: Cluster, peer: Peer, parts: dict[str, Any]) -> None:
        self.cluster, self.peer = cluster, peer
        self.parts = parts
        """What the cluster was given to run on, by name."""
        self.changed: set[str] = set()

    async def change(self, **settings: object) -> None:
        """UPDATE_BROKER_CONFIG; the broker must not say that something waits for a start."""
        lines = [f"{key}={_text(value)}\n" for key, value in settings.items()]
        answer = await self.peer.call(25, "".join(lines).encode())
        assert (0, None) == (answer.code, answer.remark)
        self.changed |= settings.keys()

    @property
    def store(self) -> Store:
        return self.cluster.broker().store

    @property
    def disk(self) -> MemoryDisk:
        disk = self.cluster.disk
        assert isinstance(disk, MemoryDisk)
        return disk

    async def create(self, topic: str, queues: int = 1, **more: object) -> Command:
        """UPDATE_AND_CREATE_TOPIC, with fields that clients of today do not set."""
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues,
            "writeQueueNums": queues, "perm": 6, "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0, "order": "false",
        }  # fmt: skip
        return await self.peer.call(17, **{**fields, **more})


Story = Callable[[Trial], Awaitable[None]]


@dataclass(frozen=True)
class Effect:
    """How to see that a setting is in force."""

    story: Story
    options: dict[str, Any]
    """Of the cluster; a class is made anew for each trial."""


EFFECTS: dict[str, Effect] = {}
"""By the setting's name."""


def effect(key: str, **options: Any) -> Callable[[Story], Story]:
    """Enter the trial of a setting."""

    def enter(story: Story) -> Story:
        assert key not in EFFECTS
        EFFECTS[key] = Effect(story, options)
        return story

    return enter


async def seconds(work: Awaitable[Any]) -> float:
    """How long something takes, to a tenth of a second."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await work
    return round(loop.time() - began, 1)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
