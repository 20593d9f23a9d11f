"""POP on the wire and in the revive log: topic names, handles, offset lists, bodies."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

import msgspec

from gantrymq.base.errors import ProtocolError
from gantrymq.base.javatypes import Int32, java_enum
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import MessageModel
from gantrymq.protocol.casts import cast_to

ORDER_REVIVE_QUEUE = 999
"""Stands in handles where others name a revive queue: this message was popped in order."""
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
CHECKPOINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"
POP_MESSAGES_MAX = 32
NORMAL, RETRY_V1, RETRY_V2 = "0", "1", "2"
"""Where a message was popped from: its topic, or one of the two kinds of retry topics."""
OFFSETS_SPAN_MAX = 1 << 16
"""The widest bit set that is read: far more than any pop covers."""


def revive_topic(cluster: str) -> str:
    """The system topic that logs pops and acknowledgements."""
    return f"rmq_sys_REVIVE_LOG_{cluster}"


def pop_retry_topic(group: str, topic: str, v2: bool = False) -> str:
    """The topic for messages that were popped and not acknowledged in time."""
    return f"{RETRY_PREFIX}{group}{'+' if v2 else '_'}{topic}"


def retry_flag(topic: str) -> str:
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


def real_topic(topic: str, group: str, flag: str) -> str:
    """The topic that holds a message of `topic`: a retry topic if the flag says so."""
    if flag == NORMAL:
        return topic
    if flag not in (RETRY_V1, RETRY_V2):
        raise ProtocolError(f"retry flag {flag!r} is none of 0, 1 and 2")
    return pop_retry_topic(group, topic, flag == RETRY_V2)


class Handle(NamedTuple):
    """The handle of one popped message, which acknowledges it (the property POP_CK)."""

    start: int
    """The first offset its pop looked at; names the checkpoint together with the time."""
    pop_ms: int
    """When it was popped."""
    invisible_ms: int
    """For how long nobody else gets it."""
    revive_queue: int
    """The queue of the revive log that has its checkpoint; 999 if it was popped in order."""
    flag: str
    """0: from its topic, 1 or 2: from a retry topic of either kind."""
    broker_name: str
    """The broker that has the queue."""
    queue_id: int
    """The queue it lies in."""
    offset: int
    """Its queue offset; `start` where the word is missing."""

    @classmethod
    def parse(cls, text: str) -> Self:
        words = text.split(" ")
        try:
            start, pop_ms, invisible_ms, revive_queue, flag, broker_name, queue_id = words[:7]
            offset = words[7] if len(words) > 7 else start
            return cls(
                int(start),
                int(pop_ms),
                int(invisible_ms),
                int(revive_queue),
                flag,
                broker_name,
                int(queue_id),
                int(offset),
            )
        except ValueError as error:
            raise ProtocolError(f"{text!r} is no handle of a popped message") from error

    def __str__(self) -> str:
        return " ".join(map(str, self))

    @property
    def is_ordered(self) -> bool:
        return self.revive_queue == ORDER_REVIVE_QUEUE


# the lists in the answer to a pop


class Portion(NamedTuple):
    """The messages that a pop takes from one queue."""

    flag: str
    queue_id: int
    start: int
    offsets: Sequence[int]


def start_info(portions: Iterable[Portion]) -> str:
    return ";".join(f"{p.flag} {p.queue_id} {p.start}" for p in portions)


def offset_info(portions: Iterable[Portion]) -> str:
    return ";".join(f"{p.flag} {p.queue_id} {','.join(map(str, p.offsets))}" for p in portions)


def order_info(flag: str, queue_id: int, counts: Mapping[int, int], offsets: Sequence[int]) -> str:
    """Earlier deliveries of each message; the last entry is the minimum of the queue."""
    entries = [f"{flag} qo{queue_id}%{offset} {count}" for offset, count in counts.items()]
    least = min(counts.values()) if counts and len(counts) == len(offsets) else 0
    return ";".join([*entries, f"{flag} {queue_id} {least}"])


def parse_info(text: str | None) -> dict[tuple[str, str], str]:
    """A list of a pop's answer: (retry flag, queue) to the third word."""
    found: dict[tuple[str, str], str] = {}
    for entry in (text or "").split(";"):
        words = entry.split(" ")
        if len(words) == 3:
            found[words[0], words[1]] = words[2]
        elif entry:
            raise ProtocolError(f"{entry!r} is no entry of a pop's offset list")
    return found


# records of the revive log


class CheckpointBody(msgspec.Struct, kw_only=True):
    """The messages of one queue that were popped together; the body of a `ck` record."""

    bm: int = 0
    """Bit i is set when the i-th message needs no further delivery."""
    bn: str = ""
    """The broker's name."""
    c: str = ""
    """The group."""
    d: list[int] = []
    """The distance of each message's queue offset from `so`."""
    it: int = 0
    """For how many milliseconds the messages are invisible."""
    n: int = 0
    """How many messages there are."""
    pt: int = 0
    """When they were popped."""
    q: int = 0
    """The queue they lie in."""
    ro: int = 0
    """Always 0; not read."""
    rp: str | None = None
    """How often the checkpoint was put again; left out when never."""
    so: int = 0
    """The first queue offset that the pop looked at."""
    t: str = ""
    """The topic they lie in, which may be a retry topic."""


class AckBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The bodies of `ack` and `bAck` records; a `bAck` has a list of offsets."""

    ao: int = -1
    """The queue offset of the one message."""
    aol: list[int] = []
    """The queue offsets of several messages."""
    bn: str = ""
    """The broker's name."""
    c: str = ""
    """The group."""
    pt: int = 0
    """When they were popped."""
    q: int = 0
    """The queue they lie in."""
    so: int = 0
    """The first queue offset that the pop looked at."""
    t: str = ""
    """The topic they lie in."""

    @property
    def offsets(self) -> list[int]:
        return self.aol or [self.ao]


# bodies of requests and answers


class BatchAck(msgspec.Struct, kw_only=True):
    """Several messages of one checkpoint."""

    b: str = ""
    """Java's BitSet in base64: bit i stands for queue offset `so` + i."""
    c: str
    """The group."""
    it: int = 0
    """For how many milliseconds they are invisible."""
    pt: int
    """When they were popped."""
    q: int
    """The queue they lie in."""
    r: str = NORMAL
    """0: from its topic, 1 or 2: from a retry topic of either kind."""
    rq: int
    """The queue of the revive log that has their checkpoint."""
    so: int
    """The first queue offset that the pop looked at."""
    t: str
    """The topic that was asked for."""

    @property
    def offsets(self) -> list[int]:
        try:
            bits = int.from_bytes(base64.b64decode(self.b, validate=True), "little")
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(f"{self.b!r} is no bit set") from error
        if bits.bit_length() > OFFSETS_SPAN_MAX:
            raise ProtocolError(f"a bit set of {bits.bit_length()} bits is too wide")
        found, marks = list[int](), f"{bits:b}"[::-1]
        at = marks.find("1")
        while at >= 0:
            found.append(self.so + at)
            at = marks.find("1", at + 1)
        return found


class BatchAckBody(msgspec.Struct, kw_only=True, rename="camel"):
    """BATCH_ACK_MESSAGE."""

    acks: list[BatchAck] = []
    broker_name: str = ""


_LONG_NAMES = {
    "bitSet": "b", "consumerGroup": "c", "invisibleTime": "it", "popTime": "pt", "queueId": "q",
    "retry": "r", "reviveQueueId": "rq", "startOffset": "so", "topic": "t",
}  # fmt: skip


def read_batch_ack(body: bytes) -> list[BatchAck]:
    """The acknowledgements of a request; members may have their long names."""
    found: Any = fastjson.loads(body) if body else {}
    acks = found.get("acks") if isinstance(found, dict) else None
    rows = [
        {_LONG_NAMES.get(name, name): value for name, value in ack.items()}
        for ack in acks or []
        if isinstance(ack, dict)
    ]
    try:
        return msgspec.convert(cast_to(rows, list[BatchAck]), list[BatchAck])
    except msgspec.ValidationError as error:
        raise ProtocolError(f"body is no list of acknowledgements: {error}") from error


def bit_set(offsets: Iterable[int], start: int) -> str:
    """Java's BitSet of the distances to `start`, as its JSON carries it."""
    bits = 0
    for offset in offsets:
        bits |= 1 << (offset - start)
    size = (bits.bit_length() + 7) // 8
    return base64.b64encode(bits.to_bytes(size, "little")).decode()


RequestModeName = Annotated[str, java_enum("PULL", "POP")]


class RequestMode(msgspec.Struct, kw_only=True, rename="camel"):
    """How a group reads a topic: SET_MESSAGE_REQUEST_MODE, and a row of its table."""

    consumer_group: str
    mode: RequestModeName = "PULL"
    pop_share_queue_num: Int32 = 0
    topic: str


class RequestModes(msgspec.Struct, kw_only=True, rename="camel"):
    """messageRequestMode.json and the answer to GET_ALL_MESSAGE_REQUEST_MODE."""

    message_request_mode_map: dict[str, dict[str, RequestMode]] = {}


class AssignmentRequest(msgspec.Struct, kw_only=True, rename="camel"):
    """QUERY_ASSIGNMENT."""

    client_id: str = ""
    consumer_group: str = ""
    message_model: MessageModel = "CLUSTERING"
    strategy_name: str = "AVG"
    topic: str = ""


class QueueAssignment(msgspec.Struct, kw_only=True, rename="camel"):
    message_queue: Queue
    mode: str = "PULL"


class Assignments(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to QUERY_ASSIGNMENT: None changes nothing, an empty list takes all queues."""

    message_queue_assignments: list[QueueAssignment] | None = None
