"""Our own client."""

import asyncio
from collections import deque

from bench.python_clients.library import (
    BODY,
    GROUP,
    TASKS,
    WINDOW,
    Library,
    Stopwatch,
    Target,
)
from gantrymq import Consumer, Message, Producer
from gantrymq.client.core.options import ProducerOptions
from gantrymq.model import SendResult

SEND_TIMEOUT_MS = 30_000
"""As patient as the others, so that a busy machine does not end the bench."""


class GantryMQ(Library):
    def __init__(self, target: Target, options: dict[str, str]) -> None:
        super().__init__(target, options)
        self._producer = Producer(
            target.address,
            group=GROUP,
            options=ProducerOptions(window_messages=WINDOW, send_timeout_ms=SEND_TIMEOUT_MS),
        )

    async def open(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.close()

    async def send_pipelined(self, count: int) -> None:
        producer, topic = self._producer, self.topic
        if self.options.get("how") == "send_all":
            results = await producer.send_all(Message(topic, BODY) for _ in range(count))
            results.raise_failures()
            return
        under_way: deque[asyncio.Future[SendResult]] = deque()
        for _ in range(count):
            await producer.room()
            under_way.append(producer.submit(Message(topic, BODY)))
            while under_way and under_way[0].done():
                under_way.popleft().result()
        await producer.flush()
        for future in under_way:
            future.result()

    async def send_from_tasks(self, count: int) -> None:
        left = count

        async def sender() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self._producer.send(Message(self.topic, BODY))

        await asyncio.gather(*(sender() for _ in range(TASKS)))

    async def consume(self, count: int, watch: Stopwatch) -> None:
        async with Consumer(self.target.address, group=self.topic, start="first") as consumer:
            consumer.on_assignment(lambda _: watch.start())
            consumer.subscribe(self.topic)
            seen = 0
            async for message in consumer:
                self.check(message.body)
                await message.ack()
                seen += 1
                if seen == count:
                    break
            await consumer.commit()
            watch.stop()
