"""The request of a replay, checked before Spark is started."""

import hashlib
import re
from typing import Final

import msgspec

from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import parse_period
from gantrymq.model import (
    DEAD_PREFIX,
    RETRY_PREFIX,
    UNSENDABLE_TOPICS,
    check_topic_name,
    is_system_topic,
)
from gantrymq.pipelines.common.selection import Selection, check_selection
from gantrymq.protocol.subscription import ALL

TOPIC, STORE, ARCHIVE = "topic", "store", "archive"
BY_KEY, BY_QUEUE = "key", "queue"
_RATE: Final = re.compile(r"(\d+)(?:/s)?")


class Origin(msgspec.Struct, frozen=True):
    """Where the messages are: a live topic, a folder of store files, or an archive."""

    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A replay as the user wrote it.

    Times stay text, so that the same text, given later, resumes the same replay.
    """

    origin: Origin
    topic: str
    into: str
    since: str | None = None
    until: str | None = None
    zone: str = "UTC"
    keys: tuple[str, ...] = ()
    tags: str = ALL
    sql: str | None = None
    ids: tuple[str, ...] = ()
    order: str = BY_KEY
    everything: bool = False
    same_topic: bool = False

    def fingerprint(self) -> str:
        """A hash of the request; equal requests have the same."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:8]

    def selection(self, now_ms: int) -> tuple[Selection, tuple[str, ...]]:
        """The selection as of now, with notes about ambiguous times."""
        period = parse_period(self.since, self.until, self.zone, now_ms)
        found = Selection(
            since_ms=period.since_ms,
            until_ms=period.until_ms,
            keys=self.keys,
            tags=self.tags,
            sql=self.sql,
            ids=self.ids,
        )
        return found, period.notes


def parse_origin(text: str) -> Origin:
    """`topic:NAME`, `store:DIR`, or the path of an archive."""
    kind, mark, place = text.partition(":")
    if not mark or kind not in (TOPIC, STORE, ARCHIVE):
        kind, place = ARCHIVE, text
    if not place.strip():
        raise ConfigError(
            f"{text!r} is no origin: write topic:NAME, store:DIR or an archive's path"
        )
    return Origin(kind, place)


def parse_rate(text: str) -> int:
    """Messages a second, as `500` or `500/s`."""
    found = _RATE.fullmatch(text.strip())
    if found is None or not 0 < int(found[1]) <= 10_000_000:
        raise ConfigError(f"a rate is messages a second, such as 500 or 500/s, not {text!r}")
    return int(found[1])


def check_request(request: ReplayRequest, now_ms: int) -> None:
    """Refuse wrong requests: everything without `everything`, loops, system topics."""
    selection, _ = request.selection(now_ms)
    check_selection(selection)
    check_topic_name(request.topic)
    check_topic_name(request.into)
    if request.order not in (BY_KEY, BY_QUEUE):
        raise ConfigError(f"order is kept by {BY_KEY} or by {BY_QUEUE}, not by {request.order!r}")
    if request.origin.kind == TOPIC and request.origin.place != request.topic:
        raise ConfigError(f"{request.origin} has no messages of the topic {request.topic}")
    if selection.is_all and not request.everything:
        raise ConfigError(
            f"nothing says which messages of {request.topic}: give a period, keys, tags, SQL or "
            "ids, or --all for every one"
        )
    if _is_the_systems(request.into):
        raise ConfigError(f"{request.into} is a topic of the system: replay into one of your own")
    if request.into == request.topic and not request.same_topic:
        raise ConfigError(
            f"into {request.into} itself every message comes again to its own consumers: say "
            "--same-topic if you want that, or another topic with --into"
        )


def _is_the_systems(topic: str) -> bool:
    return (
        is_system_topic(topic)
        or topic in UNSENDABLE_TOPICS
        or topic.startswith((RETRY_PREFIX, DEAD_PREFIX))
        or topic.upper().startswith("RMQ_SYS_")
    )
