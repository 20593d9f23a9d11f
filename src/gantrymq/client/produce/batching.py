"""Batches that a producer puts together itself: for a bulk send, and for `linger_ms`."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, cast

from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.client.core.errors import BrokerRefused, SendFailed
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.produce.send_results import SendOutcome
from gantrymq.client.sending.send_request import PreparedMessage, is_unusual, property_map
from gantrymq.kernel import Batchable, BatchLimits, encode_batch
from gantrymq.model import Message, SendResult
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode

T = TypeVar("T")
Submit = Callable[[Message], asyncio.Future[SendResult]]
SubmitBatch = Callable[[PreparedMessage], asyncio.Future[SendResult]]

BATCH_MESSAGES_MAX: Final = 256


class Batching:
    """Makes the batches of one producer."""

    def __init__(self, ids: MessageIds, options: ProducerOptions) -> None:
        self._ids = ids
        self.limits = BatchLimits(
            BATCH_MESSAGES_MAX,
            min(options.batch_max_bytes, options.max_message_bytes),
            min(options.compress_over_bytes, options.max_message_bytes + 1) - 1,
        )

    def batch(self, messages: list[Message], at: int) -> tuple[PreparedMessage | None, int]:
        """The batch that begins with a message, and how many it has; None if it goes alone."""
        topic = messages[at].topic
        if is_unusual(topic):
            return None, 1
        stem, counter, now_ms = self._ids.coming()
        found = encode_batch(messages, at, stem, counter, self.limits, _own_properties)
        if found.messages < 2:
            return None, 1
        self._ids.skip(found.messages)
        return PreparedMessage(topic, found.body, "", found.ids, now_ms, batch=True), found.messages


def begun(begin: Callable[[T], asyncio.Future[SendResult]], what: T) -> asyncio.Future[SendResult]:
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


def outcome_in(done: asyncio.Future[SendResult]) -> SendOutcome:
    """The same of a send that has ended."""
    error = done.exception()
    return done.result() if error is None else cast(GantryError, error)


def is_illegal(outcome: SendOutcome) -> bool:
    """Whether a broker refused what was sent, whichever broker it is, and stored nothing of it."""
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
