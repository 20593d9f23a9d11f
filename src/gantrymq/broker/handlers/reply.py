"""Replies of request-reply: pushed to the client that sent the request, and stored."""

import logging
import random
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.handlers.send_answers import region_fields
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import stored
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.protocol import calls as c
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import PushReplyRequest, SendRequest, SendRequestV2
from gantrymq.protocol.ids import decode_host, offset_msg_id
from gantrymq.protocol.record import BORN_V6
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.pending_call import CallTimeout, ConnectionLost
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

PUSH_SECONDS_MAX: Final = 10.0
"""How long the client that asked may take to say that it has the reply."""
NOWHERE: Final = "0"
"""The id of a reply that was passed on and not stored; clients want one."""


class ReplyHandler:
    """SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2; sends PUSH_REPLY_MESSAGE_TO_CLIENT."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        policy: Policy,
        sessions: Sessions,
        stats: BrokerStats,
        clock: WallClock,
        rng: random.Random,
        store_host: bytes,
    ) -> None:
        self._config, self._store, self._policy, self._sessions = config, store, policy, sessions
        self._stats, self._clock, self._rng = stats, clock, rng
        self._store_host = store_host

    async def v1(self, connection: Connection, command: Command) -> Command:
        """SEND_REPLY_MESSAGE (324): header fields have long names."""
        return await self._reply(connection, command, SendRequest.parse(command.ext))

    async def v2(self, connection: Connection, command: Command) -> Command:
        """SEND_REPLY_MESSAGE_V2 (325): header fields have one-letter names."""
        return await self._reply(connection, command, SendRequestV2.parse(command.ext))

    async def _reply(
        self, connection: Connection, command: Command, h: SendRequest | SendRequestV2
    ) -> Command:
        region = region_fields(self._config.region_id)
        try:
            queue_id = self._queue_of(h)
        except GantryError as error:
            return Command(code=error.code, ext=region, remark=str(error))
        problem = await self._push(connection, command.body, h)
        answer = Command(code=0, ext=region)
        if problem:
            answer.code, answer.remark = ResponseCode.SYSTEM_ERROR, problem
        else:
            answer.ext |= {"msgId": NOWHERE, "queueId": str(queue_id), "queueOffset": "0"}
        if self._config.store_reply_message_enable:
            # As RocketMQ does, store the reply even if its client could not be reached: an operator
            # can find it in the reply topic.
            await self._keep(connection, command.body, h, queue_id, answer)
        return answer

    def _queue_of(self, h: SendRequest | SendRequestV2) -> int:
        topic = self._policy.sendable(h.topic, h.default_topic, h.default_topic_queue_nums)
        if h.queue_id < 0:
            return self._rng.randrange(max(1, topic.write_queue_nums))
        if h.queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
            raise BadRequest(
                f"request queueId[{h.queue_id}] is illegal, topic {topic.topic_name} has "
                f"{counted(topic.write_queue_nums, 'write queue')}"
            )
        return h.queue_id

    # passing it on

    async def _push(
        self, connection: Connection, body: bytes, h: SendRequest | SendRequestV2
    ) -> str:
        """Push the reply to the client that sent the request; returns the error, or ""."""
        found = properties.decode(h.properties or "")
        client_id = found.get(properties.REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{properties.REPLY_TO_CLIENT}] is null"
        asker = self._sessions.producer_at(client_id)
        if asker is None or not asker.open:
            return f"push reply message fail, channel of <{client_id}> not found."
        if asker.slow_reader:
            return f"push reply message to {client_id} fail: it does not read what it has."
        header = self._header(connection, h, found)
        push = Command(code=c.PUSH_REPLY_MESSAGE_TO_CLIENT.code, ext=header.to_ext(), body=body)
        try:
            answer = await asker.call(push, PUSH_SECONDS_MAX)
        except (CallTimeout, ConnectionLost) as error:
            log.warning("reply not passed on to %s: %s", client_id, error)
            return f"push reply message to {client_id} fail: {error}"
        if answer.code != ResponseCode.SUCCESS:
            return f"push reply message to {client_id} fail: {answer.remark or answer.code}"
        return ""

    def _header(
        self, connection: Connection, h: SendRequest | SendRequestV2, found: dict[str, str]
    ) -> PushReplyRequest:
        now_ms = self._clock.now_ms()
        return PushReplyRequest(
            producer_group=h.producer_group,
            topic=h.topic,
            default_topic=h.default_topic,
            default_topic_queue_nums=h.default_topic_queue_nums,
            queue_id=h.queue_id,
            sys_flag=h.sys_flag,
            born_timestamp=h.born_timestamp,
            flag=h.flag,
            properties=properties.encode({**found, properties.PUSH_REPLY_TIME: str(now_ms)}),
            reconsume_times=h.reconsume_times,
            unit_mode=h.unit_mode or False,
            born_host=_place(connection.peer_host),
            store_host=_place(self._store_host),
            store_timestamp=now_ms,
        )

    # keeping it

    async def _keep(
        self,
        connection: Connection,
        body: bytes,
        h: SendRequest | SendRequestV2,
        queue_id: int,
        answer: Command,
    ) -> None:
        """Store the reply and put its place into the answer.

        If storing fails the answer stays as it is: the reply was pushed.
        """
        host = connection.peer_host
        found = properties.decode(h.properties or "")
        kept = Append(
            h.topic,
            queue_id,
            body,
            properties=properties.encode(found).encode(),
            flag=h.flag,
            sys_flag=h.sys_flag if len(host) == 8 else h.sys_flag | BORN_V6,
            born_ms=h.born_timestamp,
            born_host=host,
            reconsume_times=h.reconsume_times or 0,
            wait=found.get(properties.WAIT) != "false",
        )
        await stored(self._store, kept)
        if not kept.status.is_stored:
            log.warning("reply to %s not stored: %s %s", h.topic, kept.status.name, kept.error)
            return
        self._stats.put(kept.topic, 1, kept.size)
        answer.ext |= {
            "msgId": offset_msg_id(self._store_host, kept.physical_offset),
            "queueId": str(queue_id),
            "queueOffset": str(kept.queue_offset),
        }


def _place(host: bytes) -> str:
    address, port = decode_host(host)
    return f"{address}:{port}"
