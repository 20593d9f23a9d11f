"""The plain sends of one turn of the event loop: encoded, written and answered together.

Plain is a message to any queue, without properties of its own, a time, a key for its order or a
body to compress, from a producer without hooks, trace, spans and latency faults. The kernel makes
the frames of a turn and reads the answers of a read; Python only keeps what a retry would need.
Whatever is not plain goes the ordinary way, behind the plain sends before it.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.client.core.connections import BrokerConnection, StoredAnswers
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.sending.pending_send import PendingSend, SendTarget
from gantrymq.client.sending.pending_sends import PendingSends
from gantrymq.client.sending.send_request import PreparedMessage, prepare
from gantrymq.kernel import encode_sends
from gantrymq.model import Message, SendResult

log = logging.getLogger(__name__)


class Tries(NamedTuple):
    """How often a send is tried, and after what."""

    most: int
    retry_codes: frozenset[int] = frozenset()
    when_stored_less: bool = False


class PlainSend(PendingSend, gc=False):
    """A pending send whose answer the kernel reads, if it says no more than that it is stored."""


class _Held(NamedTuple):
    """A message that leaves at the end of this turn."""

    message: Message
    future: asyncio.Future[SendResult]
    tries: Tries


class TurnSends:
    """The plain sends of one producer."""

    def __init__(self, sends: PendingSends, ids: MessageIds, options: ProducerOptions) -> None:
        self._sends, self._ids, self._options = sends, ids, options
        self._loop = asyncio.get_running_loop()
        self._window = sends.window
        self._seconds = options.send_timeout_ms / 1000
        self._body_bytes_max = min(options.compress_over_bytes - 1, options.max_message_bytes)
        self._held: dict[str, list[_Held]] = {}
        sends.before_others = self.leave

    def add(self, message: Message, tries: Tries) -> asyncio.Future[SendResult] | None:
        """Take a message if it is plain; it leaves at the end of this turn."""
        if type(message) is not Message:
            return None
        size = len(message.body)
        if (
            size > self._body_bytes_max
            or message.properties
            or message.delay_level
            or message.deliver_at is not None
            or message.delay is not None
            or message.sharding_key is not None
            or not message.wait_store_ok
        ):
            return None
        held = self._held.get(message.topic)
        if held is None:
            if not self._sends.has_plain_way(message.topic):
                return None
            if not self._held:
                self._loop.call_soon(self.leave)
            held = self._held[message.topic] = []
        future: asyncio.Future[SendResult] = self._loop.create_future()
        held.append(_Held(message, future, tries))
        self._window.enter(size)
        return future

    def leave(self) -> None:
        """Let everything leave that is held."""
        if not self._held:
            return
        every, self._held = self._held, {}
        for topic, held in every.items():
            try:
                self._send(topic, held)
            except Exception as bug:  # a bug must not leave sends waiting for ever
                log.exception("sends to %s", topic)
                self._fail(held, GantryError(f"{type(bug).__name__}: {bug}"))

    def _send(self, topic: str, held: list[_Held]) -> None:
        targets = self._sends.next_targets(topic, len(held))
        connections = dict.fromkeys(target.connection for target in targets)
        if len(connections) == 1:
            self._write(held, targets, targets[0].connection)
            return
        if not targets:
            self._post(held, self._loop.time() + self._seconds)
        for connection in connections:
            places = [at for at, each in enumerate(targets) if each.connection is connection]
            self._write([held[at] for at in places], [targets[at] for at in places], connection)

    def _fail(self, held: Sequence[_Held], error: GantryError) -> None:
        for message, future, _ in held:
            if not future.done():
                future.set_exception(error)
            self._window.leave(len(message.body))

    def _write(
        self,
        held: Sequence[_Held],
        targets: Sequence[SendTarget],
        connection: BrokerConnection | None,
    ) -> None:
        """Write messages to queues of one broker."""
        parts = [target.frames.parts for target in targets if target.frames.parts is not None]
        deadline = self._loop.time() + self._seconds
        can_leave = connection is not None and connection.open and self._sends.is_plain
        if connection is None or not can_leave or len(parts) < len(targets):
            self._post(held, deadline)
            return
        stem, counter, born_ms = self._ids.coming()
        self._ids.skip(len(held))
        numbers = connection.numbers(len(held))
        messages = [each.message for each in held]
        encoded = encode_sends(messages, parts, numbers, born_ms, stem, counter)
        calls = [
            PlainSend(
                self._sends,
                PreparedMessage(message.topic, message.body, text, msg_id, born_ms, message.flag),
                future,
                deadline,
                tries.most,
                None,
                None,
                None,
                tries.retry_codes,
                tries.when_stored_less,
                target,
            )
            for (message, future, tries), target, (_, msg_id, text) in zip(
                held, targets, encoded, strict=True
            )
        ]
        connection.stored_answers = _STORED_ANSWERS
        connection.call_all(numbers, calls, [frame for frame, _, _ in encoded])

    def _post(self, held: Sequence[_Held], deadline: float) -> None:
        """The ordinary way, for what could not leave: a route changed, a connection is gone."""
        for message, future, tries in held:
            prepared = prepare(message, self._ids, self._options)
            pending = PendingSend(self._sends, prepared, future, deadline, tries.most)
            pending.retry_codes = tries.retry_codes
            pending.when_stored_less = tries.when_stored_less
            self._sends.post(pending)


def _settle(connection: BrokerConnection, found: Sequence[tuple[PlainSend, SendResult]]) -> None:
    """Give messages that are stored their results."""
    sends, count, size = found[0][0].sends, 0, 0
    for pending, result in found:
        if pending.sends is not sends:
            sends.stored(connection, count, size)
            sends, count, size = pending.sends, 0, 0
        count += 1
        size += len(pending.prepared.body)
        future = pending.future
        if not future.done():
            future.set_result(result)
    sends.stored(connection, count, size)


_STORED_ANSWERS = StoredAnswers(PlainSend, _settle)
