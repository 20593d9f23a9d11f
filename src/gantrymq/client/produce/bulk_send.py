"""Sends many messages: plain neighbours of one topic as batches, all others one by one.

The kernel lays a batch out, so that Python handles batches and not messages. Each batch is one send
like any other, with its queue, its tries and its place in the window; a bounded number of them is
under way. Results are collected in the order of the messages.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple, TypeVar, cast

from gantrymq.base import arguments
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.client.core.errors import BrokerRefused, SendFailed
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.produce.send_results import SendOutcome, SendResults
from gantrymq.client.sending.send_request import PreparedMessage, property_map
from gantrymq.client.sending.send_window import SendWindow
from gantrymq.kernel import Batchable, BatchLimits, encode_batch
from gantrymq.model import RETRY_PREFIX, Message, SendResult
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode

T = TypeVar("T")

BATCH_MESSAGES_MAX: Final = 256
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
        submit: Callable[[Message], asyncio.Future[SendResult]],
        submit_batch: Callable[[PreparedMessage], asyncio.Future[SendResult]],
        ids: MessageIds,
        options: ProducerOptions,
        *,
        batches: bool,
    ) -> None:
        """Without `batches` every message is sent alone."""
        self._window, self._ids = window, ids
        self._submit, self._submit_batch = submit, submit_batch
        self._limits = BatchLimits(
            BATCH_MESSAGES_MAX if batches else 0,
            min(options.batch_max_bytes, options.max_message_bytes),
            min(options.compress_over_bytes, options.max_message_bytes + 1) - 1,
        )
        self._under_way: deque[_UnderWay] = deque()
        self._bytes = 0
        self._results = SendResults()

    async def run(self, messages: Iterable[Message]) -> SendResults:
        """Send all of them; waits until each has its result or its error."""
        left = iter(messages)
        try:
            while chunk := list(islice(left, CHUNK_MESSAGES)):
                _check(chunk)
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
                size, future = len(chunk[at].body), _begun(self._submit, chunk[at])
            else:
                size, future = len(prepared.body), _begun(self._submit_batch, prepared)
            self._under_way.append(_UnderWay(chunk[at : at + count], size, future))
            self._bytes += size
            at += count

    def _batch(self, chunk: list[Message], at: int) -> tuple[PreparedMessage | None, int]:
        """The batch that begins with a message, and how many it has; None if it goes alone."""
        topic = chunk[at].topic
        if topic.startswith(RETRY_PREFIX) or not self._limits.messages:
            return None, 1
        stem, counter, now_ms = self._ids.coming()
        found = encode_batch(chunk, at, stem, counter, self._limits, _own_properties)
        if found.messages < 2:
            return None, 1
        self._ids.skip(found.messages)
        return PreparedMessage(topic, found.body, "", found.ids, now_ms, batch=True), found.messages

    async def _settle_first(self) -> None:
        """Wait for the oldest send.

        Of what a broker finds illegal in a batch it stored nothing: its messages are sent again
        alone, so that each gets an answer of its own.
        """
        messages, size, future = self._under_way.popleft()
        self._bytes -= size
        outcome = await outcome_of(future)
        if len(messages) == 1 or not _is_illegal(outcome):
            self._results.add(len(messages), outcome)
            return
        for message in messages:
            await self._window.room()
            self._results.add(1, await outcome_of(_begun(self._submit, message)))


def _begun(begin: Callable[[T], asyncio.Future[SendResult]], what: T) -> asyncio.Future[SendResult]:
    """The future of a send, also when it is refused at once."""
    try:
        return begin(what)
    except GantryError as error:
        future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return future


async def outcome_of(future: asyncio.Future[SendResult]) -> SendOutcome:
    """The result of a send, or its error."""
    try:
        return await future
    except GantryError as error:
        return error


def _check(chunk: list[Message]) -> None:
    for each in chunk:
        if not isinstance(each, Message):
            raise arguments.wrong_type(
                "what is sent", "a Message, as in Message(topic, body)", each
            )


def _is_illegal(outcome: SendOutcome) -> bool:
    if isinstance(outcome, SendFailed):
        return outcome.refused_code == ResponseCode.MESSAGE_ILLEGAL
    return isinstance(outcome, BrokerRefused) and outcome.code == ResponseCode.MESSAGE_ILLEGAL


def _own_properties(message: Batchable, msg_id: str) -> tuple[str, str] | None:
    """The encoded properties of a message that has some of its own, and its id."""
    fields = property_map(cast(Message, message), msg_id)
    try:
        return properties.encode(fields), fields[properties.UNIQ_KEY]
    except ProtocolError:
        return None  # alone it gets its error
