"""What an audit finds; a finding is a plain value that any worker can send to whoever asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gantrymq.store.files.mapped import Ints

WRONG: Final = "wrong"
NOTE: Final = "note"
COVERED: Final = "covered"
JOINT: Final = "joint"
"""Between workers and driver only: where a stretch of the log begins and ends."""

KEPT_MAX: Final = 1000
"""Findings of one task that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, a note, or how much was checked."""

    level: str
    kind: str
    file: str = ""
    at: int = -1
    """The byte in the file."""
    position: int = -1
    """The log offset that it is about."""
    topic: str = ""
    queue_id: int = -1
    offset: int = -1
    """The queue offset of the first message that it is about."""
    count: int = 1
    """How many messages, entries or bytes."""
    text: str = ""

    def row(self) -> dict[str, Any]:
        """The finding as a row for output; fields that do not apply are None."""
        row = {
            "level": self.level,
            "kind": self.kind,
            "file": self.file,
            "byte": self.at,
            "topic": self.topic,
            "queueId": self.queue_id,
            "offset": self.offset,
            "count": self.count,
            "text": self.text,
        }
        return {name: None if value in ("", -1) else value for name, value in row.items()}


class TaskFindings:
    """What one task found and how much it covered."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._covered: Counter[str] = Counter()

    def add(self, finding: Finding) -> None:
        """Keep a finding; beyond the limit findings are only counted, by kind.

        Joints are always kept: without them the log would seem unreadable.
        """
        if finding.level == JOINT or len(self.findings) < KEPT_MAX:
            self.findings.append(finding)
        else:
            self._dropped[finding.level, finding.kind] += finding.count

    def damaged(self) -> list[tuple[int, int]]:
        """The stretches of the log that hold no good record."""
        return [
            (each.position, each.position + each.count)
            for each in self.findings
            if is_log_damage(each)
        ]

    def cover(self, kind: str, count: int) -> None:
        """Add to the number of things of a kind that were checked."""
        if count:
            self._covered[kind] += count

    def all(self) -> list[Finding]:
        """Everything that was found, what was only counted, and how much was covered."""
        more = [
            Finding(level, kind, count=count, text="more of the same in this part of the store")
            for (level, kind), count in self._dropped.items()
        ]
        covered = [Finding(COVERED, kind, count=count) for kind, count in self._covered.items()]
        return [*self.findings, *more, *covered]


def is_log_damage(finding: Finding) -> bool:
    """Whether the finding is a stretch of the log that cannot be read."""
    return finding.kind in ("crc", "log-chain", "log-zeros", "log-cut", "log-parts", "log-end")


def runs(offsets: Ints) -> list[tuple[int, int]]:
    """Stretches of offsets that follow each other: the index of the first, and how many."""
    if not offsets.size:
        return []
    edges = np.flatnonzero(np.diff(offsets) != 1) + 1
    starts = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [offsets.size]])
    return list(zip(starts.tolist(), (ends - starts).tolist(), strict=True))


def joined(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of one kind about offsets of a queue that follow each other become one."""
    whole: list[Finding] = []
    for each in sorted(findings, key=lambda f: (f.kind, f.topic, f.queue_id, f.offset)):
        last = whole[-1] if whole else None
        if (
            last is not None
            and each.offset >= 0
            and (last.kind, last.topic, last.queue_id) == (each.kind, each.topic, each.queue_id)
            and last.offset + last.count == each.offset
        ):
            whole[-1] = replace(last, count=last.count + each.count)
        else:
            whole.append(each)
    return whole


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sorted for output: faults first, then by place."""
    return sorted(
        findings,
        key=lambda each: (each.level != WRONG, each.position, each.file, each.at, each.offset),
    )
