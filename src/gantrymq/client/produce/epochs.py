"""One epoch, staged message by message, for programs without Spark.

Ids are made from writer, epoch, part and number, so a repeated epoch has the same ids again.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from gantrymq.client.core.errors import MessageRefused, NoRoute
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.produce.publishing import EpochResult, Publisher
from gantrymq.client.sending.send_policy import sharded
from gantrymq.client.sending.send_request import check_topic, property_map
from gantrymq.model import Message, Queue
from gantrymq.protocol import batch, properties
from gantrymq.protocol.publishing import Share

BATCH_BYTES: Final = 512 * 1024
PREFIX_BYTES: Final = 8
NUMBER_MAX: Final = 0xFFFF_FFFF


def id_prefix(writer: str, epoch: int, part: int) -> str:
    """The prefix of the ids of one part of an epoch: 16 hex digits."""
    text = f"{writer}\n{epoch}\n{part}".encode()
    return hashlib.blake2b(text, digest_size=PREFIX_BYTES).hexdigest().upper()


def stable_id(prefix: str, number: int) -> str:
    """An id in RocketMQ's format. Its time field is zero, the beginning of the month, so that
    RocketMQ's tools search from there."""
    return f"{prefix}{number >> 16:04X}00000000{number & 0xFFFF:04X}"


class Epoch:
    """Messages that become visible together, by `publish`.

    `part` distinguishes processes that share an epoch; one of them publishes all shares.
    """

    def __init__(self, publisher: Publisher, number: int, part: int = 0) -> None:
        self._publisher, self.number = publisher, number
        self._prefix = id_prefix(publisher.writer, number, part)
        self._count = self._turn = 0
        self.shares: dict[str, Share] = {}

    async def add(self, messages: Iterable[Message]) -> None:
        """Stage messages. Those with the same sharding key go to the same queue, in order."""
        groups: dict[Queue, list[tuple[str, batch.Item]]] = {}
        for message in messages:
            queue = await self._queue_for(message)
            groups.setdefault(queue, []).append(self._packed(message))
        for queue, packed in groups.items():
            some: list[tuple[str, batch.Item]] = []
            size = 0
            for each in packed:
                size += len(each[1].body) + len(each[1].properties) + batch.FIXED_BYTES
                if some and size > BATCH_BYTES:
                    await self._stage(queue, some)
                    some, size = [], 0
                some.append(each)
            await self._stage(queue, some)

    async def publish(self) -> EpochResult:
        """Make all messages visible, once: see `Publisher.publish`."""
        return await self._publisher.publish(self.number, self.shares)

    async def _queue_for(self, message: Message) -> Queue:
        check_topic(message.topic)
        route = await self._publisher.instance.routes.get(message.topic)
        queues = publish_queues(route, message.topic)
        if not queues:
            raise NoRoute(message.topic, "it has no queue to write to")
        if message.sharding_key is not None:
            return sharded(queues, message.sharding_key)
        self._turn += 1
        return queues[self._turn % len(queues)]

    def _packed(self, message: Message) -> tuple[str, batch.Item]:
        msg_id = stable_id(self._prefix, self._count)
        self._count += 1
        text = properties.encode(property_map(message, msg_id)).encode()
        if len(text) > properties.BYTES_MAX - properties.WAITING_BYTES:
            raise MessageRefused(f"message to {message.topic!r}: {len(text)} bytes of properties")
        return msg_id, batch.Item(message.flag, message.body, text)

    async def _stage(self, queue: Queue, some: list[tuple[str, batch.Item]]) -> None:
        body = batch.encode([item for _, item in some])
        stretch = await self._publisher.stage(queue, body, len(some), some[-1][0])
        self.shares.setdefault(queue.broker_name, []).append(stretch)
