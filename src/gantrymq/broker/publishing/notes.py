"""The notes in the publish topic: one message for each step of an epoch. Pure.

The order of the notes in the log decides. A reader that starts at the first note, or at a saved
state, knows what was decided, what is being published and what is done.
"""

import logging
from typing import Final

import msgspec

from gantrymq.base.errors import DECODE_ERRORS
from gantrymq.protocol.publishing import EpochDecision, Share
from gantrymq.protocol.record import StoredMessage

log = logging.getLogger(__name__)


class EnrolledNote(msgspec.Struct, frozen=True, kw_only=True, tag="enrolled"):
    """A writer's decisions are kept by another broker."""

    writer: str
    """The writer's id."""
    coordinator: str
    """The name of that broker."""


class PreparedNote(msgspec.Struct, frozen=True, kw_only=True, tag="prepared"):
    """A share is complete and may be decided at any time: what is staged must stay."""

    writer: str
    """The writer's id."""
    epoch: int
    """The number of the epoch."""
    lowest: int
    """The log offset of the first staged message."""


class DecidedNote(msgspec.Struct, frozen=True, kw_only=True, tag="decided"):
    """The commit of an epoch: it will be published, and nothing else under its name."""

    writer: str
    """The writer's id."""
    epoch: int
    """The number of the epoch."""
    coordinator: str
    """The name of the broker that decides, which is this one."""
    decision: EpochDecision
    """`{"shares": {BROKER: [STRETCH, ...]}}`: what each broker has to publish, in order."""


class IntendedNote(msgspec.Struct, frozen=True, kw_only=True, tag="intended"):
    """This broker begins to publish its share; what follows in the log may be copies of it."""

    writer: str
    """The writer's id."""
    epoch: int
    """The number of the epoch."""
    share: Share
    """`[STRETCH, ...]`: what this broker has to publish, in order."""


class PublishedNote(msgspec.Struct, frozen=True, kw_only=True, tag="published"):
    """All of this broker's share stands in its queues, in front of this note."""

    writer: str
    """The writer's id."""
    epoch: int
    """The number of the epoch."""


Note = EnrolledNote | PreparedNote | DecidedNote | IntendedNote | PublishedNote

PROPERTIES: Final = {
    EnrolledNote: b"TAGS\x01enrolled\x02",
    PreparedNote: b"TAGS\x01prepared\x02",
    DecidedNote: b"TAGS\x01decided\x02",
    IntendedNote: b"TAGS\x01intended\x02",
    PublishedNote: b"TAGS\x01published\x02",
}
"""Tags only for people who look into the topic."""

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Note).decode


def note_of(message: StoredMessage) -> Note | None:
    """The note in a record; None if it cannot be read: a later release may have written it."""
    try:
        return _decode(message.body)  # type: ignore[no-any-return, unused-ignore]
    except DECODE_ERRORS as error:
        log.error("note %d about publishing cannot be read: %s", message.queue_offset, error)
        return None
