"""Logs each retried or dead message: which try of how many, the next time, the reason."""

import logging
from typing import Final

from gantrymq.client.messages.delivery import DEAD_LEVEL, Delivery
from gantrymq.client.messages.received import Received
from gantrymq.model import dead_topic

log = logging.getLogger(__name__)

FIRST_RETRY_LEVEL: Final = 3
LEVEL_TIMES: Final = (
    "1 s", "5 s", "10 s", "30 s", "1 min", "2 min", "3 min", "4 min", "5 min", "6 min", "7 min",
    "8 min", "9 min", "10 min", "20 min", "30 min", "1 h", "2 h",
)  # fmt: skip
"""What RocketMQ's delay levels mean unless the broker's messageDelayLevel says otherwise."""
NO_LIMIT: Final = 2**31 - 1


def log_send_back(
    group: str, message: Received, delay_level: int, retries_max: int, *, sure: bool
) -> None:
    """Log a send-back. Without `sure`, the limit is the default, and the group's may differ."""
    tries = message.reconsume_times + 1
    if delay_level == DEAD_LEVEL:
        tell_dead(group, message, f"try {tries}")
        return
    which = f"try {tries}{_limit(retries_max, sure=sure)}"
    if message.reconsume_times >= retries_max:
        tell_dead(group, message, which)
        return
    level = min(delay_level or FIRST_RETRY_LEVEL + message.reconsume_times, len(LEVEL_TIMES))
    log.warning(
        "%r failed in group %s (%s)%s; again in %s",
        message,
        group,
        which,
        cause(message),
        LEVEL_TIMES[level - 1],
    )


def log_retry_in_place(message: Delivery, retries_max: int | None, pause_seconds: float) -> None:
    """Log a retry in place of an ordered queue."""
    which = f"try {message.reconsume_times + 1}"
    which += _limit(NO_LIMIT if retries_max is None else retries_max, sure=True)
    log.warning(
        "%r failed (%s)%s; again in %g s, and its queue waits",
        message,
        which,
        cause(message),
        pause_seconds,
    )


def tell_dead(group: str, message: Received, which: str) -> None:
    log.error(
        "%r failed in group %s (%s)%s; it goes to the dead letters (%s)",
        message,
        group,
        which,
        cause(message),
        dead_topic(group),
    )


def cause(message: Received) -> str:
    """Why the message failed; empty when not known."""
    failure = message.failure if isinstance(message, Delivery) else None
    if failure is None:
        return ""
    said = [failure.reason, f"{failure.error}: {failure.text}" if failure.error else ""]
    return ": " + ", ".join(part for part in said if part)


def _limit(retries_max: int, *, sure: bool) -> str:
    if retries_max == NO_LIMIT:
        return ", without limit"
    return f" of {retries_max + 1}{'' if sure else ' unless the group has another limit'}"
