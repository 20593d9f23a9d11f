"""How far each writer has come: the notes, added up. Pure.

A writer counts its epochs upwards. The first decision about an epoch holds, whoever repeats it.
"""

from typing import Final

import msgspec

from gantrymq.broker.publishing.notes import (
    Decided,
    Enrolled,
    Intended,
    Note,
    PreparedNote,
    Published,
)
from gantrymq.protocol.publishing import ONCE_PREFIX, EpochDecision, Share, WriterState

IDLE_DAYS_MAX: Final = 30
"""A writer that did nothing for so long is forgotten."""
ONCE_DAYS_MAX: Final = 1
"""The same for writers of one epoch only, when it is complete."""
HOLD_DAYS_MAX: Final = 7
"""So long retention leaves alone what is staged for an epoch that is prepared and not published."""
WRITERS_MAX: Final = 20_000
"""More are not remembered: writers of one epoch go first, then whoever was idle longest."""
DAY_MS: Final = 86_400_000


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A share on its way into its queues."""

    epoch: int
    share: Share
    position: int
    """Where the note about it lies in the log: no copy lies in front of it."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """What is staged for an epoch that was prepared: it may be decided by now, elsewhere."""

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


class Saved(msgspec.Struct, kw_only=True):
    """The ledger in a file: everything that notes before `position` say."""

    position: int = 0
    """In the publish topic's queue."""
    writers: dict[str, EpochWriter] = {}


class WriterTable:
    """All writers, and up to which note that is."""

    def __init__(self) -> None:
        self.writers: dict[str, EpochWriter] = {}
        self.position = 0

    def load(self, saved: Saved) -> None:
        self.writers, self.position = saved.writers, saved.position

    def saved(self) -> Saved:
        return Saved(position=self.position, writers=self.writers)

    def find(self, writer: str) -> EpochWriter:
        """A writer's state; an unknown one has none yet."""
        return self.writers.get(writer) or EpochWriter()

    def apply(self, note: Note | None, offset: int, position: int, now_ms: int) -> None:
        """Add the note that stands at a queue offset and at a log offset."""
        self.position = offset + 1
        if note is None:
            return
        entry = self.writers.setdefault(note.writer, EpochWriter())
        entry.used_ms = now_ms
        if isinstance(note, Enrolled):
            entry.coordinator = entry.coordinator or note.coordinator
        elif isinstance(note, PreparedNote):
            entry.hold = _held(entry, note, now_ms)
        elif isinstance(note, Decided):
            agreed = entry.coordinator in ("", note.coordinator)
            if note.epoch > entry.decided and agreed:
                entry.decided, entry.decision = note.epoch, note.decision
                entry.coordinator = note.coordinator
        elif isinstance(note, Intended):
            if note.epoch > entry.published and entry.intent is None:
                entry.intent = Intent(epoch=note.epoch, share=note.share, position=position)
        elif isinstance(note, Published):
            entry.published = max(entry.published, note.epoch)
            if entry.intent is not None and entry.intent.epoch <= note.epoch:
                entry.intent = None
            if entry.hold is not None and entry.hold.epoch <= note.epoch:
                entry.hold = None
            if note.epoch >= entry.decided:
                entry.decision = None  # the coordinator is asked last, so this was the whole

    def forget_idle(self, now_ms: int) -> None:
        """Let go of writers that are long gone, and of the longest idle ones if there are many.

        What is decided or being published stays whatever its age, unless nobody can repeat it.
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
        """Whether something that is staged below a log offset may still be published."""
        holds = [entry.hold for entry in self.writers.values() if entry.hold is not None]
        return any(hold.lowest < upto and not hold.is_over(now_ms) for hold in holds)

    @property
    def intents(self) -> dict[str, Intent]:
        """What is being published, by writer."""
        return {
            name: entry.intent for name, entry in self.writers.items() if entry.intent is not None
        }


def _held(entry: EpochWriter, note: PreparedNote, now_ms: int) -> Hold | None:
    """What a writer holds behind a note. Of two drivers with one epoch either may have decided, so
    the lower place counts; the time runs from the first, or failing jobs would hold for ever."""
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
    """Whether a writer's time is over. One of a single epoch that was left open has no heir: its
    decision goes as well, in the end."""
    days = (now_ms - entry.used_ms) / DAY_MS
    if _is_once(writer) and entry.intent is None:
        return days > (ONCE_DAYS_MAX if entry.decision is None else IDLE_DAYS_MAX)
    return days > IDLE_DAYS_MAX and not entry.is_busy
