"""Transactions: send a half message, run the local transaction, then commit or roll back.

async with producer.transaction(Message("orders", b"...")) as tx:
    write_row(database, tx.transaction_id)

Consumers cannot read the half message until the broker gets the commit. Without a decision the
broker starts check-backs: see `check_back`.
"""

import asyncio
import inspect
import logging
import struct
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import ClientError, MessageRefused
from gantrymq.client.sending.send_request import PreparedMessage, quoted
from gantrymq.model import Message, SendResult
from gantrymq.protocol import properties
from gantrymq.protocol.calls import END_TRANSACTION
from gantrymq.protocol.codes import VERSION_4_9_8
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.transactions import EndTransactionRequest
from gantrymq.protocol.ids import parse_offset_msg_id
from gantrymq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from gantrymq.remoting.connection import Connection

if TYPE_CHECKING:
    from gantrymq.client.core.instance import Instance
    from gantrymq.client.produce.producer import Producer
    from gantrymq.client.sending.pending_send import Selector
    from gantrymq.model import Queue

log = logging.getLogger(__name__)

END_SECONDS_MAX: Final = 3.0
"""How long a decision waits for a connection; after that the broker's check-back asks for it."""


class Decision(Enum):
    """The decision on a half message. UNKNOWN leaves it to the next check-back."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"


_WORDS: Final = {each.value: each for each in Decision}
VERDICTS: Final = {
    Decision.COMMIT: TRANSACTION_COMMIT,
    Decision.ROLLBACK: TRANSACTION_ROLLBACK,
    Decision.UNKNOWN: 0,
}


class HalfNotSafe(ClientError):
    """The half message was stored, but not SEND_OK: it was rolled back, and nothing was run."""

    def __init__(self, result: SendResult) -> None:
        super().__init__(
            f"half message {result.msg_id} is stored, but {result.status}: the transaction was "
            "rolled back before it began"
        )
        self.result = result


def decision_of(value: object) -> Decision:
    """A decision or its name as a Decision; refuses True, False and None as ambiguous."""
    if isinstance(value, Decision):
        return value
    found = _WORDS.get(value) if isinstance(value, str) else None
    if found is not None:
        return found
    raise TypeError(f"a transaction is decided by commit, rollback or unknown, not by {value!r}")


def half_of(prepared: PreparedMessage, group: str, check_after: int | None) -> PreparedMessage:
    """Mark a prepared message as a half message of a group."""
    text = f"TRAN_MSG\x01true\x02PGROUP\x01{group}\x02"
    if check_after is not None:
        text += f"{properties.CHECK_IMMUNITY}\x01{check_after}\x02"
    prepared.properties += text
    prepared.sys_flag |= TRANSACTION_PREPARED
    return prepared


def check_message(message: Message, check_after: int | None) -> None:
    """Refuse a message that cannot be a half message."""
    if message.delay_level or message.timer is not None:
        raise MessageRefused(
            f"message to {message.topic!r}: a transaction takes no delay; RocketMQ's brokers would "
            "delay the half message and lose it"
        )
    if check_after is not None and check_after < 0:
        raise MessageRefused(f"check_after is 0 seconds or more, not {check_after}")


class Transaction:
    """One half message and its decision; `async with` sends both."""

    __slots__ = (
        "_check_after",
        "_producer",
        "_queue",
        "_result",
        "_selector",
        "_timeout",
        "decision",
        "message",
    )

    def __init__(
        self,
        producer: "Producer",
        message: Message,
        *,
        queue: "Queue | None" = None,
        selector: "Selector | None" = None,
        timeout: float | None = None,
        check_after: int | None = None,
    ) -> None:
        check_message(message, check_after)
        self._producer, self.message = producer, message
        self._queue, self._selector, self._timeout = queue, selector, timeout
        self._check_after = check_after
        self._result: SendResult | None = None
        self.decision: Decision | None = None
        """None until something was decided."""

    @property
    def result(self) -> SendResult:
        """The send result of the half message."""
        if self._result is None:
            raise ClientError("the half message is not sent yet: use `async with`")
        return self._result

    @property
    def transaction_id(self) -> str:
        """The message id; store it with the local transaction, for check-backs."""
        return self.result.msg_id

    def commit(self) -> None:
        """Commit when the block ends, even by an exception."""
        self.decision = Decision.COMMIT

    def rollback(self) -> None:
        """Roll back when the block ends."""
        self.decision = Decision.ROLLBACK

    def unknown(self) -> None:
        """Decide later: the broker will start a check-back."""
        self.decision = Decision.UNKNOWN

    async def __aenter__(self) -> Self:
        result = await self._producer.send_half(
            self.message,
            self._check_after,
            queue=self._queue,
            selector=self._selector,
            timeout=self._timeout,
        )
        self.begun(result)
        return self

    def begun(self, result: SendResult) -> None:
        """Take the result of the half message; roll back and raise if it is not SEND_OK."""
        self._result = result
        if result.status != "SEND_OK":
            self.rollback()
            self.end()
            raise HalfNotSafe(result)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended(error)

    def ended(self, error: BaseException | None) -> None:
        """The local transaction ended: send the decision, by default commit.

        An exception rolls back. After a cancellation or exit it is unknown, because the block may
        have done its work or not.
        """
        if self.decision is None:
            if error is None:
                self.decision = Decision.COMMIT
            elif isinstance(error, Exception):
                self.decision = Decision.ROLLBACK
            else:
                self.decision = Decision.UNKNOWN
        self.end("" if error is None else f"local transaction: {type(error).__name__}: {error}")

    def end(self, remark: str = "") -> None:
        assert self.decision is not None
        result, trace = self.result, self._producer.tracing
        self._producer.end_transaction(result, self.decision, remark)
        if trace is not None:
            trace.transaction_ended(
                self.message,
                result.msg_id,
                result.transaction_id or "",
                result.queue.broker_name,
                self.decision.value,
                from_check=False,
            )


Local = Callable[[Transaction], object]
"""What a transaction does besides the message; returns a decision, or one to be awaited."""


async def run_transaction(transaction: Transaction, local: Local) -> Transaction:
    """The same as `async with`, for a function whose result is the decision."""
    async with transaction:
        value = local(transaction)
        transaction.decision = decision_of(await value if inspect.isawaitable(value) else value)
    return transaction


class Submitted:
    """Used in place of a send's future: runs the local transaction when the answer comes."""

    __slots__ = ("_local", "_transaction", "outcome")

    def __init__(self, transaction: Transaction, local: Local) -> None:
        self._transaction, self._local = transaction, local
        self.outcome: asyncio.Future[Transaction] = asyncio.get_running_loop().create_future()

    def done(self) -> bool:
        """Whether the caller's future is settled or cancelled."""
        return self.outcome.done()

    def set_exception(self, error: BaseException) -> None:
        """The half message was not stored, or this is not known."""
        if not self.outcome.done():
            self.outcome.set_exception(error)

    def set_result(self, result: SendResult) -> None:
        """The half message is stored: run the local transaction, send the decision.

        Catches all exceptions, because the connection that got the answer calls this.
        """
        try:
            self._go_on(result)
        except Exception as error:
            self.set_exception(error)
        else:
            if not self.outcome.done():
                self.outcome.set_result(self._transaction)

    def _go_on(self, result: SendResult) -> None:
        transaction = self._transaction
        transaction.begun(result)
        try:
            transaction.decision = decision_of(self._local(transaction))
        except Exception as error:
            transaction.ended(error)
            raise
        transaction.end()


