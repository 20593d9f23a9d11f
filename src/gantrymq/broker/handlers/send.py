"""Sending: the hottest request of a broker. It costs no task and no await a message.

A request becomes an `Append`; the store writes all appends of a turn at once and calls `_answer`
for each as soon as it is stored or refused. All answers of a turn leave in one write.
"""

import asyncio
import random
import re
from collections.abc import Callable
from typing import Any

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.broker.errors import BadRequest, Busy, GroupMissing, IllegalMessage, NotPermitted
from gantrymq.broker.handlers.send_answers import CODES, answers_in, limit_of, region_fields
from gantrymq.broker.handlers.send_append import SendAppend, received
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import SIZE_BOUNDS, BrokerStats
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.transactions.half import (
    HALF_MARK,
    asks_for_half,
    hide,
    producer_group,
    without_half_mark,
)
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.broker.waiting.redirect import DELAY_MARK, TIMER_MARK, SystemTopicRedirect
from gantrymq.kernel import (
    SendRules,
    SendRun,
    batch_items,
    find_property,
    offset_msg_ids,
    read_send,
    stored_form,
)
from gantrymq.model import RETRY_PREFIX, TIMER_TOPIC, WRITE, TopicConfig, dead_topic
from gantrymq.protocol import properties
from gantrymq.protocol.codes import VERSION_3_4_9
from gantrymq.protocol.command import ONEWAY_FLAG, Command
from gantrymq.protocol.headers.messages import SendRequest, SendRequestV2
from gantrymq.protocol.ids import offset_msg_id
from gantrymq.protocol.recall import RecallHandle
from gantrymq.protocol.record import PROPERTIES_BYTES_MAX, TRANSACTION_MASK
from gantrymq.protocol.trace import DEFAULT_REGION
from gantrymq.remoting.admission import BusyAnswer
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import Refusals
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.engine import Store

PREPARED = 0x4
LARGE_BYTES = 16 * 1024
"""A send counts once more for each 16 KiB of its body, so that waiting sends cannot fill the
memory."""
PROPERTY_BYTES_MIN = 4
"""Of a property in its stored form: a name and a value of one character, and two separators."""
_HALF_FLAGS = {str(flag | PREPARED): str(flag) for flag in (0, 1)}
"""Flags of prepared messages, compressed or not, and what remains of them."""

_NOT_IN_JSON = re.compile(r'["\\\x00-\x1f]')
"""What would have to be escaped in an answer, which is put together without a look at its parts."""

_OK = PutStatus.PUT_OK


