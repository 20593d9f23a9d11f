"""What a report is about and where its rows come from. Pure."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import Period, describe
from gantrymq.model import TRACE_TOPIC, check_group_name, check_topic_name

LIVE, STORE, ARCHIVE = "live topics", "store files", "archive"
MARGIN_MS: Final = 600_000
"""Rows that are read around the period: what was sent at its edge may be stored beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """A report as the user requested it."""

    namesrv: str | None = None
    store: Path | None = None
    archive: Path | None = None
    topics: tuple[str, ...] = ()
    """Empty: all that are no system's."""
    groups: tuple[str, ...] = ()
    """Empty: all that read the topics."""
    period: Period = field(default_factory=Period)
    zone: str = "UTC"
    trace_topic: str = TRACE_TOPIC
    step_ms: int | None = None
    """None: a step that suits the period."""

    def __post_init__(self) -> None:
        if self.store is not None and self.archive is not None:
            raise ConfigError("rows come from --store or from --archive, not from both")
        if self.namesrv is None and self.store is None and self.archive is None:
            raise ConfigError("where are the messages? Give --namesrv, --store or --archive")
        for topic in (*self.topics, self.trace_topic):
            check_topic_name(topic)
        for group in self.groups:
            check_group_name(group)

    @property
    def kind(self) -> str:
        if self.archive is not None:
            return ARCHIVE
        return STORE if self.store is not None else LIVE

    @property
    def read_since_ms(self) -> int | None:
        since = self.period.since_ms
        return None if since is None else max(0, since - MARGIN_MS)

    @property
    def read_until_ms(self) -> int | None:
        until = self.period.until_ms
        return None if until is None else until + MARGIN_MS

    def words(self) -> str:
        """The period as text."""
        since, until = self.period.since_ms, self.period.until_ms
        begin = "the first message" if since is None else describe(since, self.zone)
        end = "now" if until is None else describe(until, self.zone)
        return f"{begin} to {end}"
