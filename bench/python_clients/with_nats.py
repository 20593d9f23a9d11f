"""nats-py with JetStream: streams in files, pull consumers, an acknowledgement for each message."""

import asyncio
from collections import deque

import nats
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import PubAck, StorageType

from bench.python_clients.library import BATCH, BODY, TASKS, WINDOW, Library, Stopwatch

FETCH_SECONDS_MAX = 30.0


class NatsPy(Library):
    async def open(self) -> None:
        self._connection: Client = await nats.connect(f"nats://{self.target.address}")
        self._stream: JetStreamContext = self._connection.jetstream(
            publish_async_max_pending=WINDOW
        )
        await self._stream.add_stream(
            name=self.topic, subjects=[self.topic], storage=StorageType.FILE
        )

    async def close(self) -> None:
        await self._connection.close()

    async def send_pipelined(self, count: int) -> None:
        if self.options.get("how") == "tasks":
            await self._send_from(WINDOW, count)
            return
        publish, topic = self._stream.publish_async, self.topic
        under_way: deque[asyncio.Future[PubAck]] = deque()
        for _ in range(count):
            under_way.append(await publish(topic, BODY))
            while under_way and under_way[0].done():
                under_way.popleft().result()
        for future in under_way:
            await future

    async def send_from_tasks(self, count: int) -> None:
        await self._send_from(TASKS, count)

    async def _send_from(self, tasks: int, count: int) -> None:
        left = count

        async def sender() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self._stream.publish(self.topic, BODY)

        await asyncio.gather(*(sender() for _ in range(tasks)))

    async def consume(self, count: int, watch: Stopwatch) -> None:
        consumer = await self._stream.pull_subscribe(self.topic, durable=self.topic)
        watch.start()
        seen = 0
        while seen < count:
            messages = await consumer.fetch(min(BATCH, count - seen), timeout=FETCH_SECONDS_MAX)
            for message in messages:
                self.check(message.data)
                await message.ack()
                seen += 1
        await self._connection.flush()
        watch.stop()
