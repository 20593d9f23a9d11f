"""The place of a search as text, which a reader hands back to go on."""

import base64
import binascii
import zlib
from typing import Final

import msgspec

from gantrymq.client.admin.messages.paged_search import SearchPlace
from gantrymq.console.errors import BadInput

BYTES_MAX: Final = 2 * 1024 * 1024
OFFSET_MAX: Final = 1 << 62


def cursor_of(place: SearchPlace) -> str:
    """The text of a place."""
    packed = zlib.compress(msgspec.json.encode(place))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def place_of(cursor: str, topic: str) -> SearchPlace:
    """The place of a text; BadInput if it is none, or of another topic."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        data = zlib.decompressobj().decompress(packed, BYTES_MAX)
        place = msgspec.json.decode(data, type=SearchPlace)
    except (binascii.Error, ValueError, zlib.error, msgspec.MsgspecError):
        raise BadInput("that is no cursor: take it from the answer of a search") from None
    is_sane = all(
        0 <= span.low <= span.high < OFFSET_MAX and span.low <= span.at <= span.high
        and 0 <= span.queue_id < 1 << 31
        for span in place.spans
    )  # fmt: skip
    queues = {(span.broker, span.queue_id) for span in place.spans}
    if place.topic != topic or not is_sane or len(queues) < len(place.spans):
        raise BadInput("that cursor is of another search")
    return place
