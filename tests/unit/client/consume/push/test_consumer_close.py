"""Closing a consumer whose handlers still work."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


@pytest.mark.parametrize("seconds", [1, 19, 50])
def test_what_ends_within_the_grace_is_acknowledged(gantry_sim: Simulate, seconds: int) -> None:
    """
    Also when queues are shared out again meanwhile: a queue no longer pulled is not a stuck one.
    """
    done: list[bytes] = []

    async def story(cluster: Cluster) -> None:
        async with cluster.producer("sender") as producer:
            await producer.send(Message("T", b"slow"))
        begun = asyncio.Event()
        async with cluster.consumer("g", options=FIRST, close_grace=60) as consumer:
            consumer.subscribe("T")

            @consumer.handler
            async def work(message: Delivery) -> None:
                begun.set()
                await asyncio.sleep(seconds)
                done.append(message.body)

            await begun.wait()
        async with cluster.admin() as admin:
            assert 0 == (await admin.consume_stats("g", "T")).lag

    gantry_sim(story)
    assert [b"slow"] == done


def test_the_loop_over_a_closed_consumer_ends(gantry_sim: Simulate) -> None:
    """
    Asking a closed consumer for a message ends the loop, whether it was ever started or not.
    """

    async def story(cluster: Cluster) -> None:
        started, never_started = cluster.consumer("g"), cluster.consumer("h")
        async with started:
            pass
        await never_started.close()
        for consumer in (started, never_started):
            with pytest.raises(StopAsyncIteration):
                await anext(consumer)

    gantry_sim(story)
