"""Handing messages out: fair between queues, and no more wake-ups than needed."""

import asyncio
from collections import deque

import pytest

from gantrymq.client.consume.queues.ready_queues import (
    TURN_SECONDS_MAX,
    ReadyQueues,
    ReadyQueuesClosed,
)
from gantrymq.client.messages.delivery import Delivery
from gantrymq.kernel import cut_records
from gantrymq.kernel.records import encode_records
from gantrymq.model import Queue
from gantrymq.protocol.ids import encode_host
from gantrymq.testing import simulate

HOST = encode_host("127.0.0.1", 1)


class NoKeeper:
    def acked(self, message: Delivery) -> None:
        """Nobody asks."""

    async def sent_back(self, message: Delivery, delay_level: int) -> None:
        """Nobody asks."""


class Shelf:
    """A source with messages numbered from 0."""

    def __init__(self, name: str, count: int) -> None:
        self.queued = False
        queue = Queue(name, "b", 0)
        items = [
            (b"T", 0, number, 0, 0, 0, HOST, 0, 0, b"%d" % number, b"") for number in range(count)
        ]
        data, _ = encode_records(items, 0, 0, HOST)
        cuts, _ = cut_records(data)
        self.waiting = deque(
            Delivery(data, body_at, head, queue, NoKeeper()) for _, body_at, head in cuts
        )

    def offers(self, now: float) -> bool:
        return bool(self.waiting)

    def take(self, count: int, now: float) -> list[Delivery]:
        return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]

    def take_one(self, now: float) -> Delivery | None:
        return self.waiting.popleft() if self.waiting else None


def test_queues_take_turns() -> None:
    """
    Messages are handed out in turn from all queues that have some.
    """

    async def story() -> list[str]:
        ready = ReadyQueues()
        for shelf in (Shelf("a", 3), Shelf("b", 1), Shelf("c", 2)):
            ready.offer(shelf)
        return [(await ready.next())[0].queue.topic for _ in range(6)]

    assert simulate(story) == ["a", "b", "c", "a", "c", "a"]


def test_messages_taken_one_by_one_come_in_the_same_turns() -> None:
    """
    `take_one` hands out what `next` would, and nothing in a pause, when all is taken, or for so
    long that the event loop needs its turn.
    """

    async def story() -> list[str]:
        ready, loop = ReadyQueues(), asyncio.get_running_loop()
        for shelf in (Shelf("a", 3), Shelf("b", 1), Shelf("c", 2)):
            ready.offer(shelf)
        found = [ready.take_one() for _ in range(4)]
        ready.hold(0.001)
        assert ready.take_one() is None
        ready.release()
        await asyncio.sleep(TURN_SECONDS_MAX * 2)
        assert ready.take_one() is None
        found += await ready.next()
        found.append(ready.take_one())
        assert ready.take_one() is None
        assert all(message.started is not None for message in found if message)
        assert loop.time() - TURN_SECONDS_MAX < max(m.started or 0 for m in found if m)
        return [message.queue.topic for message in found if message]

    assert simulate(story) == ["a", "b", "c", "a", "c", "a"]


def test_every_message_goes_to_one_waiter_and_all_waiters_get_work() -> None:
    """
    Each message goes to one waiter, and no waiter stays idle while there are messages.
    """

    async def story() -> tuple[list[int], int]:
        ready, seen, busy = ReadyQueues(), list[int](), dict[int, None]()

        async def worker(name: int) -> None:
            while True:
                (message,) = await ready.next()
                busy[name] = None
                await asyncio.sleep(1)
                seen.append(message.offset)

        tasks = [asyncio.create_task(worker(name)) for name in range(5)]
        await asyncio.sleep(1)
        ready.offer(Shelf("a", 10))
        await asyncio.sleep(2.5)
        for task in tasks:
            task.cancel()
        return sorted(seen), len(busy)

    assert simulate(story) == (list(range(10)), 5)


def test_a_waiter_that_is_cancelled_as_it_is_woken_passes_the_message_on() -> None:
    """
    A waiter that is cancelled when it was already woken wakes the next one.
    """

    async def story() -> int:
        ready = ReadyQueues()
        first = asyncio.create_task(ready.next())
        second = asyncio.create_task(ready.next())
        await asyncio.sleep(0)
        ready.offer(Shelf("a", 1))
        first.cancel()
        async with asyncio.timeout(1):
            return (await second)[0].offset

    assert simulate(story) == 0


def test_the_loop_gets_its_turn_while_messages_never_end() -> None:
    """
    The event loop runs other tasks while messages are handed out without a pause.
    """

    async def story() -> int:
        ready, turns = ReadyQueues(), 0
        ready.offer(Shelf("a", 20_000))

        async def tick() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        ticking = asyncio.create_task(tick())
        for _ in range(20_000):
            await ready.next()
        ticking.cancel()
        return turns

    assert asyncio.run(story()) > 1


def test_a_closed_handout_ends_those_who_wait() -> None:
    """
    `close` ends all waiters, and later calls, with ReadyQueuesClosed.
    """

    async def story() -> None:
        ready = ReadyQueues()
        waiting = asyncio.create_task(ready.next())
        await asyncio.sleep(0)
        ready.close()
        with pytest.raises(ReadyQueuesClosed):
            await waiting
        with pytest.raises(ReadyQueuesClosed):
            await ready.next()

    simulate(story)
