"""redis-py, the blocking client: streams, pipelines without a transaction."""

from typing import Any

import redis

from bench.python_clients.library import (
    BATCH,
    BODY,
    GROUP,
    WINDOW,
    Library,
    Stopwatch,
    WrongMessage,
)

FIELD = b"body"


class RedisPy(Library):
    async def open(self) -> None:
        host, port = self.target.address.split(":")
        self._client = redis.Redis(host=host, port=int(port), protocol=2)
        self._client.flushdb()  # memory holds the messages of one run, not of all

    async def close(self) -> None:
        self._client.close()

    async def send_pipelined(self, count: int) -> None:
        topic = self.topic
        for first in range(0, count, WINDOW):
            pipeline = self._client.pipeline(transaction=False)
            for _ in range(min(WINDOW, count - first)):
                pipeline.xadd(topic, {FIELD: BODY})
            pipeline.execute()

    async def consume(self, count: int, watch: Stopwatch) -> None:
        client, topic = self._client, self.topic
        client.xgroup_create(topic, GROUP, id="0")
        watch.start()
        seen = 0
        while seen < count:
            found: Any = client.xreadgroup(GROUP, GROUP, {topic: ">"}, count=BATCH)
            if not found:
                raise WrongMessage(f"{count - seen} messages did not come")
            entries = found[0][1]
            for _, fields in entries:
                self.check(fields[FIELD])
            seen += client.xack(topic, GROUP, *(number for number, _ in entries))
        watch.stop()
