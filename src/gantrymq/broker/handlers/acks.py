"""Acknowledging popped messages, and changing how long they stay invisible."""

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.broker.errors import BadRequest, IllegalMessage, NoSuchDelivery
from gantrymq.broker.policy import Policy
from gantrymq.broker.pop.acks import AckAnswer, Acks
from gantrymq.broker.pop.checkpoints import PopCheckpoint
from gantrymq.broker.pop.checks import INVISIBLE_MS_MAX, illegal_queue, with_fields
from gantrymq.broker.pop.order import OrderTable
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.pop.reviving import Reviver
from gantrymq.broker.pop.waiting import PollRooms
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.protocol import calls as c
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers import pop as p
from gantrymq.protocol.pop import (
    ORDER_REVIVE_QUEUE,
    BatchAck,
    Handle,
    read_batch_ack,
    real_topic,
)
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append
from gantrymq.store.engine import Store


class AckHandler:
    """ACK_MESSAGE (200051), CHANGE_MESSAGE_INVISIBLETIME (200053), BATCH_ACK_MESSAGE (200151).

    Acknowledging a delivery that is over (acknowledged before, or its invisible time passed) is not
    an error: clients repeat requests, and the broker revives the message if it must.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        policy: Policy,
        revive_log: ReviveLog,
        reviver: Reviver,
        order: OrderTable,
        pops: PollRooms,
        clock: WallClock,
    ) -> None:
        self._config, self._store, self._policy = config, store, policy
        self._offsets, self._clock = registry.offsets, clock
        self._log, self._reviver, self._order, self._pops = revive_log, reviver, order, pops
        self._acks = Acks(revive_log)
        self.change = with_fields(p.ChangeInvisibleResponse(), self._change)

    # ACK_MESSAGE and BATCH_ACK_MESSAGE

    def ack(self, connection: Connection, command: Command) -> None:
        """ACK_MESSAGE (200051): acknowledge one popped message."""
        h = c.ACK_MESSAGE.request.parse(command.ext)
        self._check_queue(h.topic, h.queue_id, connection)
        first, end = self._range(h.topic, h.queue_id)
        if not first <= h.offset <= end:
            raise NoSuchDelivery(
                f"offset is illegal, key:{h.topic}@{h.queue_id}, commit:{h.offset}, "
                f"store:{first}~{end}"
            )
        handle = Handle.parse(h.extra_info)
        place = h.consumer_group, h.topic, h.queue_id
        if handle.is_ordered:
            self._ack_ordered(*place, h.offset, handle.pop_ms)
            connection.reply(command)
            return
        found = self._find(*place, handle.start, handle.pop_ms, [h.offset])
        if found is None:
            connection.reply(command)
        else:
            self._acks.add(*found, AckAnswer(connection, command, 1))

    def ack_many(self, connection: Connection, command: Command) -> None:
        """BATCH_ACK_MESSAGE (200151): acknowledge popped messages of several queues."""
        acks = read_batch_ack(command.body)
        if not acks:
            raise NoSuchDelivery("no acknowledgement in this batch")
        found: list[tuple[PopCheckpoint, int]] = []
        for ack in acks:
            found += self._sorted_out(ack)
        answer = AckAnswer(connection, command, len(found))
        if not found:
            answer.settled("")
        for checkpoint, bits in found:
            self._acks.add(checkpoint, bits, answer)

    def _sorted_out(self, ack: BatchAck) -> list[tuple[PopCheckpoint, int]]:
        """The checkpoint and the bits of one entry; ordered messages are acknowledged here."""
        topic = real_topic(ack.t, ack.c, ack.r)
        first, end = self._range(topic, ack.q)
        offsets = [offset for offset in ack.offsets if first <= offset <= end]
        if ack.rq == ORDER_REVIVE_QUEUE:
            for offset in offsets:
                self._ack_ordered(ack.c, topic, ack.q, offset, ack.pt)
            return []
        found = self._find(ack.c, topic, ack.q, ack.so, ack.pt, offsets)
        return [] if found is None else [found]

    def _find(
        self, group: str, topic: str, queue_id: int, start: int, pop_ms: int, offsets: list[int]
    ) -> tuple[PopCheckpoint, int] | None:
        """The open checkpoint, and the bits of those messages that are not acknowledged yet."""
        checkpoint = self._log.open.get((topic, group, queue_id, start, pop_ms))
        if checkpoint is None or checkpoint.reviving:
            return None
        bits = checkpoint.bits(offsets) & ~checkpoint.acked
        return (checkpoint, bits) if bits else None

    def _ack_ordered(self, group: str, topic: str, queue_id: int, offset: int, pop_ms: int) -> None:
        progress = self._offsets.get(group, topic, queue_id) or 0
        if offset < progress:
            return
        place = self._order.ack(group, topic, queue_id, progress, offset, pop_ms)
        if place is None:
            return
        if place < 0:
            raise IllegalMessage(
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{progress}, "
                f"commit:{offset}, next:{place}"
            )
        self._offsets.commit(group, topic, queue_id, place)
        self._pops.wake(topic, group)

    # CHANGE_MESSAGE_INVISIBLETIME

    def _change(self, connection: Connection, command: Command) -> None:
        """CHANGE_MESSAGE_INVISIBLETIME (200053): keep a message invisible for another time.

        The new time (ms) counts from now.
        """
        h = c.CHANGE_MESSAGE_INVISIBLETIME.request.parse(command.ext)
        self._check_queue(h.topic, h.queue_id, connection)
        first, end = self._range(h.topic, h.queue_id)
        if not first <= h.offset < end:
            raise NoSuchDelivery(f"{h.topic}@{h.queue_id} has no message {h.offset}")
        if h.invisible_time < 0:
            raise BadRequest(f"invisibleTime {h.invisible_time} is negative")
        h = msgspec.structs.replace(h, invisible_time=min(h.invisible_time, INVISIBLE_MS_MAX))
        handle = Handle.parse(h.extra_info)
        if handle.is_ordered:
            self._change_ordered(connection, command, h, handle)
            return
        place = h.consumer_group, h.topic, h.queue_id
        found = self._find(*place, handle.start, handle.pop_ms, [h.offset])
        if found is None or found[0].acking & found[1]:
            raise NoSuchDelivery(
                f"this delivery of {h.topic}@{h.queue_id} offset {h.offset} is over: "
                "acknowledged, or its invisible time passed"
            )
        self._lend_again(connection, command, h, *found)

    def _lend_again(
        self,
        connection: Connection,
        command: Command,
        h: p.ChangeInvisibleRequest,
        former: PopCheckpoint,
        bits: int,
    ) -> None:
        """Store a new checkpoint for this message; then settle the message in the former one."""
        pop_ms = self._clock.now_ms()
        while (h.topic, h.consumer_group, h.queue_id, h.offset, pop_ms) in self._log.open:
            pop_ms += 1
        checkpoint = PopCheckpoint(
            h.topic,
            h.consumer_group,
            h.queue_id,
            h.offset,
            [h.offset],
            pop_ms,
            h.invisible_time,
            self._config.broker_name,
            former.revive_queue,
        )
        former.acking |= bits

        def stored(record: Append) -> None:
            former.acking &= ~bits
            if record.status.is_stored:
                self._reviver.look(checkpoint.due_ms)
                self._log.settle(former, bits, settled)
            else:
                self._log.watch_again(former)
                self._refuse(connection, command, record)

        def settled(record: Append) -> None:
            if not record.status.is_stored:
                self._refuse(connection, command, record)
                return
            answer = p.ChangeInvisibleResponse(
                pop_time=pop_ms, invisible_time=h.invisible_time, revive_qid=former.revive_queue
            )
            connection.reply(command, ext=answer.to_ext())

        self._log.put(checkpoint, stored)

    def _refuse(self, connection: Connection, command: Command, record: Append) -> None:
        remark = record.error or record.status.name
        ext = p.ChangeInvisibleResponse().to_ext()
        connection.reply(command, ResponseCode.SYSTEM_ERROR, ext=ext, remark=remark)

    def _change_ordered(
        self, connection: Connection, command: Command, h: p.ChangeInvisibleRequest, handle: Handle
    ) -> None:
        progress = self._offsets.get(h.consumer_group, h.topic, h.queue_id) or 0
        at_ms = self._clock.now_ms() + h.invisible_time
        changed = h.offset >= progress and self._order.show_again_at(
            h.consumer_group, h.topic, h.queue_id, progress, h.offset, handle.pop_ms, at_ms
        )
        if not changed:
            raise NoSuchDelivery(f"this delivery of {h.topic}@{h.queue_id} is over")
        self._pops.wake(h.topic, h.consumer_group)
        answer = p.ChangeInvisibleResponse(
            pop_time=handle.pop_ms,
            invisible_time=at_ms - handle.pop_ms,
            revive_qid=handle.revive_queue,
        )
        connection.reply(command, ext=answer.to_ext())

    # checks

    def _check_queue(self, topic: str, queue_id: int, connection: Connection) -> None:
        found = self._policy.topic(topic)
        if not 0 <= queue_id < found.read_queue_nums:
            raise IllegalMessage(illegal_queue(queue_id, found, connection.address))

    def _range(self, topic: str, queue_id: int) -> tuple[int, int]:
        return self._store.queues.min_offset(topic, queue_id), self._store.queues.max_offset(
            topic, queue_id
        )
