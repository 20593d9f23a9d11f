"""Members of a group for tests of effectively-once consuming, and how one of them dies."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gantrymq.base.offload import InlineOffload
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import ClientOptions, ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.guard import Once
from gantrymq.client.once.sqlite_store import SqliteStore, SqliteTransaction
from gantrymq.model import Message
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.network import MemoryNetwork

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
STRENGTHS = ("transaction", "claims")


class Member:
    """A consumer of group `g` on topic `orders`, with its own connection to one SQLite file.

    What it has done stands in `written`, in the file itself when the strength is a transaction.
    """

    def __init__(
        self, cluster: Cluster, path: Path, strength: str, name: str, **options: Any
    ) -> None:
        memory = isinstance(cluster.network, MemoryNetwork)
        self.store = SqliteStore(str(path), offload=InlineOffload() if memory else None)
        lease = options.pop("lease", 30.0)
        self.once = Once(self.store, transaction=strength == "transaction", lease=lease)
        self.consumer: Consumer = cluster.consumer(
            "g", once=self.once, options=FIRST, client=ClientOptions(instance_name=name), **options
        )
        self.written: list[str] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.consumer.handler(self._in_transaction if self.once.transaction else self._alone)

    async def __aenter__(self) -> "Member":
        await self.consumer.start()
        self.consumer.subscribe("orders")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.consumer.close()

    async def _alone(self, message: Delivery) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.written.append(message.body.decode())

    async def _in_transaction(self, message: Delivery, transaction: SqliteTransaction) -> None:
        await transaction.execute("CREATE TABLE IF NOT EXISTS written (body text)")
        await transaction.execute("INSERT INTO written VALUES (?)", (message.body.decode(),))
        await self._alone(message)

    def die(self) -> None:
        """As kill -9: nothing more is written or stored, nobody is told."""
        self.store._db.close()
        consumer = self.consumer
        running = consumer._running
        background = (running.background._tasks, running.instance._background._tasks)
        for tasks in (*background, running.workers._tasks):
            for task in list(tasks):
                task.cancel()
        for address in consumer.instance.connections.addresses:
            connection = consumer.instance.connections.ready(address)
            if connection is not None:
                connection.transport.abort()


async def send(cluster: Cluster, *orders: str, times: int = 1) -> None:
    """Each order under its own key; every time is a new message with a new id."""
    async with cluster.producer("sender") as producer:
        for _ in range(times):
            for order in orders:
                await producer.send(Message("orders", order, tags="paid", keys=order))


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)