_TEMPLATE = (
    '{{"code":37,"extFields":{{"bname":{broker},"commitLogOffset":"%d","commitOrRollback":"%d",'
    '"fromTransactionCheck":"false","msgId":%b,"producerGroup":{group},'
    '"tranStateTableOffset":"%d","topic":{topic},"transactionId":%b}},"flag":2,'
    '"language":"PYTHON","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":{version}}}'
)
_HEX_DIGITS_OF_OFFSET: Final = 16
_prefix = struct.Struct(">II").pack
_json = msgspec.json.Encoder().encode


class Ends:
    """Sends a producer's decisions (END_TRANSACTION) to the brokers of its half messages."""

    def __init__(self, instance: "Instance", group: str) -> None:
        self._instance, self._group = instance, group
        self._templates: dict[tuple[str, str], bytes] = {}

    def send(self, half: SendResult, decision: Decision, remark: str) -> None:
        """Send now, or when the broker is connected. One-way: failures are only logged."""
        instance = self._instance
        try:
            address = instance.routes.address_of(half.queue.broker_name)
        except GantryError as error:
            _say_unsent(half, str(error))
            return
        connection = instance.connections.ready(address)
        if connection is None:
            instance.spawn(self._send_later(address, half, decision, remark))
        elif instance.hooks or instance.codec or remark:
            self._send_slowly(connection, address, half, decision, remark)
        else:
            connection.write(self._frame(half, decision, connection.next_number()))

    def _frame(self, half: SendResult, decision: Decision, number: int) -> bytes:
        """The same as `_command`, filled into a template."""
        key = half.queue.topic, half.queue.broker_name
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(*key)
        msg_id = _json(half.msg_id)
        header = template % (
            int(half.offset_msg_id[-_HEX_DIGITS_OF_OFFSET:], 16),
            VERDICTS[decision],
            msg_id,
            half.offset,
            _json(half.transaction_id) if half.transaction_id else msg_id,
            number,
        )
        return _prefix(4 + len(header), len(header)) + header

    def _template(self, topic: str, broker: str) -> bytes:
        return _TEMPLATE.format(
            broker=quoted(broker),
            group=quoted(self._group),
            topic=quoted(topic),
            version=VERSION_4_9_8,
        ).encode()

    def _send_slowly(
        self,
        connection: Connection,
        address: str,
        half: SendResult,
        decision: Decision,
        remark: str,
    ) -> None:
        command = self._command(half, decision, remark)
        for hook in self._instance.hooks:
            hook.before_request(address, command)
        connection.oneway(command)

    def _command(self, half: SendResult, decision: Decision, remark: str) -> Command:
        header = EndTransactionRequest(
            topic=half.queue.topic,
            producer_group=self._group,
            tran_state_table_offset=half.offset,
            commit_log_offset=parse_offset_msg_id(half.offset_msg_id).offset,
            commit_or_rollback=VERDICTS[decision],
            msg_id=half.msg_id,
            transaction_id=half.transaction_id or half.msg_id,
            bname=half.queue.broker_name,
        )
        return Command(
            code=END_TRANSACTION.code,
            ext=header.to_ext(),
            remark=remark or None,
            codec=self._instance.codec,
        )

    async def _send_later(
        self, address: str, half: SendResult, decision: Decision, remark: str
    ) -> None:
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                connection = await self._instance.connections.get(address)
        except (GantryError, TimeoutError) as error:
            _say_unsent(half, str(error) or f"no connection within {END_SECONDS_MAX:g} s")
        else:
            self._send_slowly(connection, address, half, decision, remark)


def _say_unsent(half: SendResult, why: str) -> None:
    log.warning("end of transaction %s not sent: %s; the broker will ask", half.msg_id, why)
