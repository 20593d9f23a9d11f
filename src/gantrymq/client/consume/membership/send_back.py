"""Send-back: returns a message to the broker for a later retry, or to the dead letters."""

import logging

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.membership.retry_log import FIRST_RETRY_LEVEL, log_send_back
from gantrymq.client.core.heartbeat import INNER_PRODUCER
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.delivery import DEAD_LEVEL, Delivery
from gantrymq.client.messages.failures import Failure
from gantrymq.client.messages.received import Received
from gantrymq.model import retry_topic
from gantrymq.protocol import calls, properties
from gantrymq.protocol.compression import COMPRESSED, TYPE_MASK
from gantrymq.protocol.headers.messages import SendBackRequest, SendRequestV2

log = logging.getLogger(__name__)

RETRIES_MAX_DEFAULT = 16
"""`retryMaxTimes` of a group that nobody has changed."""


class SendBacks:
    """Sends messages of one group back; if that fails, as new messages to its retry topic."""

    def __init__(self, instance: Instance, group: str, retries_max: int | None) -> None:
        self._instance, self._group = instance, group
        self._retries_max = retries_max
        """Our own limit; None leaves it to the group's settings on the broker."""

    async def __call__(self, message: Received, delay_level: int) -> None:
        """Returns when a broker has the message; raises the first error when both ways failed."""
        try:
            await self._send_back(message, delay_level)
        except GantryError as refused:
            log.info("%r not taken back (%s), sent anew", message, refused)
            try:
                await self._send_anew(message, delay_level)
            except GantryError as error:
                log.info("%r not sent anew either: %s", message, error)
                raise refused from error
        limit = self._retries_max
        log_send_back(
            self._group,
            message,
            delay_level,
            RETRIES_MAX_DEFAULT if limit is None else limit,
            sure=limit is not None,
        )

    async def _send_back(self, message: Received, delay_level: int) -> None:
        failure = _failure(message)
        header = SendBackRequest(
            offset=message.log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=message.topic,
            unit_mode=False,
            max_reconsume_times=self._retries_max,
            error=failure.error or None,
            error_text=failure.text or None,
            fingerprint=failure.fingerprint or None,
            reason=failure.reason or None,
        )
        address = self._instance.routes.address_of(message.queue.broker_name)
        await self._instance.call(address, calls.CONSUMER_SEND_MSG_BACK, header)

    async def _send_anew(self, message: Received, delay_level: int) -> None:
        """Send it to the retry topic: the master is down, or no longer has the record."""
        instance, topic = self._instance, retry_topic(self._group)
        route = await instance.routes.get(topic)
        queues = instance.routes.publish_queues(route, topic)
        others = [q for q in queues if q.broker_name != message.queue.broker_name]
        queue = instance.rng.choice(others or queues) if queues else message.queue
        is_dead = delay_level == DEAD_LEVEL
        level = delay_level or FIRST_RETRY_LEVEL + message.reconsume_times
        fields = {
            **message.properties,
            properties.RETRY_TOPIC: message.topic,
            properties.ORIGIN_MESSAGE_ID: message.properties.get(
                properties.ORIGIN_MESSAGE_ID, message.msg_id
            ),
        }
        for name in (properties.DELAY, *properties.FAILURE):
            fields.pop(name, None)
        fields |= _failure(message).properties()
        if not is_dead:
            fields[properties.DELAY] = str(level)
        header = SendRequestV2(
            producer_group=INNER_PRODUCER,
            topic=topic,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag & (COMPRESSED | TYPE_MASK),
            born_timestamp=instance.clock.now_ms(),
            flag=message.flag,
            properties=properties.fitted(fields),
            reconsume_times=message.reconsume_times + 1,
            unit_mode=False,
            max_reconsume_times=0 if is_dead else self._retries_max,
            batch=False,
        )
        address = instance.routes.address_of(queue.broker_name)
        await instance.call(address, calls.SEND_MESSAGE_V2, header, message.stored_body)


def _failure(message: Received) -> Failure:
    """Why it is sent back; empty fields when not known."""
    known = message.failure if isinstance(message, Delivery) else None
    return known or Failure()
