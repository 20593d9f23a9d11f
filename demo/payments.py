"""Payments in transactions: a message is sent if, and only if, the money was moved."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Self

from demo.books import RETRY_SECONDS, Books, paced, until
from demo.claims import Claim, claim_of
from demo.readers import FROM_FIRST
from gantrymq import (
    Consumer,
    Decision,
    Delivery,
    GantryError,
    Message,
    Producer,
    ProducerOptions,
    Transaction,
    Unfinished,
)
from gantrymq.testing.invariants import acknowledged_is_kept, withdrawn_is_never_delivered

TOPIC = "payments"
CHECK_AFTER_SECONDS = 2
REFUSED_OF_TEN, SILENT_OF_TEN = (3,), (5, 8)
"""By the last digit: no money there, and nothing said about it (the even ones were paid)."""


def outcome(number: int) -> Decision:
    """What the bank does with a payment."""
    last = number % 10
    refused = last in REFUSED_OF_TEN or (last in SILENT_OF_TEN and last % 2)
    return Decision.ROLLBACK if refused else Decision.COMMIT


class Payments:
    """The bank, which sends, and the accounts, which read."""

    def __init__(self, namesrv: str, count: int, share: Callable[[], float]) -> None:
        self._namesrv, self._count, self._share = namesrv, count, share
        self.books = Books()
        self.refused: set[str] = set()
        self.silent: set[str] = set()
        """The bank said nothing; the broker must ask."""
        self.asked: set[str] = set()
        self.delivered: Counter[str] = Counter()
        self._moved: dict[str, Decision] = {}
        """The bank's database: what became of a transaction, by its id."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        consumer = Consumer(self._namesrv, group="accounts", options=FROM_FIRST)

        @consumer.handler
        def take(message: Delivery) -> None:
            self.delivered[message.keys[0]] += 1

        await self._stack.enter_async_context(consumer)
        consumer.subscribe(TOPIC)
        # A half message that is sent again must be another one, so that the bank can tell which
        # of them it acted upon.
        options = ProducerOptions(retries=0)
        self._bank = Producer(self._namesrv, group="bank", options=options)
        self._bank.check(self.answer)
        await self._stack.enter_async_context(self._bank)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self) -> None:
        """Pay while the shop trades."""
        async with asyncio.TaskGroup() as group:
            async for number in paced(self._count, self._share):
                group.create_task(self._pay(number))

    async def _pay(self, number: int) -> None:
        """Until the bank has acted. A half message without an answer is nobody's: see `answer`."""
        message = Message(TOPIC, f"payment {number}", keys=[f"payment-{number}"])
        while True:
            try:
                async with self._bank.transaction(
                    message, check_after=CHECK_AFTER_SECONDS
                ) as transaction:
                    acted = self._act(transaction, number)
            except GantryError:
                self.books.failures += 1
                acted = False
            if acted:
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _act(self, transaction: Transaction, number: int) -> bool:
        """The local transaction; False when the broker asked first and was told no."""
        payment, decision = f"payment-{number}", outcome(number)
        if self._moved.setdefault(transaction.transaction_id, decision) is not decision:
            transaction.rollback()
            return False
        (self.books.expected if decision is Decision.COMMIT else self.refused).add(payment)
        if number % 10 in SILENT_OF_TEN:
            self.silent.add(payment)
            transaction.unknown()
        elif decision is Decision.ROLLBACK:
            transaction.rollback()
        return True

    def answer(self, half: Unfinished) -> Decision:
        """The broker asks: what the database does not know was not done, and never will be."""
        payment = half.keys[0]
        self.asked.add(payment)
        self.books.doubtful.add(payment)  # a crash may have come between the word and its note
        return self._moved.setdefault(half.transaction_id, Decision.ROLLBACK)

    def settled(self) -> bool:
        """Whether all is delivered that was committed, and asked that was left open."""
        return self.books.expected <= self.delivered.keys() and self.silent <= self.asked

    async def finish(self) -> None:
        await until(self.settled)

    def claims(self) -> list[Claim]:
        expected, delivered = self.books.expected, self.delivered.keys()
        decided = len(expected) + len(self.refused)
        return [
            claim_of(
                acknowledged_is_kept,
                "payments",
                f"{len(expected & delivered):,} of {len(expected):,} committed ones came",
                decided == self._count
                and bool(expected)
                and not acknowledged_is_kept.broken(expected, delivered),
            ),
            claim_of(
                withdrawn_is_never_delivered,
                "payments",
                f"{len(self.refused & delivered):,} of {len(self.refused):,} rolled back came",
                bool(self.refused)
                and not withdrawn_is_never_delivered.broken(self.refused, delivered),
            ),
            Claim(
                "the broker asked about the undecided ones",
                f"{len(self.silent & self.asked):,} of {len(self.silent):,}, and about "
                f"{len(self.asked - self.silent):,} others",
                bool(self.silent) and self.silent <= self.asked,
            ),
        ]
