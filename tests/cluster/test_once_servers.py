"""Two members on real PostgreSQL and Redis over TCP: everything twice, members coming and going."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import once_servers
import psycopg
from once_member import FIRST, send, until

from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.guard import Once
from gantrymq.client.once.postgres_store import PostgresStore
from gantrymq.client.once.redis_store import RedisStore
from gantrymq.client.once.store import ClaimStore
from gantrymq.testing.cluster import Cluster

ORDERS = [f"order-{number}" for number in range(60)]
Count = Callable[[], Counter[str]]


async def story(store: Callable[[], ClaimStore], work: Any, count: Count, **options: Any) -> int:
    """Orders sent twice; a member leaves and another joins in the middle. Returns the doubles."""
    async with Cluster() as cluster:
        onces = [Once(store(), **options) for _ in range(3)]
        members = [cluster.consumer("g", once=once, options=FIRST) for once in onces]
        for member in members:
            member.subscribe("orders")
            member.handler(work)
        await cluster.create_topic("orders")
        await send(cluster, *ORDERS, times=2)
        await members[0].start()
        await members[1].start()
        await until(lambda: len(count()) >= 20)
        await members[0].close()
        await members[2].start()
        await until(lambda: len(count()) == len(ORDERS))
        await until(lambda: sum(once.suppressed_count for once in onces) >= len(ORDERS))
        for member in members[1:]:
            await member.close()
        return sum(once.lost_count for once in onces)


def test_orders_are_written_once_in_the_users_transaction() -> None:
    """
    PostgreSQL, `transaction=True`: the table of the business has no unique key, and needs none.
    """

    async def work(message: Delivery, transaction: Any) -> None:
        await transaction.execute("INSERT INTO paid VALUES (%s)", (message.body.decode(),))
        await asyncio.sleep(0.01)

    def count() -> Counter[str]:
        return Counter(body for (body,) in db.execute("SELECT body FROM paid").fetchall())

    with once_servers.postgres() as url, psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE paid (body text)")
        asyncio.run(story(lambda: PostgresStore(url), work, count, transaction=True))
        assert dict.fromkeys(ORDERS, 1) == count()


def test_orders_are_worked_on_once_under_claims_in_redis() -> None:
    """
    Nobody dies here, so claims are enough.
    """
    worked: Counter[str] = Counter()

    async def work(message: Delivery) -> None:
        await asyncio.sleep(0.01)
        worked[message.body.decode()] += 1

    with once_servers.redis() as url:
        lost = asyncio.run(story(lambda: RedisStore(url), work, lambda: worked))
    assert (dict.fromkeys(ORDERS, 1), 0) == (worked, lost)
