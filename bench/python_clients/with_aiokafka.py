"""aiokafka: Kafka's protocol in Python, on asyncio."""

import asyncio
import logging
from collections import deque

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.structs import RecordMetadata

from bench.python_clients.library import (
    BODY,
    COMMIT_SECONDS,
    TASKS,
    WINDOW,
    Commits,
    Library,
    Stopwatch,
    WrongMessage,
)

SILENT_MS_MAX = 30_000
BATCH_BYTES = "16384"
"""aiokafka's default."""


class _Assigned(ConsumerRebalanceListener):  # type: ignore[misc]
    """Starts the watch when the member has its partitions."""

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Nobody else is in the group."""

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._watch.start()


class Aiokafka(Library):
    async def open(self) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # the first send makes the topic
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self.target.address,
            acks="all",
            max_batch_size=int(self.options.get("batch_bytes", BATCH_BYTES)),
        )
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def send_pipelined(self, count: int) -> None:
        producer, topic = self._producer, self.topic
        under_way: deque[asyncio.Future[RecordMetadata]] = deque()
        for _ in range(count):
            if len(under_way) >= WINDOW:
                await under_way.popleft()
            under_way.append(await producer.send(topic, BODY))
        for future in under_way:
            await future

    async def send_from_tasks(self, count: int) -> None:
        left = count

        async def sender() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self._producer.send_and_wait(self.topic, BODY)

        await asyncio.gather(*(sender() for _ in range(TASKS)))

    async def consume(self, count: int, watch: Stopwatch) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.target.address,
            group_id=self.topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        consumer.subscribe([self.topic], listener=_Assigned(watch))
        seen = 0
        commits = Commits(float(self.options.get("commit_seconds", COMMIT_SECONDS)))
        while seen < count:
            found = await consumer.getmany(timeout_ms=SILENT_MS_MAX)
            if not found:
                raise WrongMessage(f"{count - seen} messages did not come")
            for records in found.values():
                for record in records:
                    self.check(record.value or b"")
                    seen += 1
            if commits.due():
                await consumer.commit()
        await consumer.commit()
        watch.stop()
        await consumer.stop()
