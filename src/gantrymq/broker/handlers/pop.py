"""POP: messages of any queue, invisible to other pops for a time, with long polling."""

import asyncio
from collections.abc import Awaitable, Hashable
from functools import partial

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest, InvalidParameter, TooLate, TooManyPopped
from gantrymq.broker.pop.checks import INVISIBLE_MS_MAX, PopChecks, with_fields
from gantrymq.broker.pop.pop_reader import PoppedBatch, PopResult, PopSpec, Steps
from gantrymq.broker.pop.pop_state import PopState
from gantrymq.broker.pop.retry_records import with_receipts
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.pull_filter import EVERYTHING, Filters, PullFilter
from gantrymq.protocol import calls as c
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import ONEWAY_FLAG, Command, response
from gantrymq.protocol.headers import pop as p
from gantrymq.protocol.pop import (
    NORMAL,
    POP_MESSAGES_MAX,
    Handle,
    offset_info,
    order_info,
    start_info,
)
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append, ReadResult

LATE_MS_MAX = 500
"""A request that is older than its poll time by more than this is refused: its client gave up."""
OPEN_MAX = 200_000
"""Checkpoints that may be open at once (RocketMQ's popCkMaxBufferSize)."""


class PopHandler:
    """POP_MESSAGE, PEEK_MESSAGE, NOTIFICATION and POLLING_INFO."""

    def __init__(
        self,
        config: BrokerConfig,
        state: PopState,
        checks: PopChecks,
        filters: Filters,
        stats: BrokerStats,
        clock: WallClock,
    ) -> None:
        self.config, self._checks, self._filters = config, checks, filters
        self._stats, self._clock = stats, clock
        self._log, self._reviver, _, self.reader, self.pops, self.notifications = state
        self._background = Background("pops that read from disk")
        self.pop = with_fields(p.PopResponse(), self._pop)
        self.notify = with_fields(p.NotificationResponse(), self._notify)
        self.polling = with_fields(p.PollingInfoResponse(), self._polling)

    # POP_MESSAGE

    def _pop(self, connection: Connection, command: Command) -> None:
        """POP_MESSAGE (200050): answer at once, or hold the request until messages come.

        A held request ends at its deadline without messages.
        """
        h = c.POP_MESSAGE.request.parse(command.ext)
        now_ms = self._clock.now_ms()
        born_ms = h.born_time or now_ms
        if now_ms - born_ms - h.poll_time > LATE_MS_MAX:
            raise TooLate(f"the broker[{self.config.broker_ip1}] pop message is timeout too much")
        if h.max_msg_nums > POP_MESSAGES_MAX:
            raise InvalidParameter(
                f"the broker[{self.config.broker_ip1}] pop message's num is greater than 32"
            )
        self._checks.allowed(h.topic, h.consumer_group, h.queue_id, connection.address)
        ordered = bool(h.order)
        if not ordered:
            self._checks.retryable(h.topic, h.consumer_group)
        spec = PopSpec(
            h.topic,
            h.consumer_group,
            h.queue_id,
            max(1, h.max_msg_nums),
            self.config.max_transfer_bytes_on_message_in_memory,
            min(max(0, h.invisible_time), INVISIBLE_MS_MAX),
            h.init_mode,
            f"{h.exp_type} {h.exp}",
            self._filter(h),
            ordered,
            h.attempt_id,
        )
        left_ms = min(h.poll_time, born_ms + h.poll_time - now_ms)
        deadline = connection.loop.time() + max(0, left_ms) / 1000
        if not ordered and len(self._log.open) >= OPEN_MAX:
            raise TooManyPopped(f"{OPEN_MAX} pops are not acknowledged yet: ack some first")
        HeldPop(self, connection, command, spec, deadline).attempt()

    def _filter(self, h: p.PopRequest) -> PullFilter:
        if not h.exp:
            return EVERYTHING
        return self._filters.of_request(h.consumer_group, h.topic, h.exp_type, h.exp)

    def run(self, pop: "HeldPop", result: PopResult, steps: Steps) -> bool:
        """Read the queues; False if there is certainly no message for this pop."""
        try:
            cold = next(steps)
        except StopIteration:
            return self._settle(pop, result)
        except OSError as error:
            self._fail(pop, result, error)
            return True
        self._background.spawn(self._run_cold(pop, result, steps, cold))
        return True

    async def _run_cold(
        self, pop: "HeldPop", result: PopResult, steps: Steps, cold: Awaitable[ReadResult]
    ) -> None:
        try:
            while True:
                cold = steps.send(await cold)
        except StopIteration:
            self._settle(pop, result)
        except OSError as error:
            steps.close()
            self._fail(pop, result, error)
        finally:
            self.pops.wake(pop.topic, pop.group)

    def _fail(self, pop: "HeldPop", result: PopResult, error: OSError) -> None:
        """A read failed: messages that other queues gave can be popped again."""
        for batch in result.batches:
            self.reader.give_back(pop.group, batch)
        pop.refuse(ResponseCode.SYSTEM_ERROR, f"reading the store failed: {error}")

    def _settle(self, pop: "HeldPop", result: PopResult) -> bool:
        """Store the checkpoints and answer; without messages hold the request or answer "none"."""
        if result.batches:
            if pop.spec.ordered:
                self._answer(pop, result, result.batches)
            else:
                self._remember(pop, result)
            return True
        loop = pop.connection.loop
        if not pop.connection.open:
            pop.stop()
        elif loop.time() >= pop.deadline:
            self._answer(pop, result, [])
        elif result.look_again:
            loop.call_soon(pop.attempt)
            return True
        elif (full := self.pops.full(pop)) is not None:
            self._answer(pop, result, [], ResponseCode.POLLING_FULL, str(full))
        else:
            self.pops.hold(pop, result.watch, self._at(pop.connection, result.opens_ms))
        return False

    def _at(self, connection: Connection, at_ms: int | None) -> float | None:
        """The loop time of a wall clock time in ms."""
        if at_ms is None:
            return None
        return connection.loop.time() + max(0, at_ms - self._clock.now_ms()) / 1000

    def _remember(self, pop: "HeldPop", result: PopResult) -> None:
        """Store the checkpoints; then answer with the messages whose checkpoint is in the log."""
        left = len(result.batches)
        good: list[PoppedBatch] = []
        errors: list[str] = []

        def stored(batch: PoppedBatch, record: Append) -> None:
            nonlocal left
            left -= 1
            assert batch.checkpoint is not None
            assert batch.move is not None
            if record.status.is_stored:
                batch.move.safe_behind(record.physical_offset + record.size)
                self._reviver.look(batch.checkpoint.due_ms)
                good.append(batch)
            else:
                self.reader.give_back(pop.group, batch)
                errors.append(record.error or record.status.name)
            if not left and good:
                self._answer(pop, result, good)
            elif not left:
                pop.refuse(ResponseCode.SYSTEM_ERROR, f"nothing can be popped: {errors[0]}")

        for batch in result.batches:
            assert batch.checkpoint is not None
            self._log.put(batch.checkpoint, partial(stored, batch))

    def _answer(
        self,
        pop: "HeldPop",
        result: PopResult,
        batches: list[PoppedBatch],
        empty: ResponseCode = ResponseCode.POLLING_TIMEOUT,
        remark: str = "NO_MESSAGE_IN_QUEUE",
    ) -> None:
        pop.stop()
        spec = pop.spec
        portions = [one.portion for one in batches]
        head = p.PopResponse(
            pop_time=result.pop_ms,
            invisible_time=spec.invisible_ms,
            revive_qid=result.revive_queue,
            rest_num=result.rest,
            start_offset_info=start_info(portions),
            msg_offset_info=offset_info(portions),
            order_count_info=_order_counts(batches) if spec.ordered else None,
        )
        body = b"".join(self._body(spec, result, one) for one in batches)
        if batches:
            self._stats.get(spec.topic, spec.group, result.count, len(body))
        else:
            self._stats.get_missed += 1
        pop.connection.reply(
            pop.command,
            ResponseCode.SUCCESS if batches else empty,
            ext=head.to_ext(),
            remark="FOUND" if batches else remark,
            body=body,
        )

    def answer_none(self, pop: "HeldPop") -> None:
        """Answer without a look at the queues."""
        self._answer(pop, self.reader.begin(pop.spec.ordered), [])

    def _body(self, spec: PopSpec, result: PopResult, batch: PoppedBatch) -> bytes:
        """The records of one queue; those of a retry topic under the topic that was asked for."""
        flag, queue_id, start, _ = batch.portion
        if flag == NORMAL or batch.topic == spec.topic:
            return batch.body
        handle = Handle(
            start,
            result.pop_ms,
            spec.invisible_ms,
            result.revive_queue,
            flag,
            self.config.broker_name,
            queue_id,
            start,
        )
        return with_receipts(batch.body, spec.topic, handle)

    # PEEK_MESSAGE

    async def peek(self, connection: Connection, command: Command) -> Command:
        """PEEK_MESSAGE (200052): the messages that a pop would get; they stay visible."""
        h = c.PEEK_MESSAGE.request.parse(command.ext)
        try:
            self._checks.allowed(h.topic, h.consumer_group, h.queue_id, connection.address)
        except GantryError as error:
            blank = p.PopResponse().to_ext()
            return response(command, error.code, ext=blank, remark=str(error))
        limit = max(0, min(h.max_msg_nums, POP_MESSAGES_MAX))
        size = self.config.max_transfer_bytes_on_message_in_memory
        spec = PopSpec(h.topic, h.consumer_group, h.queue_id, limit, size)
        body, rest = await self.reader.peek(spec)
        found = ResponseCode.SUCCESS if body else ResponseCode.PULL_NOT_FOUND
        answer = response(command, found, ext=p.PopResponse(rest_num=rest).to_ext(), body=body)
        answer.remark = "FOUND" if body else "NO_MESSAGE_IN_QUEUE"
        return answer

    # NOTIFICATION and POLLING_INFO

    def _notify(self, connection: Connection, command: Command) -> None:
        """NOTIFICATION (200054): answer when a pop would find messages. It takes none."""
        h = c.NOTIFICATION.request.parse(command.ext)
        self._checks.allowed(h.topic, h.consumer_group, h.queue_id, connection.address)
        if not h.order:
            self._checks.retryable(h.topic, h.consumer_group)
        spec = PopSpec(
            h.topic,
            h.consumer_group,
            h.queue_id,
            1,
            1,
            ordered=bool(h.order),
            attempt=h.attempt_id,
        )
        now_ms = self._clock.now_ms()
        left_ms = min(h.poll_time, (h.born_time or now_ms) + h.poll_time - now_ms)
        deadline = connection.loop.time() + max(0, left_ms) / 1000
        HeldNotification(self, connection, command, spec, deadline).attempt()

    def look(self, asked: "HeldNotification") -> bool:
        """Answer or hold a notification; True if there are messages."""
        found, seen = self.reader.has_messages(asked.spec)
        full = False
        if not found and asked.connection.loop.time() < asked.deadline:
            full = self.notifications.full(asked) is not None
            if not full:
                look_at = self._at(asked.connection, seen.opens_ms)
                self.notifications.hold(asked, seen.watch, look_at)
                return False
        asked.tell(found, full)
        return found

    def _polling(self, connection: Connection, command: Command) -> None:
        """POLLING_INFO (200055): how many pops of a group wait for messages."""
        h = c.POLLING_INFO.request.parse(command.ext)
        self._checks.allowed(h.topic, h.consumer_group, h.queue_id, connection.address)
        count = self.pops.waiting(h.topic, h.consumer_group, h.queue_id)
        connection.reply(command, ext=p.PollingInfoResponse(polling_num=count).to_ext())

    # end of held requests

    async def close(self) -> None:
        """Wait for the pops that read from disk."""
        await self._background.finish()

    def release_all(self) -> None:
        """Answer every held request, because the broker stops."""
        self.pops.release_all()
        self.notifications.release_all()

    def release(self, group: str) -> None:
        """Answer the held requests of a group: its next pop is checked for permission again."""
        self.pops.release(group)
        self.notifications.release(group)

    def forget(self, connection: Connection) -> None:
        """Drop the held requests of a closed connection."""
        self.pops.forget(connection)
        self.notifications.forget(connection)


