"""The two programs of `docs/guides/nothing-lost.md` as processes, for a test that kills them.

    sender NAMESRV FIRST COUNT HALT
    worker NAMESRV FILE HALT

Each prints a line for every step that it has done. HALT is a step and a number, `worked:5` for
instance: there the process stops for good, and waits to be killed.
"""

import asyncio
import os
import sys

from gantrymq import Consumer, ConsumerOptions, Delivery, GantryError, Message, Producer

FLAKY, POISON = 7, 19
"""Every so many orders one fails at first, and another one always."""
FROM_FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


class Steps:
    """Prints what was done, and stops where it was told to."""

    def __init__(self, halt: str) -> None:
        name, _, number = halt.partition(":")
        self._name, self._left = name, int(number or 0)

    async def done(self, step: str, order: int) -> None:
        _say(step, order)
        if step == self._name:
            self._left -= 1
            if self._left == 0:
                _say("halt", order)
                await asyncio.sleep(3_600)


def _say(step: str, order: int) -> None:
    sys.stdout.write(f"{step} {order}\n")
    sys.stdout.flush()


async def sender(namesrv: str, first: int, count: int, steps: Steps) -> None:
    async with Producer(namesrv, group="shop") as producer:
        for order in range(first, count):
            while True:
                await steps.done("trying", order)
                try:
                    sent = await producer.send(Message("orders", str(order), keys=[str(order)]))
                except GantryError:
                    await asyncio.sleep(0.1)  # nobody knows whether it is stored: send it again
                    continue
                if sent.status == "SEND_OK":
                    break
                await asyncio.sleep(0.1)  # stored, but not as safely as it should be
            await steps.done("sent", order)


async def worker(namesrv: str, path: str, steps: Steps) -> None:
    async with Consumer(namesrv, group="billing", options=FROM_FIRST, max_retries=1) as consumer:
        consumer.subscribe("orders")
        async for message in consumer:
            order = int(message.body)
            await steps.done("got", order)
            if order % POISON == 0 or (order % FLAKY == 0 and message.reconsume_times == 0):
                await message.retry(1, reason="the bank is closed")
                await steps.done("retried", order)
                continue
            bill(path, message)
            await steps.done("worked", order)
            await message.ack()
            await steps.done("acked", order)


def bill(path: str, message: Delivery) -> None:
    """The work: a line in a file, for good."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, message.body + b"\n")
    os.fsync(file)
    os.close(file)


if __name__ == "__main__":
    role, namesrv, *rest, halt = sys.argv[1:]
    if role == "sender":
        asyncio.run(sender(namesrv, int(rest[0]), int(rest[1]), Steps(halt)))
    else:
        asyncio.run(worker(namesrv, rest[0], Steps(halt)))
