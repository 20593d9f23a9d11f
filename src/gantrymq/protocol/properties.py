"""The properties string: name 0x01 value 0x02, repeated.

RocketMQ 4.9 drops the last 0x02, 5.x keeps it; both are read. Entries with an empty name or value
look like damage and are dropped, as RocketMQ does.
"""

from collections.abc import Mapping

from gantrymq.base.errors import ProtocolError

NAME_END, ENTRY_END = "\x01", "\x02"
BYTES_MAX = 32767

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
UNIQ_KEY = "UNIQ_KEY"
CLUSTER = "CLUSTER"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE = "REAL_QID"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
TRANSACTION_PREPARED = "TRAN_MSG"
PRODUCER_GROUP = "PGROUP"
MIN_OFFSET = "MIN_OFFSET"
MAX_OFFSET = "MAX_OFFSET"
SHARDING_KEY = "__SHARDINGKEY"
INSTANCE_ID = "INSTANCE_ID"
CHECK_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_DELETE_UNIQ_KEY = "TIMER_DEL_UNIQKEY"
POP_CHECKPOINT = "POP_CK"
FIRST_POP_TIME = "1ST_POP_TIME"
CORRELATION_ID = "CORRELATION_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
TIME_TO_LIVE = "TTL"
MESSAGE_TYPE = "MSG_TYPE"
ARRIVE_TIME = "ARRIVE_TIME"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
DEAD_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DEAD_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
FAILURE = ("GANTRY_ERROR", "GANTRY_ERROR_TEXT", "GANTRY_FINGERPRINT", "GANTRY_REASON")
"""Ours: why a message was given back the last time."""
RESENT_FROM = "GANTRY_RESENT_FROM"
"""Ours: the dead letter that this message was made from, by its broker's id."""
SPREAD_FROM = "GANTRY_SPREAD_FROM"
"""Ours: where the message lay before it was moved into a wider topic, topic/broker/queue/offset."""

SPARE = (
    "GANTRY_ERROR_TEXT", "GANTRY_REASON", "GANTRY_ERROR", DEAD_ORIGIN_MESSAGE_ID,
    DEAD_ORIGIN_TOPIC, "GANTRY_FINGERPRINT", TRACE_ON, MSG_REGION, WAIT, CLUSTER,
)  # fmt: skip
"""Properties that a copy may lose when it is too long, the least needed first."""
WAITING_BYTES = 320
"""Room for what a redirect adds: the name of the real topic, its queue, the cluster."""


def encode(properties: Mapping[str, str]) -> str:
    """The stored form. A separator inside a name or value is refused."""
    parts: list[str] = []
    for name, value in properties.items():
        if NAME_END in name or ENTRY_END in name or NAME_END in value or ENTRY_END in value:
            raise ProtocolError(f"property {name!r} contains a separator (0x01 or 0x02)")
        if name and value:
            # Joined, not formatted: for a string enum join takes the value, a format its name.
            parts += (name, NAME_END, value, ENTRY_END)
    return "".join(parts)


def fitted(found: Mapping[str, str]) -> str:
    """The stored form of a copy that grew; spare properties are dropped if it is too long.

    Otherwise a message whose properties fill the field could neither be retried nor become a dead
    letter.
    """
    kept = dict(found)
    text = encode(kept)
    for name in SPARE:
        if len(text.encode()) <= BYTES_MAX - WAITING_BYTES:
            break
        if kept.pop(name, None) is not None:
            text = encode(kept)
    return text


def decode(text: str | bytes) -> dict[str, str]:
    """Read the stored form; bytes that are not UTF-8 are replaced, never an error."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    found = {}
    for entry in text.split(ENTRY_END):
        name, mark, value = entry.partition(NAME_END)
        if mark and name and value:
            found[name] = value
    return found


def value_of(text: str, name: str) -> str:
    """One property of the stored form, without decoding the rest; empty if it is not there."""
    start = f"{ENTRY_END}{text}".find(f"{ENTRY_END}{name}{NAME_END}")
    if start < 0:
        return ""
    start += len(name) + 1
    end = text.find(ENTRY_END, start)
    return text[start : end if end >= 0 else None]
