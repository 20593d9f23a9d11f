"""Publishing epochs: requests and bodies of a GantryMQ extension.

A writer stages messages in the stage topic, which consumers do not read, and publishes each epoch
of them once. Stretches name the staged messages: each is a run of messages that one send stored in
a stage queue, all for one queue of one topic.
"""

from typing import Final

import msgspec

from gantrymq.base.errors import DECODE_ERRORS, ProtocolError
from gantrymq.protocol.headers.base import Header

STAGE_QUEUES: Final = 4
"""Queues of the stage topic on every broker."""
ONCE_PREFIX: Final = "once-"
"""Begins the id of a writer of one epoch, which is new every time: nobody comes back under it."""


class WriterRequest(Header, frozen=True, kw_only=True):
    """GET_WRITER_STATE: how far a writer has come."""

    writer: str


class EpochRequest(Header, frozen=True, kw_only=True):
    """PREPARE_EPOCH, DECIDE_EPOCH and PUBLISH_EPOCH; the body has the content."""

    writer: str
    epoch: int
    coordinator: str = ""
    """The broker that keeps the writer's decisions."""


class WriterState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one broker knows of a writer; -1 means no epoch."""

    coordinator: str = ""
    decided: int = -1
    """Only the coordinator knows."""
    complete: bool = True
    """Whether the decided epoch is published on all its brokers."""
    published: int = -1
    """The last epoch that this broker has published."""


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """A run of staged messages, and the queue that they are for."""

    stage_queue: int
    """The queue of the stage topic."""
    offset: int
    """The queue offset of the first message there."""
    count: int
    """How many messages follow each other."""
    topic: str
    """The topic that they are for."""
    queue_id: int
    """The queue that they are for."""
    last_id: str
    """The id of the last message: after a power cut others may lie at the same offsets."""


Share = list[Stretch]
"""What one broker has to publish, in order."""


class EpochDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of an epoch, by broker name."""

    shares: dict[str, Share] = {}

    @property
    def count(self) -> int:
        return sum(stretch.count for share in self.shares.values() for stretch in share)


class PublishProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to PUBLISH_EPOCH; publishing may take longer than one request."""

    done: bool
    copied: int = 0
    trouble: str = ""
    """What keeps the broker from going on, if something does."""


_read_share = msgspec.json.Decoder(Share).decode
_read_decision = msgspec.json.Decoder(EpochDecision).decode


def read_share(body: bytes) -> Share:
    try:
        return _read_share(body)
    except DECODE_ERRORS as error:
        raise ProtocolError(f"the body names no staged messages: {error}") from error


def read_decision(body: bytes) -> EpochDecision:
    try:
        return _read_decision(body)
    except DECODE_ERRORS as error:
        raise ProtocolError(f"the body is no decision: {error}") from error
