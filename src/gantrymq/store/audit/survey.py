"""Walks the whole log once and lists what is damaged in it.

An audit checks parts of a log apart, and leaves out what a broker may be writing. Who wants to
mend a log has to know all of it: which stretches hold no record, and whether records follow them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gantrymq.kernel import STOP_BLANK, Walked
from gantrymq.store.audit.walk import Damage, WalkEnd, damage_at, next_record, stretch
from gantrymq.store.files.mapped import Bytes, MappedLog

Tell = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


@dataclass
class LogSurvey:
    """What a log holds between two offsets."""

    end: int
    """Behind the last good record."""
    records: int = 0
    bytes: int = 0
    first_ms: int = 0
    last_ms: int = 0
    damages: list[Damage] = field(default_factory=list)
    """Stretches without a record that have records behind them."""
    tail: Damage | None = None
    """What stands behind the last good record and is no record; None if nothing does."""


def survey(log: MappedLog, start: int, stop: int, tell: Tell | None = None) -> LogSurvey:
    """Look at the log from `start`, where a record begins, up to `stop`."""
    found = LogSurvey(start)
    waiting: list[Damage] = []
    """Damage of which is not known yet whether a record follows."""
    bases = [base for base in log.bases if base + log.segment_bytes > start and base < stop]
    for number, base in enumerate(bases):
        _survey_file(log, base, max(start, base), stop, found, waiting)
        if tell is not None:
            tell(number + 1, len(bases))
    real = [each for each in waiting if each.kind]
    if real:
        first = real[0]
        found.tail = Damage(found.end, real[-1].end, first.kind, first.text)
    return found


def good_records(
    log: MappedLog, start: int, stop: int
) -> Iterator[tuple[int, Bytes, list[Walked]]]:
    """The good records that begin between two log offsets: first offset and bytes of their file.

    `start` need not be the beginning of a record; damage is passed over.
    """
    for base in log.bases:
        view, last = log.file(base), min(stop - base, log.segment_bytes)
        at: int | None = max(0, start - base)
        if at and at < last:
            at = next_record(view, at, last, base)
        while at is not None and at < last:
            parts = stretch(view, at, last, base, log.segment_bytes)
            ended = WalkEnd(at, STOP_BLANK)
            try:
                while True:
                    yield base, view, next(parts)
            except StopIteration as ending:
                ended = ending.value
            if ended.kind == STOP_BLANK:
                break
            at, _ = damage_at(log, view, ended.at, last, base)


def _survey_file(
    log: MappedLog, base: int, start: int, stop: int, found: LogSurvey, waiting: list[Damage]
) -> None:
    view, last = log.file(base), min(stop - base, log.segment_bytes)
    at: int | None = start - base
    while at is not None and at < last:
        ended = _walk(log, view, at, last, base, found, waiting)
        if ended.kind == STOP_BLANK or ended.at >= last:
            if base + log.segment_bytes < stop and ended.kind == STOP_BLANK:
                found.end = base + log.segment_bytes if not waiting else found.end
            return
        at, damage = damage_at(log, view, ended.at, last, base)
        if damage is None:  # zeros up to the end of the file: fine, if nothing follows
            damage = Damage(base + ended.at, base + log.segment_bytes, "", "")
        if waiting and waiting[-1].end == damage.start:
            waiting[-1] = waiting[-1]._replace(end=damage.end)
        else:
            waiting.append(damage._replace(before_ms=found.last_ms))


def _walk(
    log: MappedLog,
    view: Bytes,
    at: int,
    last: int,
    base: int,
    found: LogSurvey,
    waiting: list[Damage],
) -> WalkEnd:
    """Good records from `at` on; what waited before them is damage for sure."""
    parts = stretch(view, at, last, base, log.segment_bytes)
    try:
        while True:
            records = next(parts)
            if not records:
                continue
            found.damages += [
                each if each.kind else each._replace(kind="log-zeros", text=NO_END_MARK)
                for each in waiting
            ]
            waiting.clear()
            found.records += len(records)
            found.bytes += sum(record[4] for record in records)
            found.end = records[-1][3] + records[-1][4]
            found.first_ms = found.first_ms or records[0][7]
            found.last_ms = records[-1][7]
    except StopIteration as ending:
        return ending.value  # type: ignore[no-any-return]


NO_END_MARK = "zeros up to the end of the file, and records in files behind it"
