"""redis.asyncio: the same commands from tasks, with a connection for each command under way."""

import asyncio

from redis.asyncio import Redis

from bench.python_clients.library import BODY, TASKS, WINDOW, Library
from bench.python_clients.with_redis import FIELD


class RedisAsyncio(Library):
    async def open(self) -> None:
        host, port = self.target.address.split(":")
        self._client = Redis(host=host, port=int(port), protocol=2)
        await self._client.flushdb()

    async def close(self) -> None:
        await self._client.aclose()

    async def send_pipelined(self, count: int) -> None:
        for first in range(0, count, WINDOW):
            pipeline = self._client.pipeline(transaction=False)
            for _ in range(min(WINDOW, count - first)):
                pipeline.xadd(self.topic, {FIELD: BODY})
            await pipeline.execute()

    async def send_from_tasks(self, count: int) -> None:
        left = count

        async def sender() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self._client.xadd(self.topic, {FIELD: BODY})

        await asyncio.gather(*(sender() for _ in range(TASKS)))
