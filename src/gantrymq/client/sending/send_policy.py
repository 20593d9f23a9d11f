"""Which queue a message goes to, and which failures are retried. Pure: decides, never acts."""

from collections.abc import Callable, Sequence
from typing import Final

from gantrymq.base.java_hash import java_hash
from gantrymq.model import Queue
from gantrymq.protocol.codes import ResponseCode

RETRY_CODES: Final = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)
"""Answers that another broker may not give: worth another try."""
BUSY_CODES: Final = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY})
"""Flow control: tried again only by those who ask for it, as clients from 5.3 on do."""

STATUS_BY_CODE: Final = {
    int(ResponseCode.SUCCESS): "SEND_OK",
    int(ResponseCode.FLUSH_DISK_TIMEOUT): "FLUSH_DISK_TIMEOUT",
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): "FLUSH_SLAVE_TIMEOUT",
    int(ResponseCode.SLAVE_NOT_AVAILABLE): "SLAVE_NOT_AVAILABLE",
}
"""Codes that mean: the message is stored."""


def retry_codes(*, when_busy: bool) -> frozenset[int]:
    """The answers after which a send is tried again; `when_busy`: after flow control as well."""
    codes = RETRY_CODES | BUSY_CODES if when_busy else RETRY_CODES
    return frozenset(int(code) for code in codes)


def next_index(
    brokers: Sequence[str],
    cursor: int,
    avoid: Sequence[str] = (),
    available: Callable[[str], bool] | None = None,
) -> int:
    """The position of the next queue in turn, given each queue's broker.

    Brokers that failed (`avoid`, in the order they were tried) and brokers that are not available
    are skipped. If none is left, any available broker but the last failed one is taken; if there is
    no such broker, the next queue in turn.
    """
    count = len(brokers)
    first = cursor % count
    if not avoid and available is None:
        return first
    for refused in (avoid, avoid[-1:]):
        for step in range(count):
            at = (first + step) % count
            broker = brokers[at]
            if broker not in refused and (available is None or available(broker)):
                return at
    return first


def sharded_index(sharding_key: str, count: int) -> int:
    """The queue of a key: Java's hash modulo the number of queues, as RocketMQ's selector does."""
    return abs(java_hash(sharding_key)) % count


def sharded(queues: Sequence[Queue], sharding_key: str) -> Queue:
    """The queue that all messages with this key go to, as long as the queues stay the same."""
    return queues[sharded_index(sharding_key, len(queues))]
