"""Sends many messages: plain neighbours of one topic as batches, all others one by one.

The kernel lays a batch out, so that Python handles batches and not messages. Each batch is one send
like any other, with its queue, its tries and its place in the window; a bounded number of them is
under way. Results are collected in the order of the messages.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from gantrymq.client.produce.batching import (
    Batching,
    Submit,
    SubmitBatch,
    begun,
    is_illegal,
    outcome_of,
)
from gantrymq.client.produce.checks import check_messages
from gantrymq.client.produce.send_results import SendResults
from gantrymq.client.sending.send_request import PreparedMessage
from gantrymq.client.sending.send_window import SendWindow
from gantrymq.model import Message, SendResult

UNDER_WAY_MAX: Final = 512
UNDER_WAY_BYTES_MAX: Final = 4 * 1024 * 1024
"""What waits for its answer: sends, batches or not, and their bytes. More would not be faster, but
wait longer, up to the time limit of a send."""
CHUNK_MESSAGES: Final = 1_024
"""How many messages are taken from the caller's iterable at once."""


class _UnderWay(NamedTuple):
    """Neighbours that were sent together."""

    messages: list[Message]
    size: int
    """Bytes of their bodies."""
    future: asyncio.Future[SendResult]


class BulkSend:
    """One call of `send_all`."""

    def __init__(
        self,
        window: SendWindow,
        batching: Batching | None,
        submit: Submit,
        submit_batch: SubmitBatch,
    ) -> None:
        """Without `batching` every message is sent alone."""
        self._window, self._batching = window, batching
        self._submit, self._submit_batch = submit, submit_batch
        self._under_way: deque[_UnderWay] = deque()
        self._bytes = 0
        self._results = SendResults()

    async def run(self, messages: Iterable[Message]) -> SendResults:
        """Send all of them; waits until each has its result or its error."""
        left = iter(messages)
        try:
            while chunk := list(islice(left, CHUNK_MESSAGES)):
                check_messages(chunk)
                await self._send(chunk)
                await asyncio.sleep(0)  # let written bytes leave and other tasks run
        except asyncio.CancelledError:
            for each in self._under_way:
                each.future.cancel()
            raise
        finally:
            while self._under_way:
                await self._settle_first()
        return self._results

    async def _send(self, chunk: list[Message]) -> None:
        at = 0
        while at < len(chunk):
            while len(self._under_way) >= UNDER_WAY_MAX or self._bytes >= UNDER_WAY_BYTES_MAX:
                await self._settle_first()
            await self._window.room()
            prepared, count = self._batch(chunk, at)
            if prepared is None:
                size, future = len(chunk[at].body), begun(self._submit, chunk[at])
            else:
                size, future = len(prepared.body), begun(self._submit_batch, prepared)
            self._under_way.append(_UnderWay(chunk[at : at + count], size, future))
            self._bytes += size
            at += count

    def _batch(self, chunk: list[Message], at: int) -> tuple[PreparedMessage | None, int]:
        return (None, 1) if self._batching is None else self._batching.batch(chunk, at)

    async def _settle_first(self) -> None:
        """Wait for the oldest send.

        Of what a broker finds illegal in a batch it stored nothing: its messages are sent again
        alone, so that each gets an answer of its own.
        """
        messages, size, future = self._under_way.popleft()
        self._bytes -= size
        outcome = await outcome_of(future)
        if len(messages) == 1 or not is_illegal(outcome):
            self._results.add(len(messages), outcome)
            return
        for message in messages:
            await self._window.room()
            self._results.add(1, await outcome_of(begun(self._submit, message)))
