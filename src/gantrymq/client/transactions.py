"""Messages that are sent if, and only if, something else was done: half first, then your word.

async with producer.transaction(Message("orders", b"...")) as tx:
    write_row(database, tx.transaction_id)

The broker keeps the message out of sight until it hears the word. One that never comes is asked
for: see `checks`.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from gantrymq.base.errors import GantryError
from gantrymq.client.errors import ClientError, MessageRefused
from gantrymq.client.outgoing import Prepared
from gantrymq.model import Message, SendResult
from gantrymq.protocol import properties
from gantrymq.protocol.calls import END_TRANSACTION
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
    from gantrymq.client.instance import Instance
    from gantrymq.client.outbox import Selector
    from gantrymq.client.producer import Producer
    from gantrymq.model import Queue

log = logging.getLogger(__name__)

END_SECONDS_MAX: Final = 3.0
"""How long a lost connection may take to come back before the word is left to a question."""


class Decision(Enum):
    """What becomes of a half message. Unknown leaves it to the broker's next question."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"


VERDICTS: Final = {
    Decision.COMMIT: TRANSACTION_COMMIT,
    Decision.ROLLBACK: TRANSACTION_ROLLBACK,
    Decision.UNKNOWN: 0,
}


class HalfNotSafe(ClientError):
    """The half message was stored less safely than asked for: rolled back, nothing was run."""

    def __init__(self, result: SendResult) -> None:
        super().__init__(
            f"half message {result.msg_id} is stored, but {result.status}: the transaction was "
            "rolled back before it began"
        )
        self.result = result


def decision_of(value: object) -> Decision:
    """A word as a decision. True, False or None could mean anything and are none."""
    if isinstance(value, Decision):
        return value
    if isinstance(value, str) and value in {each.value for each in Decision}:
        return Decision(value)
    raise TypeError(f"a transaction is decided by commit, rollback or unknown, not by {value!r}")


def half_of(prepared: Prepared, group: str, check_after: int | None) -> Prepared:
    """Mark a message ready to be sent as the first half of a transaction of a group."""
    marks = {properties.TRANSACTION_PREPARED: "true", properties.PRODUCER_GROUP: group}
    if check_after is not None:
        marks[properties.CHECK_IMMUNITY] = str(check_after)
    prepared.properties += properties.encode(marks)
    prepared.sys_flag |= TRANSACTION_PREPARED
    return prepared


def check_message(message: Message, check_after: int | None) -> None:
    """Refuse what cannot be half of a transaction."""
    if message.delay_level or message.timer is not None:
        raise MessageRefused(
            f"message to {message.topic!r}: a transaction takes no delay; RocketMQ's brokers would "
            "delay the half message and lose it"
        )
    if check_after is not None and check_after < 0:
        raise MessageRefused(f"check_after is 0 seconds or more, not {check_after}")


class Transaction:
    """One message and the word about it; `async with` sends both."""

    def __init__(
        self, producer: "Producer", message: Message, *, queue: "Queue | None" = None,
        selector: "Selector | None" = None, timeout: float | None = None,
        check_after: int | None = None,
    ) -> None:  # fmt: skip
        check_message(message, check_after)
        self._producer, self.message = producer, message
        self._how = {"queue": queue, "selector": selector, "timeout": timeout}
        self._check_after = check_after
        self._result: SendResult | None = None
        self.decision: Decision | None = None
        """None until something was decided."""

    @property
    def result(self) -> SendResult:
        """What the broker said about the half message."""
        if self._result is None:
            raise ClientError("the half message is not sent yet: use `async with`")
        return self._result

    @property
    def transaction_id(self) -> str:
        """The message's own id: write it next to what your transaction does."""
        return self.result.msg_id

    def commit(self) -> None:
        """Deliver the message when the block ends, however it ends."""
        self.decision = Decision.COMMIT

    def rollback(self) -> None:
        """Never deliver it."""
        self.decision = Decision.ROLLBACK

    def unknown(self) -> None:
        """Say nothing now; the broker will ask."""
        self.decision = Decision.UNKNOWN

    async def __aenter__(self) -> Self:
        self.begun(await self._producer.send_half(self.message, self._check_after, **self._how))  # type: ignore[arg-type]
        return self

    def begun(self, result: SendResult) -> None:
        """The half message is stored; anything but SEND_OK is rolled back without running more."""
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
        """The local part is over: send the word that was given, or the one that follows from it.

        An exception rolls back. A block that was cancelled or killed may have done its work or
        not, so nobody knows.
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
                self.message, result.msg_id, result.transaction_id or "",
                result.queue.broker_name, self.decision.value, from_check=False,
            )  # fmt: skip


Local = Callable[[Transaction], object]
"""What a transaction does besides the message; returns a decision, or one to be awaited."""


async def run_transaction(transaction: Transaction, local: Local) -> Transaction:
    """The same as `async with`, for a function whose result is the decision."""
    async with transaction:
        value = local(transaction)
        transaction.decision = decision_of(await value if inspect.isawaitable(value) else value)
    return transaction


def run_submitted(
    transaction: Transaction,
    local: Local,
    half: asyncio.Future[SendResult],
    outcome: asyncio.Future[Transaction],
) -> None:
    """Goes on with a submitted transaction, in one go, as soon as its half message is answered."""
    try:
        transaction.begun(half.result())
    except (GantryError, asyncio.CancelledError) as error:
        if not outcome.done():
            outcome.set_exception(error)
        return
    try:
        transaction.decision = decision_of(local(transaction))
    except Exception as error:
        transaction.ended(error)
        if not outcome.done():
            outcome.set_exception(error)
        return
    transaction.end()
    if not outcome.done():
        outcome.set_result(transaction)


def end_command(
    group: str, result: SendResult, decision: Decision, remark: str, codec: int
) -> Command:
    """The request that ends a transaction whose half message was sent from here."""
    header = EndTransactionRequest(
        topic=result.queue.topic,
        producer_group=group,
        tran_state_table_offset=result.offset,
        commit_log_offset=parse_offset_msg_id(result.offset_msg_id).offset,
        commit_or_rollback=VERDICTS[decision],
        msg_id=result.msg_id,
        transaction_id=result.transaction_id,
        bname=result.queue.broker_name,
    )
    return Command(
        code=END_TRANSACTION.code, ext=header.to_ext(), remark=remark or None, codec=codec
    )


def end_soon(instance: "Instance", command: Command, half: SendResult) -> None:
    """Send the word to the broker that has the half message, now or when it can be reached."""

    def send(connection: Connection, address: str) -> None:
        for hook in instance.hooks:
            hook.before_request(address, command)
        connection.oneway(command)

    async def later(address: str) -> None:
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                send(await instance.connections.get(address), address)
        except (GantryError, TimeoutError) as error:
            _say_unsent(half, str(error) or f"no connection within {END_SECONDS_MAX:g} s")

    try:
        address = instance.routes.address_of(half.queue.broker_name)
    except GantryError as error:
        _say_unsent(half, str(error))
        return
    connection = instance.connections.ready(address)
    if connection is not None:
        send(connection, address)
    else:
        instance.spawn(later(address))


def _say_unsent(half: SendResult, why: str) -> None:
    log.warning("end of transaction %s not sent: %s; the broker will ask", half.msg_id, why)
