"""Holds messages back for a moment, so that those of one topic leave as one batch.

A batch leaves when it is full or when its first message has waited for `linger_ms`; with 0 it is
what was submitted in one turn of the event loop. Each message keeps a future of its own.
"""

import asyncio
from functools import partial
from typing import Final

from gantrymq.client.produce.batching import (
    Batching,
    Submit,
    SubmitBatch,
    begun,
    is_illegal,
    outcome_in,
)
from gantrymq.client.produce.send_results import SendOutcome, rows_of
from gantrymq.model import Message, SendResult

ITEM_BYTES: Final = 100
"""What a batch has of each message besides its body, roughly: a batch that is only almost full is
better than one with a few messages left over."""


class _Held:
    """The messages of one topic that have not left."""

    __slots__ = ("futures", "messages", "size", "timer")

    def __init__(self, timer: asyncio.Handle) -> None:
        self.timer = timer
        self.messages: list[Message] = []
        self.futures: list[asyncio.Future[SendResult]] = []
        self.size = 0


class Linger:
    """The messages of one producer that wait for company."""

    def __init__(
        self,
        seconds: float,
        batching: Batching,
        submit: Submit,
        submit_batch: SubmitBatch,
    ) -> None:
        self._seconds, self._batching = seconds, batching
        self._submit, self._submit_batch = submit, submit_batch
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, _Held] = {}
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, message: Message) -> asyncio.Future[SendResult]:
        """Hold a message back."""
        topic = message.topic
        held = self._held.get(topic)
        if held is None:
            held = self._held[topic] = _Held(self._leaves_at_last(topic))
        future: asyncio.Future[SendResult] = self._loop.create_future()
        held.messages.append(message)
        held.futures.append(future)
        held.size += len(message.body) + ITEM_BYTES
        limits = self._batching.limits
        if len(held.messages) >= limits.messages or held.size >= limits.bytes:
            self._leave(topic)
        return future

    def _leaves_at_last(self, topic: str) -> asyncio.Handle:
        if self._seconds:
            return self._loop.call_later(self._seconds, self._leave, topic)
        return self._loop.call_soon(self._leave, topic)

    def _leave(self, topic: str) -> None:
        held = self._held.pop(topic)
        held.timer.cancel()
        at = 0
        while at < len(held.messages):
            prepared, count = self._batching.batch(held.messages, at)
            messages = held.messages[at : at + count]
            if prepared is None:
                sent = begun(self._submit, messages[0])
            else:
                sent = begun(self._submit_batch, prepared)
            self._settle_with(sent, messages, held.futures[at : at + count])
            at += count

    def _settle_with(
        self,
        sent: asyncio.Future[SendResult],
        messages: list[Message],
        futures: list[asyncio.Future[SendResult]],
    ) -> None:
        self._under_way += 1
        self._idle.clear()
        sent.add_done_callback(partial(self._settle, messages, futures))

    def _settle(
        self,
        messages: list[Message],
        futures: list[asyncio.Future[SendResult]],
        sent: asyncio.Future[SendResult],
    ) -> None:
        """Give each future its outcome. What a broker finds illegal in a batch is told apart by
        sending its messages again alone: it stored none of them."""
        self._under_way -= 1
        outcome = outcome_in(sent)
        if len(messages) > 1 and is_illegal(outcome):
            for message, future in zip(messages, futures, strict=True):
                self._settle_with(begun(self._submit, message), [message], [future])
        else:
            _share(outcome, futures)
        if not self._under_way:
            self._idle.set()

    async def idle(self) -> None:
        """Let everything leave that is held, and wait until it is answered."""
        for topic in list(self._held):
            self._leave(topic)
        await self._idle.wait()


def _share(outcome: SendOutcome, futures: list[asyncio.Future[SendResult]]) -> None:
    if not isinstance(outcome, SendResult):
        for future in futures:
            if not future.done():
                future.set_exception(outcome)
        return
    results = rows_of(outcome, len(futures)) if len(futures) > 1 else (outcome,)
    for future, result in zip(futures, results, strict=True):
        if not future.done():
            future.set_result(result)
