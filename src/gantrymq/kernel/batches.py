"""Batches, laid out by clients and cut by brokers: the pure twin of both."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from gantrymq.protocol import batch
from gantrymq.protocol.properties import BYTES_MAX

StoredItem = tuple[int, bytes, bytes]
"""Flag, body, and properties as they are stored."""

_POP_MARK: Final = b"POP_CK\x01"
_COUNTER_MASK: Final = 0xFFFF


class Batchable(Protocol):
    """What is read of a message; a message that a client may send."""

    @property
    def topic(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def tags(self) -> str | None: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def properties(self) -> dict[str, str]: ...
    @property
    def flag(self) -> int: ...
    @property
    def delay_level(self) -> int: ...
    @property
    def deliver_at(self) -> object: ...
    @property
    def delay(self) -> object: ...
    @property
    def wait_store_ok(self) -> bool: ...
    @property
    def sharding_key(self) -> str | None: ...


OwnProperties = Callable[[Batchable, str], tuple[str, str] | None]
"""The encoded properties of a message that has some of its own, and its id, which may be one of
them; None if they are refused."""


class BatchLimits(NamedTuple):
    """How much one batch may hold."""

    messages: int
    bytes: int
    """Of the whole batch, as it is sent."""
    body_bytes: int
    """Of the body of each message: longer ones go alone, compressed."""


class EncodedBatch(NamedTuple):
    """The body of a batch, and the ids of its messages with a comma between them."""

    body: bytes
    ids: str
    messages: int


def is_plain(message: Batchable) -> bool:
    """Whether a message asks for nothing that a batch cannot give: a time, an order by its key."""
    return (
        message.delay_level == 0
        and message.deliver_at is None
        and message.delay is None
        and message.wait_store_ok is True
        and message.sharding_key is None
    )


def encode_batch(
    messages: Sequence[Batchable],
    start: int,
    stem: str,
    counter: int,
    limits: BatchLimits,
    own: OwnProperties,
) -> EncodedBatch:
    """Encode the plain messages of one topic that stand next to each other from `start` on.

    It ends before the first message that is not plain, has another topic, or does not fit; with
    none it is empty. Ids are made of `stem` and the counter, which counts up.
    """
    topic = messages[start].topic
    items: list[batch.Item] = []
    ids: list[str] = []
    total = 0
    for message in messages[start : start + limits.messages]:
        if message.topic != topic or not is_plain(message):
            break
        msg_id = f"{stem}{counter & _COUNTER_MASK:04X}"
        if message.properties:
            made = own(message, msg_id)
            if made is None:
                break
            text, msg_id = made
        else:
            text = f"UNIQ_KEY\x01{msg_id}\x02"
            if message.tags:
                text += f"TAGS\x01{message.tags}\x02"
            if message.keys:
                text += f"KEYS\x01{' '.join(message.keys)}\x02"
        properties = text.encode()
        total += batch.FIXED_BYTES + len(message.body) + len(properties)
        if (
            len(message.body) > limits.body_bytes
            or len(properties) > BYTES_MAX
            or total > limits.bytes
        ):
            break
        items.append(batch.Item(message.flag, message.body, properties))
        ids.append(msg_id)
        counter += 1
    return EncodedBatch(batch.encode(items), ",".join(ids), len(items))


def batch_items(body: bytes, tail: bytes, count_max: int) -> list[StoredItem]:
    """The messages of a batch with their properties as they are stored, one more than `count_max`
    at most.

    `tail` is what the broker adds. ProtocolError refuses the whole batch.
    """
    return [
        (flag, inner, stored_form(properties) + tail)
        for flag, inner, properties in batch.decode(body, count_max)
    ]


class ItemSizes(NamedTuple):
    """What decides whether the messages of a batch can be stored."""

    bytes: int
    """Of all bodies and properties."""
    body_max: int
    properties_max: int
    has_zero: bool
    """Whether some properties have a zero byte."""


def measure_items(items: Sequence[StoredItem]) -> ItemSizes:
    """Sizes of the messages of a batch."""
    bodies = [len(body) for _, body, _ in items]
    properties = [len(stored) for _, _, stored in items]
    return ItemSizes(
        sum(bodies) + sum(properties),
        max(bodies, default=0),
        max(properties, default=0),
        any(b"\0" in stored for _, _, stored in items),
    )


def stored_form(given: bytes) -> bytes:
    """Properties with their last separator and without a POP receipt.

    A popped message that is sent on is a new message; the receipt would acknowledge the old one.
    RocketMQ 5.3.3 deletes it from the request's properties, but not from those inside a batch.
    """
    if _POP_MARK in given:
        entries = given.split(b"\x02")
        return b"".join(e + b"\x02" for e in entries if e and not e.startswith(_POP_MARK))
    return given if not given or given.endswith(b"\x02") else given + b"\x02"
