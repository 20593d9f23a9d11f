"""What a monitor finds in one round, and which of it is over a threshold. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gantrymq.base.plurals import counted
from gantrymq.client.admin.groups.lag import GroupLag
from gantrymq.model import Queue


@dataclass(frozen=True)
class Thresholds:
    """What is worth an alarm: more than these."""

    waiting: int = 10_000
    """Messages of a group that wait, retries included."""
    oldest_seconds: float = 600.0
    """The age of the oldest of them."""
    retries: int = 1_000
    dead: int = 0
    """Dead letters that came since the last round."""


@dataclass(frozen=True)
class Problem:
    """Something that is over its threshold, or wrong in itself."""

    kind: str
    """waiting, oldest, retries, dead, stuck, differing, deleted or unknown."""
    group: str
    text: str
    value: float | None = None
    limit: float | None = None

    def row(self) -> dict[str, Any]:
        """The problem for JSON."""
        row = {"kind": self.kind, "group": self.group or None, "text": self.text}
        return row | ({} if self.value is None else {"value": self.value, "limit": self.limit})


@dataclass(frozen=True)
class OffsetMovedEvent:
    """A group asked for an offset that its queue does not have, and was sent to another one."""

    group: str
    queue: Queue
    requested: int
    corrected: int
    at_ms: int

    @property
    def deleted(self) -> int:
        """Messages that were deleted before the group read them."""
        return max(0, self.corrected - self.requested)

    @property
    def text(self) -> str:
        if self.deleted:
            lost = counted(self.deleted, "message")
            was = "was" if self.deleted == 1 else "were"
            return (
                f"{lost} of {self.queue.text} {was} deleted before {self.group} read them: "
                f"it asked for offset {self.requested} and goes on at {self.corrected}"
            )
        return (
            f"{self.group} asked for offset {self.requested} of {self.queue.text}, which ends "
            f"before it: it goes on at {self.corrected}"
        )

    @property
    def problem(self) -> Problem:
        return Problem("deleted", self.group, self.text)


@dataclass(frozen=True)
class MonitorRound:
    """All groups at one time."""

    number: int
    at_ms: int
    groups: tuple[GroupLag, ...] = ()
    new_dead: Mapping[str, int] = field(default_factory=dict)
    """Dead letters of each group that came since the last round."""
    unknown: tuple[str, ...] = ()
    """What could not be asked, and why."""

    def age_seconds(self, group: GroupLag) -> float | None:
        """How old the oldest waiting message of a group is."""
        return None if group.oldest_ms is None else max(0, self.at_ms - group.oldest_ms) / 1000

    def problems(self, limits: Thresholds) -> list[Problem]:
        """What is wrong, group by group."""
        found = [problem for group in self.groups for problem in self._problems_of(group, limits)]
        return found + [Problem("unknown", "", text) for text in self.unknown]

    def _problems_of(self, group: GroupLag, limits: Thresholds) -> Iterator[Problem]:
        name, age = group.group, self.age_seconds(group)
        new_dead = self.new_dead.get(name, 0)
        if group.lag > limits.waiting:
            text = f"{name} has {counted(group.lag, 'waiting message')}"
            yield Problem("waiting", name, text, group.lag, limits.waiting)
        if age is not None and age > limits.oldest_seconds:
            text = f"the oldest message that waits for {name} is {_span(age)} old"
            yield Problem("oldest", name, text, age, limits.oldest_seconds)
        if group.retry > limits.retries:
            text = f"{name} has {counted(group.retry, 'retry', 'retries')} waiting"
            yield Problem("retries", name, text, group.retry, limits.retries)
        if new_dead > limits.dead:
            text = f"{name} got {counted(new_dead, 'dead letter')} since the last round"
            yield Problem("dead", name, text, new_dead, limits.dead)
        for topic in group.topics:
            for row in topic.queues:
                if row.deleted:
                    lost = counted(row.deleted, "message")
                    text = f"{lost} of {row.queue.text} deleted before {name} read them"
                    yield Problem("deleted", name, text)
                if row.holders and row.trouble:
                    text = f"{row.queue} of {name}, held by {', '.join(row.holders)}: {row.trouble}"
                    yield Problem("stuck", name, text)
        if group.members.differ:
            yield Problem("differing", name, f"members of {name} have different subscriptions")

    def lines(self) -> list[str]:
        """One sentence for each group that has something waiting or dead."""
        return [self._line(each) for each in self.groups if each.lag or each.dead_count]

    def _line(self, group: GroupLag) -> str:
        words = [f"{group.lag} waiting"]
        age, worst = self.age_seconds(group), group.slowest
        if age is not None:
            words.append(f"the oldest for {_span(age)}")
        if worst is not None and worst.lag:
            words.append(f"the worst queue {worst.queue} with {worst.lag}")
        words.append(counted(group.retry, "retry", "retries"))
        words.append(counted(group.dead_count, "dead letter"))
        words.append(counted(len(group.members.members), "member"))
        return f"{group.group}: {', '.join(words)}"

    def rows(self) -> list[dict[str, Any]]:
        """All groups for JSON."""
        return [self._row(group) for group in self.groups]

    def _row(self, group: GroupLag) -> dict[str, Any]:
        worst, age = group.slowest, self.age_seconds(group)
        return {
            "group": group.group,
            "waiting": group.lag,
            "oldestAgeMs": None if age is None else round(age * 1000),
            "worstQueue": str(worst.queue) if worst and worst.lag else None,
            "worstWaiting": worst.lag if worst else 0,
            "retries": group.retry,
            "dead": group.dead_count,
            "newDead": self.new_dead.get(group.group, 0),
            "members": len(group.members.members),
        }


def _span(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
