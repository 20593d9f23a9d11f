"""A consumer as a process of its own, for a test that kills it: NAMESRV FILE STRENGTH LEASE.

Every order it handles becomes a row of `written`, which has no unique key of its own.
"""

import asyncio
import sqlite3
import sys

from gantrymq import Consumer, ConsumerOptions, Delivery, Once, SqliteStore
from gantrymq.client.once.sqlite_store import SqliteTransaction

INSERT = "INSERT INTO written VALUES (?)"
WORK_SECONDS = 0.01


async def main(namesrv: str, path: str, strength: str, lease: float) -> None:
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    once = Once(SqliteStore(path), transaction=strength == "transaction", lease=lease)
    consumer = Consumer(namesrv, group="g", once=once, options=options)
    consumer.subscribe("orders")

    async def in_transaction(message: Delivery, transaction: SqliteTransaction) -> None:
        await transaction.execute(INSERT, (message.body.decode(),))
        await asyncio.sleep(WORK_SECONDS)

    async def alone(message: Delivery) -> None:
        await asyncio.sleep(WORK_SECONDS)
        with sqlite3.connect(path, timeout=10) as db:
            db.execute(INSERT, (message.body.decode(),))

    consumer.handler(in_transaction if once.transaction else alone)
    async with consumer:
        await consumer.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
