"""Check-back: answers a broker that asks what became of a transaction."""

import asyncio
import inspect
import logging
from collections.abc import Callable

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.transactions import VERDICTS, Decision, decision_of
from gantrymq.client.sending.trace_sink import TraceSink
from gantrymq.kernel import cut_records
from gantrymq.model import Queue
from gantrymq.protocol import properties
from gantrymq.protocol.calls import CHECK_TRANSACTION_STATE, END_TRANSACTION
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.transactions import CheckTransactionRequest, EndTransactionRequest
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)


class Unfinished(Received):
    """A half message whose transaction a broker asks about."""

    __slots__ = ()

    @property
    def transaction_id(self) -> str:
        """The id that the local transaction stored: `Transaction.transaction_id`."""
        return self.msg_id


CheckHandler = Callable[[Unfinished], object]
"""Says commit, rollback or unknown, or returns something to be awaited that does."""

Question = tuple[Connection, CheckTransactionRequest, Unfinished]


def read_question(command: Command) -> tuple[CheckTransactionRequest, Unfinished]:
    """The header and the half message of a check-back."""
    header = CHECK_TRANSACTION_STATE.request.parse(command.ext)
    cuts, bad = cut_records(command.body)
    if bad is not None or not cuts:
        raise GantryError(f"no message in the question: {bad}")
    _, body_at, head = cuts[0]
    broker_name = header.bname or ""
    probe = Unfinished(command.body, body_at, head, Queue("", broker_name, head.queue_id))
    queue = Queue(probe.stored_topic, broker_name, head.queue_id)
    return header, Unfinished(command.body, body_at, head, queue)


class CheckBacks:
    """The check-backs of one producer group: a few run at a time, some wait, more are dropped."""

    def __init__(
        self,
        instance: Instance,
        group: str,
        options: ProducerOptions,
        handler: Callable[[], CheckHandler | None],
        trace: TraceSink | None,
    ) -> None:
        self._instance, self._group, self._options = instance, group, options
        self._handler, self._trace = handler, trace
        self._waiting: asyncio.Queue[Question] = asyncio.Queue(options.check_request_hold_max)
        self._background = Background(f"check-backs of producer group {group}")
        self._has_workers = False
        self._said_missing = False
        self._stop_listening = instance.on_request(RequestCode.CHECK_TRANSACTION_STATE, self._asked)

    async def close(self) -> None:
        """Answer no more check-backs."""
        self._stop_listening()
        await self._background.close()

    async def _asked(self, connection: Connection, command: Command) -> Command | None:
        """Queue a check-back; None passes it on to another producer of this client."""
        header, message = read_question(command)
        if message.properties.get(properties.PRODUCER_GROUP) != self._group:
            return None
        if self._handler() is None:
            self._say_missing(message)
            self._answer((connection, header, message), Decision.UNKNOWN)
            return None
        if not self._has_workers:
            self._has_workers = True
            for _ in range(self._options.check_thread_max):
                self._background.spawn(self._work())
        try:
            self._waiting.put_nowait((connection, header, message))
        except asyncio.QueueFull:
            log.warning(
                "no room beside %s about transactions of %s; the broker will ask again",
                counted(self._waiting.maxsize, "question"),
                self._group,
            )
        return Command(code=0)

    def _say_missing(self, message: Unfinished) -> None:
        if not self._said_missing:
            self._said_missing = True
            log.error(
                "a broker asks about transaction %s, but the producer of %s has no check handler: "
                "register one with @producer.check. Until then all its questions are answered "
                "with unknown",
                message.transaction_id,
                self._group,
            )

    async def _work(self) -> None:
        while True:
            question = await self._waiting.get()
            remark = ""
            try:
                decision = await self._decide(question[2])
            except Exception as error:
                log.exception("check of transaction %s failed", question[2].transaction_id)
                decision, remark = Decision.UNKNOWN, f"check: {type(error).__name__}: {error}"
            self._answer(question, decision, remark)

    async def _decide(self, message: Unfinished) -> Decision:
        handler = self._handler()
        assert handler is not None
        value = handler(message)
        return decision_of(await value if inspect.isawaitable(value) else value)

    def _answer(self, question: Question, decision: Decision, remark: str = "") -> None:
        """Send the decision to the broker that asked, for the copy that it asked about."""
        connection, asked, message = question
        header = EndTransactionRequest(
            topic=message.queue.topic,
            producer_group=self._group,
            tran_state_table_offset=asked.tran_state_table_offset,
            commit_log_offset=asked.commit_log_offset,
            commit_or_rollback=VERDICTS[decision],
            from_transaction_check=True,
            msg_id=message.msg_id,
            transaction_id=asked.transaction_id,
            bname=asked.bname,
        )
        command = Command(
            code=END_TRANSACTION.code,
            ext=header.to_ext(),
            remark=remark or None,
            codec=self._instance.codec,
        )
        if not connection.open:
            log.warning(
                "%s left before its question was answered; it will ask again", connection.address
            )
            return
        for hook in self._instance.hooks:
            hook.before_request(connection.address, command)
        connection.oneway(command)
        if self._trace is not None:
            self._trace.transaction_ended(
                message,
                message.msg_id,
                asked.transaction_id or "",
                message.queue.broker_name,
                decision.value,
                from_check=True,
            )
