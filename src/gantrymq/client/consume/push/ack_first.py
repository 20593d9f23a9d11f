"""At most once without a store: acknowledges before the work."""

from collections.abc import AsyncIterator

from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.messages.delivery import Delivery


async def ack_first(consumer: Consumer) -> AsyncIterator[Delivery]:
    """Messages one at a time, each after its progress was stored on the broker.

        async for message in ack_first(consumer):
            ...

    A program that dies in its work does not get the message again. A rebalance at that moment, or a
    broker that loses its last seconds of progress, can still repeat one:
    `Once(store, at_most_once=True)` prevents that.
    """
    async for message in consumer:
        await message.ack()
        await consumer.commit()
        yield message
