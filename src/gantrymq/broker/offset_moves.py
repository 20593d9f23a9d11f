"""Pulls whose offset was outside their queue, written down for operators.

The event is a message in OFFSET_MOVED_EVENT, as RocketMQ 4.9 writes it: its tag and key are the
group, its body has the queue, the requested offset and the corrected one. RocketMQ 5 only logs it.
"""

import logging

from gantrymq.base.clock import WallClock
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.model import OFFSET_MOVED_TOPIC
from gantrymq.protocol import fastjson, properties
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)


class OffsetMoves:
    """Stores and logs one event for each pull whose offset was corrected."""

    def __init__(
        self, config: BrokerConfig, store: Store, clock: WallClock, store_host: bytes
    ) -> None:
        self._config, self._store, self._clock = config, store, clock
        self._host = store_host

    def note(self, group: str, topic: str, queue_id: int, asked: int, given: int) -> None:
        name = self._config.broker_name
        event = {
            "consumerGroup": group,
            "messageQueue": {"brokerName": name, "queueId": queue_id, "topic": topic},
            "offsetNew": given,
            "offsetRequest": asked,
        }
        words = {properties.TAGS: group, properties.KEYS: group, properties.DELAY: "0"}
        log.warning(
            "group %s pulled queue %d of %s at %d, which is outside of it: sent to %d",
            group,
            queue_id,
            topic,
            asked,
            given,
        )
        append = Append(OFFSET_MOVED_TOPIC, 0, fastjson.dumps(event), wait=False)
        append.properties = properties.encode(words).encode()
        append.born_ms, append.born_host = self._clock.now_ms(), self._host
        self._store.put(append)
