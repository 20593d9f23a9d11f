"""Reminders that wait at the broker until they are due, through its crash. Some are taken back."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Self

from demo.books import Books, paced, until
from demo.claims import Claim, claim_of, spread
from demo.readers import FROM_FIRST
from gantrymq import Consumer, Delivery, Message, Producer
from gantrymq.base.clock import SystemClock
from gantrymq.testing.invariants import (
    acknowledged_is_kept,
    nothing_before_its_time,
    withdrawn_is_never_delivered,
)

TOPIC = "reminders"
RECALLED = 5
RECALLED_DELAY_MS = 12_000
DELAY_MS_MIN, DELAY_MS_MAX = 1_000, 8_000


class Reminders:
    """Sends them while the shop trades, and reads them as the group `mail`."""

    def __init__(self, namesrv: str, count: int, share: Callable[[], float]) -> None:
        self._namesrv, self._count, self._share = namesrv, count, share
        self._clock = SystemClock()
        self.books = Books()
        self.due: dict[str, int] = {}
        """When each was to come, in milliseconds since 1970."""
        self.recalled: set[str] = set()
        self.came: set[str] = set()
        self.early = 0
        self.late: list[int] = []
        """Milliseconds from due to stored in the topic, each delivery."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        consumer = Consumer(self._namesrv, group="mail", options=FROM_FIRST)

        @consumer.handler
        def take(message: Delivery) -> None:
            self.take(message.keys[0], message.store_ms, self._clock.now_ms())

        await self._stack.enter_async_context(consumer)
        consumer.subscribe(TOPIC)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def take(self, reminder: str, stored_ms: int, now_ms: int) -> None:
        """One was delivered. Neither the broker nor the consumer may be ahead of its time."""
        due = self.due[reminder]
        self.early += min(stored_ms, now_ms) < due
        self.late.append(stored_ms - due)
        self.came.add(reminder)

    async def run(self) -> None:
        """Send all, the ones to be recalled first: they are due after the crash."""
        async with Producer(self._namesrv, group="reminding") as producer:
            for number in range(RECALLED):
                await self._change_mind(producer, f"regretted-{number}")
            async with asyncio.TaskGroup() as group:
                async for number in paced(self._count, self._share):
                    wait = DELAY_MS_MIN + (number * 7919) % (DELAY_MS_MAX - DELAY_MS_MIN)
                    group.create_task(self._remind(producer, f"reminder-{number}", wait))

    async def _remind(self, producer: Producer, reminder: str, wait_ms: int) -> None:
        message = self._message(reminder, wait_ms)
        await self.books.until_stored(reminder, lambda: producer.send(message))

    async def _change_mind(self, producer: Producer, reminder: str) -> None:
        sent = await producer.send(self._message(reminder, RECALLED_DELAY_MS))
        assert sent.recall_handle is not None, "a message that waits for its time has a handle"
        await producer.recall(TOPIC, sent.recall_handle)
        self.recalled.add(reminder)

    def _message(self, reminder: str, wait_ms: int) -> Message:
        self.due[reminder] = due = self._clock.now_ms() + wait_ms
        return Message(TOPIC, "Your basket misses you.", keys=[reminder], deliver_at=due)

    def broker_gone(self) -> None:
        """What was due before a crash was perhaps not noted as delivered, and may come again."""
        now = self._clock.now_ms()
        self.books.doubtful.update(each for each, due in self.due.items() if due <= now)

    async def finish(self) -> None:
        """Wait until everything has come that was to come, and the recalled ones would have."""
        last = max(self.due.values())
        await asyncio.sleep(max(0.0, (last - self._clock.now_ms()) / 1000))
        await until(lambda: self.books.expected <= self.came)

    def claims(self) -> list[Claim]:
        expected, came = self.books.expected, self.came
        return [
            claim_of(
                acknowledged_is_kept,
                "reminders",
                f"{len(expected & came):,} of {self._count:,} came",
                len(expected) == self._count and not acknowledged_is_kept.broken(expected, came),
            ),
            claim_of(
                nothing_before_its_time,
                "reminders",
                f"{self.early:,} early; {spread(self.late)}",
                not self.early,
            ),
            claim_of(
                withdrawn_is_never_delivered,
                "reminders",
                f"{len(self.recalled & came):,} of {len(self.recalled):,} recalled came",
                len(self.recalled) == RECALLED
                and not withdrawn_is_never_delivered.broken(self.recalled, came),
            ),
        ]
