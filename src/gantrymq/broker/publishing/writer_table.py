"""The state of each writer, computed from the notes. Pure.

A writer numbers its epochs upwards. The first decision about an epoch holds; repeated ones change
nothing.
"""

from typing import Final

import msgspec

from gantrymq.broker.publishing.notes import (
    DecidedNote,
    EnrolledNote,
    IntendedNote,
    Note,
    PreparedNote,
    PublishedNote,
)
from gantrymq.protocol.publishing import ONCE_PREFIX, EpochDecision, Share, WriterState

IDLE_DAYS_MAX: Final = 30
"""A writer that did nothing for so long is forgotten."""
ONCE_DAYS_MAX: Final = 1
"""The same for writers of one epoch only, when it is complete."""
HOLD_DAYS_MAX: Final = 7
"""For how many days retention keeps what is staged for an epoch that is prepared only."""
WRITERS_MAX: Final = 20_000
"""The most writers remembered: those of one epoch are forgotten first, then the longest idle."""
DAY_MS: Final = 86_400_000


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A share that is being published."""

    epoch: int
    share: Share
    position: int
    """Where the note about it lies in the log: no copy lies in front of it."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """The staged messages of a prepared epoch: another broker may have decided it by now."""

    epoch: int
    lowest: int
    since_ms: int

    def is_over(self, now_ms: int) -> bool:
        return now_ms - self.since_ms > HOLD_DAYS_MAX * DAY_MS


class EpochWriter(msgspec.Struct, kw_only=True):
    """One writer, as this broker knows it."""

    used_ms: int = 0
    coordinator: str = ""
    decided: int = -1
    decision: EpochDecision | None = None
    """Of the decided epoch, for as long as it is not published everywhere."""
    published: int = -1
    intent: Intent | None = None
    hold: Hold | None = None

    @property
    def state(self) -> WriterState:
        return WriterState(
            coordinator=self.coordinator,
            decided=self.decided,
            complete=self.decision is None,
            published=self.published,
        )

    @property
    def is_busy(self) -> bool:
        return self.intent is not None or self.decision is not None


class WriterFile(msgspec.Struct, kw_only=True):
    """The table of writers in a file: the effect of all notes before `position`."""

    position: int = 0
    """In the publish topic's queue."""
    writers: dict[str, EpochWriter] = {}


class WriterTable:
    """All writers, and the queue offset of the next note."""

    def __init__(self) -> None:
        self.writers: dict[str, EpochWriter] = {}
        self.position = 0

    def load(self, saved: WriterFile) -> None:
        self.writers, self.position = saved.writers, saved.position

    def saved(self) -> WriterFile:
        return WriterFile(position=self.position, writers=self.writers)

    def find(self, writer: str) -> EpochWriter:
        """A writer's state; an empty one for an unknown writer."""
        return self.writers.get(writer) or EpochWriter()

    def apply(self, note: Note | None, offset: int, position: int, now_ms: int) -> None:
        """Apply the note at queue offset `offset` and log offset `position`."""
        self.position = offset + 1
        if note is None:
            return
        entry = self.writers.setdefault(note.writer, EpochWriter())
        entry.used_ms = now_ms
        if isinstance(note, EnrolledNote):
            entry.coordinator = entry.coordinator or note.coordinator
        elif isinstance(note, PreparedNote):
            entry.hold = _held(entry, note, now_ms)
        elif isinstance(note, DecidedNote):
            agreed = entry.coordinator in ("", note.coordinator)
            if note.epoch > entry.decided and agreed:
                entry.decided, entry.decision = note.epoch, note.decision
                entry.coordinator = note.coordinator
        elif isinstance(note, IntendedNote):
            if note.epoch > entry.published and entry.intent is None:
                entry.intent = Intent(epoch=note.epoch, share=note.share, position=position)
        elif isinstance(note, PublishedNote):
            entry.published = max(entry.published, note.epoch)
            if entry.intent is not None and entry.intent.epoch <= note.epoch:
                entry.intent = None
            if entry.hold is not None and entry.hold.epoch <= note.epoch:
                entry.hold = None
            if note.epoch >= entry.decided:
                entry.decision = None  # the coordinator publishes last, so all is done

    def forget_idle(self, now_ms: int) -> None:
        """Forget writers that are idle for long, and the longest idle ones if there are too many.

        Writers with a decided epoch or one being published stay, except writers of a single epoch
        whose decision is old.
        """
        gone = [name for name, entry in self.writers.items() if _is_past(name, entry, now_ms)]
        for name in gone:
            del self.writers[name]
        over = len(self.writers) - WRITERS_MAX
        if over > 0:
            idle = [name for name, entry in self.writers.items() if not entry.is_busy]
            idle.sort(key=lambda name: (not _is_once(name), self.writers[name].used_ms))
            for name in idle[:over]:
                del self.writers[name]

    def is_held(self, upto: int, now_ms: int) -> bool:
        """Whether messages staged below a log offset may still be published."""
        holds = [entry.hold for entry in self.writers.values() if entry.hold is not None]
        return any(hold.lowest < upto and not hold.is_over(now_ms) for hold in holds)

    @property
    def intents(self) -> dict[str, Intent]:
        """The shares that are being published, by writer."""
        return {
            name: entry.intent for name, entry in self.writers.items() if entry.intent is not None
        }


def _held(entry: EpochWriter, note: PreparedNote, now_ms: int) -> Hold | None:
    """The writer's hold after a note.

    Two drivers may prepare the same epoch, and either may have decided it, so the lower log offset
    counts. The time runs from the first note; otherwise jobs that fail again and again would hold
    for ever.
    """
    old = entry.hold
    if note.epoch <= entry.published or (old is not None and note.epoch < old.epoch):
        return old
    if old is not None and note.epoch == old.epoch and not old.is_over(now_ms):
        lowest = min(old.lowest, note.lowest)
        return Hold(epoch=old.epoch, lowest=lowest, since_ms=old.since_ms)
    return Hold(epoch=note.epoch, lowest=note.lowest, since_ms=now_ms)


def _is_once(writer: str) -> bool:
    return writer.startswith(ONCE_PREFIX)


def _is_past(writer: str, entry: EpochWriter, now_ms: int) -> bool:
    """Whether a writer is idle for so long that it is forgotten.

    No client comes back for a writer of a single epoch, so it is forgotten even with a decision
    that was never published.
    """
    days = (now_ms - entry.used_ms) / DAY_MS
    if _is_once(writer) and entry.intent is None:
        return days > (ONCE_DAYS_MAX if entry.decision is None else IDLE_DAYS_MAX)
    return days > IDLE_DAYS_MAX and not entry.is_busy