class _Held:
    """A request that may be held until messages arrive."""

    def __init__(
        self,
        handler: PopHandler,
        connection: Connection,
        command: Command,
        spec: PopSpec,
        deadline: float,
    ) -> None:
        self._handler, self.connection, self.command = handler, connection, command
        self.spec, self.deadline = spec, deadline
        self.topic, self.group, self.queue_id = spec.topic, spec.group, spec.queue_id
        self.timer: asyncio.TimerHandle | None = None
        if command.flag & ONEWAY_FLAG:
            raise BadRequest("a pop without an answer would only hide messages")

    @property
    def kind(self) -> Hashable:
        spec = self.spec
        # Every pop of a 5.x client is an attempt of its own; only ordered ones find less by it.
        return spec.queue_id, spec.expression, spec.ordered, spec.attempt if spec.ordered else None

    def stop(self) -> None:
        """Cancel the timer of the deadline."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class HeldPop(_Held):
    """A POP_MESSAGE request that is being served."""

    def attempt(self) -> bool:
        result = self._handler.reader.begin(self.spec.ordered)
        return self._handler.run(self, result, self._handler.reader.take(self.spec, result))

    def expire(self) -> None:
        self.deadline = 0.0
        if self.connection.is_crowded:
            self._handler.answer_none(self)  # it has not taken the answers that it got
        else:
            self.attempt()

    def refuse(self, code: ResponseCode, why: str) -> None:
        self.stop()
        self.connection.reply(self.command, code, remark=why)


class HeldNotification(_Held):
    """A NOTIFICATION request that is being served."""

    def attempt(self) -> bool:
        return self._handler.look(self)

    def expire(self) -> None:
        self.deadline = 0.0
        self.attempt()

    def tell(self, found: bool, full: bool) -> None:
        self.stop()
        answer = p.NotificationResponse(has_msg=found, polling_full=full)
        self.connection.reply(self.command, ext=answer.to_ext())


def _order_counts(batches: list[PoppedBatch]) -> str:
    return ";".join(
        order_info(one.portion.flag, one.portion.queue_id, one.counts, one.portion.offsets)
        for one in batches
    )
