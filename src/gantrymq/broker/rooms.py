"""Waiting rooms: where a message stays before it may go to its topic.

Everything that enters the log on somebody's behalf passes `redirect` once: sends, send-backs and
committed transactions. The topic and queue it was meant for travel in its properties.
"""

from gantrymq.base.clock import WallClock
from gantrymq.broker.config import BrokerConfig
from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.protocol import properties
from gantrymq.store.append import Append

DELAY_MARK = f"{properties.DELAY}{properties.NAME_END}"


class WaitingRooms:
    """Decides whether a message has to wait, and where."""

    def __init__(self, config: BrokerConfig, clock: WallClock) -> None:
        self._config, self._clock = config, clock
        self._levels = len(config.delay_levels_ms)

    def redirect(self, message: Append, text: str) -> str:
        """Send a message to its waiting room if it has one; returns its properties then."""
        if DELAY_MARK in text:
            return self._delayed(message, text)
        return text

    def _delayed(self, message: Append, text: str) -> str:
        found = properties.decode(text)
        word = found.get(properties.DELAY, "0")
        level = min(int(word), self._levels) if word.isdigit() else 0
        if level <= 0:
            return text
        found[properties.DELAY] = str(level)
        return move(message, found, SCHEDULE_TOPIC, level - 1)


def move(message: Append, found: dict[str, str], topic: str, queue_id: int) -> str:
    """Put a message into a room, remembering where it wanted to go; returns its properties."""
    found[properties.REAL_TOPIC] = message.topic
    found[properties.REAL_QUEUE] = str(message.queue_id)
    message.topic, message.queue_id = topic, queue_id
    return properties.encode(found)
