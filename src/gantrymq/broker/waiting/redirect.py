"""The redirect of messages that must wait into system topics.

Sends, send-backs and committed transactions all pass `redirect` once. The real topic and queue
travel in the message's properties.
"""

from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.errors import BadRequest, IllegalMessage
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.waiting.timer.times import asked_ms, number, out_ms
from gantrymq.model import SCHEDULE_TOPIC, TIMER_TOPIC
from gantrymq.protocol import properties
from gantrymq.store.append import Append

DELAY_MARK: Final = f"{properties.DELAY}{properties.NAME_END}"
TIMER_MARK: Final = "TIMER_DEL"
"""What the three properties that ask for a time have in common, and the one that recalls."""
ASKING: Final = (
    properties.TIMER_DELIVER_MS,
    properties.TIMER_DELAY_SEC,
    properties.TIMER_DELAY_MS,
)


class SystemTopicRedirect:
    """Decides whether a message has to wait, and in which system topic."""

    def __init__(self, config: BrokerConfig, clock: WallClock) -> None:
        self._config, self._clock = config, clock
        self.take_settings()

    def take_settings(self) -> None:
        """Count the delay levels once instead of for every message; called again on a change."""
        self._levels = len(self._config.delay_levels_ms)

    def redirect(self, message: Append, text: str) -> str:
        """Redirect a message that asks for a delay; returns its properties, changed or not.

        Raises if the delay is not allowed.
        """
        if DELAY_MARK in text or TIMER_MARK in text:
            return self._placed(message, text)
        return text

    def wants_to_wait(self, text: str) -> bool:
        """Whether properties ask for a delay level or a delivery time."""
        found = properties.decode(text)
        return self._level(found) > 0 or any(name in found for name in ASKING)

    def _placed(self, message: Append, text: str) -> str:
        found = properties.decode(text)
        level = self._level(found)
        if level > 0:  # wins over a delivery time
            kept = {name: value for name, value in found.items() if name not in ASKING}
            kept[properties.DELAY] = str(level)
            return move(message, kept, SCHEDULE_TOPIC, level - 1)
        if properties.TIMER_OUT_MS not in found and any(name in found for name in ASKING):
            return self._timed(message, found, text)
        return text

    def _level(self, found: dict[str, str]) -> int:
        wanted = number(found.get(properties.DELAY))
        return 0 if wanted is None else min(wanted, self._levels)

    def _timed(self, message: Append, found: dict[str, str], text: str) -> str:
        if not self._config.timer_wheel_enable:
            raise BadRequest("accurate timer message is not enabled, timerWheelEnable is false")
        now_ms, longest_ms = self._clock.now_ms(), self._config.timer_max_delay_sec * 1000
        deliver_ms = asked_ms(found, now_ms)
        if deliver_ms is None:
            asked = {name: found[name] for name in ASKING if name in found}
            raise IllegalMessage(f"timer message illegal, no number: {asked}")
        if deliver_ms > now_ms + longest_ms:
            raise IllegalMessage(
                f"timer message illegal, it asks for a delay of {deliver_ms - now_ms} ms; "
                f"the longest is {longest_ms} ms (timerMaxDelaySec)"
            )
        if deliver_ms <= now_ms:
            if properties.TIMER_DELETE_UNIQ_KEY in found:
                raise IllegalMessage("timer message illegal, it recalls one whose time is past")
            return text
        found[properties.TIMER_OUT_MS] = str(out_ms(deliver_ms, self._config.timer_precision_ms))
        return move(message, found, TIMER_TOPIC, 0)


def move(message: Append, found: dict[str, str], topic: str, queue_id: int) -> str:
    """Redirect a message to a system topic, its real place in its properties; returns those."""
    found[properties.REAL_TOPIC] = message.topic
    found[properties.REAL_QUEUE] = str(message.queue_id)
    message.topic, message.queue_id = topic, queue_id
    return properties.encode(found)
