"""At most once without a store: acknowledge before the work."""

from collections.abc import AsyncIterator

from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.messages.delivery import Delivery


async def ack_first(consumer: Consumer) -> AsyncIterator[Delivery]:
    """Messages whose progress the broker has before you see them, one at a time.

        async for message in ack_first(consumer):
            ...

    A program that dies in its work does not see the message again. A queue that changes hands at
    that moment, or a broker that loses its last seconds of progress, can still repeat one:
    `Once(store, at_most_once=True)` rules that out.
    """
    async for message in consumer:
        await message.ack()
        await consumer.commit()
        yield message
