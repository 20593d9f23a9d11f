"""Waiting messages: recalling one, and listing them."""

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ProtocolError
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stored_copies import stored
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.broker.waiting.timer.times import due_ms
from gantrymq.broker.waiting.waiting_list import WaitingView
from gantrymq.broker.waiting.waiting_record import destination, waiting_records
from gantrymq.kernel import find_property
from gantrymq.model import TIMER_TOPIC, WRITE, DataVersion
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson, properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.timers import RecallRequest
from gantrymq.protocol.recall import RecallHandle
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

RECALL_TAG, RECALL_BODY = "_RECALL_TAG_", b"0"
QUERY_MAX = 64
"""Of how many records with the same id the right one is found: a message and its copies."""

Refusal = tuple[ResponseCode, str]


class TimerHandler:
    """RECALL_MESSAGE, GET_WAITING_MESSAGES and GET_TIMER_METRICS."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        redirect: SystemTopicRedirect,
        timers: TimerService,
        view: WaitingView,
        clock: WallClock,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._redirect, self._timers, self._view, self._clock = redirect, timers, view, clock

    async def waiting(self, connection: Connection, command: Command) -> Command:
        """GET_WAITING_MESSAGES (40100): messages that wait for their delivery time."""
        h = c.GET_WAITING_MESSAGES.request.parse(command.ext)
        return response(
            command, body=fastjson.dumps(await self._view.look(h.topic, h.count, h.from_ms))
        )

    async def metrics(self, connection: Connection, command: Command) -> Command:
        """GET_TIMER_METRICS (61): how many timer messages wait, by topic."""
        now = self._clock.now_ms()
        counts = await self._view.timers_by_topic()
        body = {
            "dataVersion": DataVersion(),
            "timingCount": {topic: {"count": n, "timeStamp": now} for topic, n in counts.items()},
        }
        return response(command, body=fastjson.dumps(body))

    # recalling

    async def recall(self, connection: Connection, command: Command) -> Command:
        """RECALL_MESSAGE (370): take back a timer message before it is delivered.

        The recall is itself a message in the timer topic, so it is as durable as the message it
        takes back.
        """
        h = c.RECALL_MESSAGE.request.parse(command.ext)
        ext = {properties.MSG_REGION: self._config.region_id}
        try:
            handle = RecallHandle.decode(h.recall_handle)
        except ProtocolError as error:
            handle, invalid = None, str(error)
        refusal = self._forbidden(h.topic)
        if refusal is None:
            if handle is None:
                refusal = ResponseCode.ILLEGAL_OPERATION, invalid
            else:
                refusal = self._misfit(h.topic, handle)
        waits = handle is not None and refusal is None and await self._waits(handle)
        if waits and handle is not None:
            refusal = await self._store_recall(connection, h, handle)
        if refusal is not None:
            return response(command, refusal[0], ext=ext, remark=refusal[1])
        assert handle is not None
        ext["recallState"] = "RECALLED" if waits else "NOT_WAITING"
        return response(command, ext=ext | c.RECALL_MESSAGE.response(msg_id=handle.msg_id).to_ext())

    def _forbidden(self, topic: str) -> Refusal | None:
        """Why this broker accepts no recall for the topic; None if it does."""
        config = self._config
        if not config.recall_message_enable or not config.timer_wheel_enable:
            return ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden"
        if not config.broker_permission & WRITE:
            text = "recall failed, broker service not available"
            return ResponseCode.SERVICE_NOT_AVAILABLE, text
        if self._registry.topics.get(topic) is None:
            return ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist"
        return None

    def _misfit(self, topic: str, handle: RecallHandle) -> Refusal | None:
        """Why the handle does not name a message that waits on this broker; None if it may."""
        if topic != handle.topic:
            return ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match"
        if handle.broker_name != self._config.broker_name:
            text = f"recall failed, the message waits on broker {handle.broker_name}"
            return ResponseCode.ILLEGAL_OPERATION, text
        left_ms = handle.deliver_ms - self._clock.now_ms()
        if not 0 < left_ms <= self._config.timer_max_delay_sec * 1000:
            text = "recall failed, timestamp invalid: the message is already delivered or never was"
            return ResponseCode.ILLEGAL_OPERATION, text
        return None

    async def _waits(self, handle: RecallHandle) -> bool:
        """Whether the message still waits.

        RocketMQ answers success in either case, and its clients rely on that; so the answer has the
        state in a field of its own.
        """
        if not self._config.message_index_enable:
            return True
        now_ms = self._clock.now_ms()
        query = await self._store.reads.query(TIMER_TOPIC, handle.msg_id, QUERY_MAX, 0, now_ms)
        for record in waiting_records(b"".join(query.records)):
            found = record.properties
            due = due_ms(found, record.head.store_ms, self._config.timer_precision_ms)
            is_recall = find_property(found, b"TIMER_DEL_UNIQKEY") is not None
            if not is_recall and destination(found)[0] == handle.topic and (due or 0) > now_ms:
                return True
        return False

    async def _store_recall(
        self, connection: Connection, h: RecallRequest, handle: RecallHandle
    ) -> Refusal | None:
        """Store the recall, unless it is stored already; returns why it could not be."""
        recalls, key = self._timers.waiting.recalls, f"{handle.topic}+{handle.msg_id}"
        if await recalls.holds(key):
            return None
        now_ms = self._clock.now_ms()
        found = {
            properties.TAGS: RECALL_TAG,
            properties.TIMER_DELETE_UNIQ_KEY: key,
            properties.UNIQ_KEY: handle.msg_id,
            properties.TIMER_DELIVER_MS: str(handle.deliver_ms),
            "BORN_TIMESTAMP": str(now_ms),
            properties.PRODUCER_GROUP: h.producer_group or "",
        }
        recall = Append(
            handle.topic, 0, RECALL_BODY, born_ms=now_ms, born_host=connection.peer_host
        )
        recall.properties = self._redirect.redirect(recall, properties.encode(found)).encode()
        with recalls.storing(key):
            await stored(self._store, recall)
            if recall.status.is_stored:
                recalls.note(key, recall.queue_offset)
                return None
        return ResponseCode.SYSTEM_ERROR, f"recall failed, execute error: {recall.error}"