class SendHandler:
    """SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        policy: Policy,
        redirect: SystemTopicRedirect,
        half_messages: HalfMessageTable,
        stats: BrokerStats,
        rng: random.Random,
        store_host: bytes,
        refusals: Refusals,
    ) -> None:
        self._refusals = refusals
        self._half_messages = half_messages
        self._config, self._store, self._registry = config, store, registry
        self._policy, self._redirect, self._stats, self._rng = policy, redirect, stats, rng
        self._store_host = store_host
        self._waiting = 0
        """Sends that wait for the disk; a large one counts as several."""
        self._progress = 0, 0.0
        """How many messages were stored, and when that was seen to change."""
        self._loop = asyncio.get_running_loop()
        self.take_settings()

    def take_settings(self) -> None:
        """Read the settings once instead of for every message; called again when they change."""
        config, store = self._config, self._store.config
        self._region = region_fields(config.region_id)
        """In every answer to a send, refusals included."""
        self._stored_answer, self._send_answer = answers_in(config.region_id)
        capacity = config.send_thread_pool_queue_capacity
        self._held_back_from = max(1, capacity // 2)
        self._busy = BusyAnswer(
            "[OVERLOAD]system busy, start flow control for a while: too many sends wait for the "
            f"disk, sendThreadPoolQueueCapacity is {capacity}",
            self._region,
        )
        self._plain_bytes_max = PROPERTY_BYTES_MIN * config.user_property_max_num
        """Properties with fewer bytes need not be counted."""
        # RocketMQ's consumers from 5.x on trace nothing that came without a region.
        tail = {**self._region, properties.CLUSTER: config.broker_cluster_name}
        self._tail = properties.encode(tail).encode()
        self._half_tail = self._tail + HALF_MARK.encode()
        writable = config.broker_permission & WRITE
        self._topics = self._registry.topics.table if writable else {}
        """Topics that a plain send may go to without a closer look. Without write permission there
        are none: `Policy.sendable` decides."""
        self.rules = SendRules(
            # The kernel's answers know only the default region.
            self._topics if config.region_id == DEFAULT_REGION else {},
            self._tail,
            self._store_host,
            min(self._plain_bytes_max, PROPERTIES_BYTES_MAX),
            min(LARGE_BYTES - 1, store.max_message_bytes),
            store.record_bytes_max,
        )

    # plain sends

    def rules_for(self, connection: Connection) -> tuple[SendRules, None]:
        """Which sends are plain; the same for every connection."""
        return self.rules, None

    def take(self, connection: Connection, run: SendRun) -> bool:
        """Store plain sends that came together; False if some of them have to be refused."""
        if self._waiting + len(run) > self._config.send_thread_pool_queue_capacity:
            return False
        run.connection, run.reply = connection, self._answer_run
        self._waiting += len(run)
        self._store.put(run)
        return True

    def _answer_run(self, run: SendRun) -> None:
        status, connection = run.status, run.connection
        self._waiting -= len(run)
        if status is not _OK and not status.is_stored:
            for command in run.commands():
                remark = self._refusal(run)
                connection.reply(command, CODES[status], ext=self._region, remark=remark)
            return
        for topic, count, size, larger in run.counts(SIZE_BOUNDS):
            self._stats.put_many(topic, count, size, larger)
        if run.asked:
            code = 0 if status is _OK else CODES[status]
            connection.reply_frames(run.answers(code), run.asked)

    # the two header forms

    def v2(self, connection: Connection, command: Command) -> None:
        """SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320): header fields have one-letter names."""
        if self._waiting >= self._config.send_thread_pool_queue_capacity:
            self._refuse(connection, command)
            return
        try:
            self._quick(connection, command)
        except GantryError as error:
            connection.reply(command, error.code, ext=self._region, remark=str(error))

    def v1(self, connection: Connection, command: Command) -> None:
        """SEND_MESSAGE (10): header fields have long names; Go clients send it."""
        if self._waiting >= self._config.send_thread_pool_queue_capacity:
            self._refuse(connection, command)
            return
        try:
            self._careful(connection, command, SendRequest.parse(command.ext))
        except GantryError as error:
            connection.reply(command, error.code, ext=self._region, remark=str(error))

    def _refuse(self, connection: Connection, command: Command) -> None:
        """Refuse a send without a look at it: whoever is overloaded must not work for nothing."""
        self._refusals.count("sendThreadPoolQueueCapacity", connection.address)
        if not command.flag & ONEWAY_FLAG:
            connection.reply_frame(self._busy.frame(command))

    @property
    def waiting(self) -> int:
        return self._waiting

    def is_congested(self) -> bool:
        """Whether connections should be held back, because many sends wait for the disk.

        Not if the disk does nothing at all for waitTimeMillsInSendQueue: then sends are refused,
        and everything else is served.
        """
        if self._waiting < self._held_back_from:
            return False
        now, stored = self._loop.time(), self._store.written.count
        if stored != self._progress[0]:
            self._progress = stored, now
        limit_ms = self._store.config.queue_wait_max_ms
        return not limit_ms or (now - self._progress[1]) * 1000 < limit_ms

    def _quick(self, connection: Connection, command: Command) -> None:
        """A plain message of a known topic is stored without a typed header."""
        if command.ext.get("f") in _HALF_FLAGS and self._quick_half(connection, command):
            return
        plain = read_send(command.ext, self._tail)
        topic = self._topics.get(plain[0]) if plain is not None else None
        if plain is None or topic is None or plain[0] == TIMER_TOPIC:
            self._careful(connection, command, SendRequestV2.parse(command.ext))
            return
        name, queue_id, flag, sys_flag, born_ms, reconsumed, stored, uniq_key, waits = plain
        queue_id = self._queue_of(topic, queue_id, connection)
        message = received(
            connection, command, name, queue_id, flag, sys_flag, born_ms, reconsumed, stored
        )
        message.uniq_key, message.wait = uniq_key, waits
        if (
            len(stored) > self._plain_bytes_max
            or len(command.body) >= LARGE_BYTES
            or not uniq_key.isalnum()
        ):
            self._put(message)
            return
        message.reply = self._answer  # type: ignore[assignment]
        self._waiting += 1
        self._store.put(message)

    def _quick_half(self, connection: Connection, command: Command) -> bool:
        """A half message that is plain otherwise; False if `_careful` has to look at it."""
        ext = command.ext
        text = ext.get("i", "")
        bare, group = without_half_mark(text), producer_group(text)
        if (
            bare is None
            or not group
            or self._half_messages.full
            or self._config.reject_transaction_message
        ):
            return False
        plain = read_send({**ext, "f": _HALF_FLAGS[ext["f"]], "i": bare}, self._half_tail)
        topic = self._topics.get(plain[0]) if plain is not None else None
        if plain is None or topic is None:
            return False
        name, queue_id, flag, sys_flag, born_ms, reconsumed, stored, uniq_key, waits = plain
        queue_id = self._queue_of(topic, queue_id, connection)
        message = received(
            connection, command, name, queue_id, flag, sys_flag, born_ms, reconsumed, stored
        )
        message.uniq_key, message.wait = uniq_key, waits
        message.held = name, queue_id, group
        hide(message)
        self._put(message, self._half_answer)
        return True

    # messages that are not plain

    def _careful(
        self, connection: Connection, command: Command, h: SendRequest | SendRequestV2
    ) -> None:
        topic = self._policy.sendable(h.topic, h.default_topic, h.default_topic_queue_nums)
        queue_id = self._queue_of(topic, h.queue_id, connection)
        text = h.properties or ""
        reconsumed = h.reconsume_times or 0
        message = received(
            connection,
            command,
            h.topic,
            queue_id,
            h.flag,
            h.sys_flag,
            h.born_timestamp,
            reconsumed,
        )
        if h.topic.startswith(RETRY_PREFIX):
            # A committed message keeps its transaction flag; here it must not count as half.
            message.sys_flag &= ~TRANSACTION_MASK
            text = self._divert_to_dead(message, command, h, text)
        elif asks_for_half(text):
            self._put_half(message, text, h)
            return
        elif h.sys_flag & PREPARED:
            raise IllegalMessage("sysFlag says prepared, but the property TRAN_MSG is missing")
        if h.batch:
            message.batch = self._batch(h, command.body, text)
            for _, _, stored in message.batch:
                if len(stored) > self._plain_bytes_max:
                    self._check_property_count(stored, connection)
        self._fill(message, text)
        is_timed = message.topic == TIMER_TOPIC and not h.topic.startswith(RETRY_PREFIX)
        self._put(message, self._answer_timed if is_timed else None)

    def _put_half(self, message: SendAppend, text: str, h: SendRequest | SendRequestV2) -> None:
        """Store a half message in the half topic, where consumers cannot read it."""
        if self._config.reject_transaction_message:
            address = self._config.broker_ip1
            raise NotPermitted(f"the broker[{address}] sending transaction message is forbidden")
        if h.batch:
            raise IllegalMessage("a batch cannot be half of a transaction")
        if self._half_messages.full:
            raise Busy(
                f"[OVERLOAD]system busy: {len(self._half_messages)} transactions are undecided"
            )
        text = self._cleaned(message, text)
        if DELAY_MARK in text or TIMER_MARK in text:
            # It is redirected at the commit; but a delay that is not allowed is refused now.
            self._redirect.redirect(Append(message.topic, message.queue_id, b""), text)
        group = producer_group(text)
        if not group:
            group = h.producer_group
            text += f"{properties.PRODUCER_GROUP}\x01{group}\x02"
        message.held = message.topic, message.queue_id, group
        message.properties = text.encode() + self._tail
        hide(message)
        self._put(message, self._half_answer)

    def _half_answer(self, message: SendAppend) -> None:
        status = message.status
        if (status is _OK or status.is_stored) and message.held is not None:
            self._half_messages.hold(message, *message.held)
        self._answer(message)

    def _divert_to_dead(
        self, message: SendAppend, command: Command, h: SendRequest | SendRequestV2, text: str
    ) -> str:
        """Move a message to the dead letters if it was retried too often.

        Clients send to a retry topic themselves for ordered consumers, and when a send-back (36)
        failed.
        """
        name = h.topic[len(RETRY_PREFIX) :]
        group = self._registry.groups.get(name)
        if group is None:
            raise GroupMissing(f"subscription group not exist, {name}")
        limit = group.retry_max_times
        if command.version >= VERSION_3_4_9 and h.max_reconsume_times is not None:
            limit = h.max_reconsume_times
        if message.reconsume_times < limit:
            return text
        self._policy.ensure_topic(dead_topic(name), 1)
        message.topic, message.queue_id = dead_topic(name), 0
        found = properties.decode(text)
        self._stats.dead_letter(name, found.get(properties.RETRY_TOPIC, h.topic))
        return properties.encode({k: v for k, v in found.items() if k != properties.DELAY})

    def _batch(self, h: Any, body: bytes, text: str) -> list[tuple[int, bytes, bytes]]:
        if h.topic.startswith(RETRY_PREFIX):
            raise IllegalMessage("batch request does not support retry group " + h.topic)
        if self._redirect.wants_to_wait(text):
            raise IllegalMessage("a batch takes no delay: send such messages one by one")
        count_max = self._config.max_messages_per_batch
        if len(body) > self._config.max_message_size:
            raise IllegalMessage(f"a batch of {len(body)} bytes (maxMessageSize)")
        items = batch_items(body, self._tail, count_max)
        if len(items) > count_max:
            raise self._refusals.reached("maxMessagesPerBatch", "too large a batch", "a batch")
        if not items:
            raise IllegalMessage("batch without a message")
        return items

    # storing and answering

    def _queue_of(self, topic: TopicConfig, queue_id: int, connection: Connection) -> int:
        if queue_id < 0:
            return self._rng.randrange(max(1, topic.write_queue_nums))
        if queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
            raise BadRequest(
                f"request queueId[{queue_id}] is illegal, topic {topic.topic_name} has "
                f"{counted(topic.write_queue_nums, 'write queue')}. Producer: {connection.address}"
            )
        return queue_id

    def _cleaned(self, message: SendAppend, text: str) -> str:
        """The properties without a POP receipt; sets `wait` and `uniq_key` for the answer."""
        text = stored_form(text.encode()).decode()
        message.wait = properties.value_of(text, properties.WAIT) != "false"
        message.uniq_key = properties.value_of(text, properties.UNIQ_KEY)
        return text

    def _fill(self, message: SendAppend, text: str) -> None:
        """Set the properties in the form in which they are stored, redirected if they must wait."""
        text = self._cleaned(message, text)
        if message.batch is None:
            text = self._redirect.redirect(message, text)
        message.properties = text.encode() + self._tail

    def _put(self, message: SendAppend, reply: Callable[[SendAppend], None] | None = None) -> None:
        if len(message.properties) > self._plain_bytes_max:
            self._check_property_count(message.properties, message.connection)
        key = message.uniq_key
        if key and not key.isalnum() and _NOT_IN_JSON.search(key):
            raise IllegalMessage("UNIQ_KEY has a quote, a backslash or a control character")
        answer, weight = reply or self._answer, 1 + len(message.body) // LARGE_BYTES

        def answer_large(message: SendAppend) -> None:
            self._waiting -= weight - 1
            answer(message)

        message.reply = answer if weight == 1 else answer_large  # type: ignore[assignment]
        self._waiting += weight
        self._store.put(message)

    def _check_property_count(self, stored: bytes, connection: Connection) -> None:
        found = stored.count(b"\x02")
        if found > self._config.user_property_max_num:
            what = f"a message with {found} properties"
            raise self._refusals.reached("userPropertyMaxNum", what, connection.address)

    def _answer_timed(self, message: SendAppend) -> None:
        """Answer the send of a timer message with the handle by which it can be recalled."""
        command = message.command
        if not message.status.is_stored or command.flag & ONEWAY_FLAG:
            self._answer(message)
            return
        self._waiting -= 1
        self._stats.put(message.topic, 1, message.size)
        due = int(find_property(message.properties, b"TIMER_OUT_MS") or 0) + 1
        topic = (find_property(message.properties, b"REAL_TOPIC") or b"").decode()
        name = self._config.broker_name
        ext = {
            **self._region,
            "msgId": offset_msg_id(self._store_host, message.physical_offset),
            "queueId": str(message.echo_queue_id),
            "queueOffset": str(message.queue_offset),
        }
        if message.uniq_key:
            ext["transactionId"] = message.uniq_key
        if message.uniq_key and " " not in message.uniq_key:
            ext["recallHandle"] = RecallHandle(topic, name, due, message.uniq_key).encode()
        message.connection.reply(command, CODES[message.status], ext=ext)

    def _refusal(self, message: SendAppend | SendRun) -> str:
        """Why the store refused, with the name of the limit if there is one."""
        remark = message.error or message.status.name
        key = limit_of(message.status, remark)
        if key is None:
            return remark
        self._refusals.count(key, message.connection.address)
        return remark if key in remark else f"{remark} ({key})"

    def _answer(self, message: SendAppend) -> None:
        status, command = message.status, message.command
        self._waiting -= 1
        if status is not _OK and not status.is_stored:
            remark = self._refusal(message)
            message.connection.reply(command, CODES[status], ext=self._region, remark=remark)
            return
        code = 0 if status is _OK else CODES[status]
        batch = message.batch
        self._stats.put(message.topic, 1 if batch is None else len(batch), message.size)
        if command.flag & ONEWAY_FLAG:
            return
        if batch is None:
            answer = self._stored_answer(
                command.codec,
                code,
                command.opaque,
                self._store_host,
                message.physical_offset,
                message.echo_queue_id,
                message.queue_offset,
                message.uniq_key,
            )
        else:
            ids = offset_msg_ids(self._store_host, message.physical_offsets)
            answer = self._send_answer(
                command.codec,
                code,
                command.opaque,
                ids,
                message.echo_queue_id,
                message.queue_offset,
                message.uniq_key,
            )
        message.connection.reply_frame(answer)
