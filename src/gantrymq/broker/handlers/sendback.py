"""Send-back: a message is delivered again after a delay, or becomes a dead letter."""

import logging
import random

from gantrymq.access.accounts import Permission
from gantrymq.access.guard import Require
from gantrymq.broker.errors import BadRequest, NotPermitted
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import copy_of, stored
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.model import WRITE, dead_topic, retry_topic
from gantrymq.protocol import calls as c
from gantrymq.protocol import properties
from gantrymq.protocol.codes import VERSION_3_4_9
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.messages import SendBackRequest
from gantrymq.protocol.ids import offset_msg_id
from gantrymq.protocol.record import StoredMessage, decode_record
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

FIRST_RETRY_LEVEL = 3
LIMITS_MAX = 8
"""At most so many different limits of one group are logged."""


class RetryLimits:
    """Logs when members of one group allow different numbers of retries.

    Each send-back follows the limit of the member that sends it, so the fate of a message would
    depend on which member got it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[int, str]] = {}

    def seen(self, group: str, limit: int, address: str) -> None:
        """Remember the limit that a send-back of a group was judged by."""
        limits = self._seen.setdefault(group, {})
        if limit in limits or len(limits) >= LIMITS_MAX:
            return
        limits[limit] = address
        if len(limits) > 1:
            said = ", ".join(f"{count} ({where})" for count, where in limits.items())
            log.warning("members of group %s allow different numbers of retries: %s", group, said)


class SendBackHandler:
    """CONSUMER_SEND_MSG_BACK (36)."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        policy: Policy,
        redirect: SystemTopicRedirect,
        stats: BrokerStats,
        rng: random.Random,
        store_host: bytes,
        require: Require,
    ) -> None:
        self._config, self._store, self._redirect = config, store, redirect
        self._require = require
        self._policy, self._rng, self._store_host = policy, rng, store_host
        self._stats, self._limits = stats, RetryLimits()

    async def back(self, connection: Connection, command: Command) -> Command:
        """CONSUMER_SEND_MSG_BACK (36): store a copy for a later retry, or as a dead letter."""
        h = c.CONSUMER_SEND_MSG_BACK.request.parse(command.ext)
        group = self._policy.group(h.group)
        if not self._config.broker_permission & WRITE:
            address = self._config.broker_ip1
            raise NotPermitted(f"the broker[{address}] sending message is forbidden")
        if group.retry_queue_nums <= 0:
            return response(command)
        record = await self._store.reads.message_at(h.offset)
        if record is None:
            raise BadRequest(f"look message by offset failed, {h.offset}")
        limit = group.retry_max_times
        if command.version >= VERSION_3_4_9 and h.max_reconsume_times is not None:
            limit = h.max_reconsume_times
        self._limits.seen(h.group, limit, connection.address)
        message = decode_record(record)
        self._require(connection, command, message.topic, Permission.SUB)
        copy = self._copy(message, h, limit, group.retry_queue_nums)
        await self._store_copy(copy)
        self._stats.put(copy.topic, 1, copy.size)
        if copy.topic == dead_topic(h.group):
            self._stats.dead_letter(
                h.group, message.properties.get(properties.RETRY_TOPIC, message.topic)
            )
        self._stats.back(message.properties.get(properties.RETRY_TOPIC, message.topic), h.group)
        return response(command)

    def _copy(self, message: StoredMessage, h: SendBackRequest, limit: int, queues: int) -> Append:
        found = dict(message.properties)
        found.setdefault(properties.RETRY_TOPIC, message.topic)
        origin = offset_msg_id(self._store_host, message.physical_offset)
        found.setdefault(properties.ORIGIN_MESSAGE_ID, origin)
        found[properties.WAIT] = "false"
        for name in properties.FAILURE:
            found.pop(name, None)
        found |= h.failure
        dead = message.reconsume_times >= limit or h.delay_level < 0
        if dead:
            topic = self._policy.ensure_topic(dead_topic(h.group), 1)
            found[properties.DELAY] = "0"
            # Under these names 5.x's gRPC clients show where a dead letter comes from.
            found[properties.DEAD_ORIGIN_TOPIC] = found[properties.RETRY_TOPIC]
            found[properties.DEAD_ORIGIN_MESSAGE_ID] = found.get(properties.UNIQ_KEY, origin)
        else:
            topic = self._policy.ensure_topic(retry_topic(h.group), queues)
            level = h.delay_level or FIRST_RETRY_LEVEL + message.reconsume_times
            found[properties.DELAY] = str(level)
        queue_id = self._rng.randrange(max(1, topic.write_queue_nums))
        copy = copy_of(message, topic.topic_name, queue_id)
        copy.wait, copy.reconsume_times = True, message.reconsume_times + 1
        text = properties.fitted(found)
        if not dead:
            text = self._redirect.redirect(copy, text)
        copy.properties = text.encode()
        return copy

    async def _store_copy(self, copy: Append) -> None:
        await stored(self._store, copy)
        if not copy.status.is_stored:
            raise BadRequest(f"{copy.status.name}: {copy.error}")
