"""What two looks at the progress of all groups say about the time between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.client.admin.groups.all_progress import AllProgress
from gantrymq.model import Queue

SLOPE_VALUES_MIN: Final = 3


@dataclass(frozen=True)
class ProgressSums:
    """Offsets added up: how much was ever sent to a topic, and ever read by a group."""

    at_seconds: float
    sent: Mapping[str, int]
    """By topic, as far as any group reads it."""
    read: Mapping[str, int]
    """By group."""


def sums_of(progress: AllProgress, at_seconds: float) -> ProgressSums:
    """The sums of a look."""
    ends: dict[Queue, int] = {}
    read: dict[str, int] = {}
    for group, rows in progress.items():
        read[group] = sum(row.consumer_offset for row in rows.values())
        for queue, row in rows.items():
            ends[queue] = max(ends.get(queue, 0), row.broker_offset)
    sent: dict[str, int] = {}
    for queue, end in ends.items():
        sent[queue.topic] = sent.get(queue.topic, 0) + end
    return ProgressSums(at_seconds, sent, read)


def rates_between(
    before: Mapping[str, int], after: Mapping[str, int], seconds: float
) -> dict[str, float]:
    """What grew, a second. A sum that became smaller (a reset, a new topic) says nothing."""
    if seconds <= 0:
        return {}
    return {
        name: (value - before[name]) / seconds
        for name, value in after.items()
        if name in before and value >= before[name]
    }


def largest(values: Mapping[str, float], count: int) -> list[str]:
    """The names with the largest values."""
    return sorted(values, key=lambda name: (-values[name], name))[:count]


def slope(values: list[float | None], step: float) -> float | None:
    """How fast values grow a second, by least squares; None if there are too few."""
    known = [(at * step, value) for at, value in enumerate(values) if value is not None]
    if len(known) < SLOPE_VALUES_MIN:
        return None
    mean_at = sum(at for at, _ in known) / len(known)
    mean = sum(value for _, value in known) / len(known)
    spread = sum((at - mean_at) ** 2 for at, _ in known)
    return sum((at - mean_at) * (value - mean) for at, value in known) / spread


def seconds_to_drain(lag: float, growth: float | None) -> float | None:
    """How long a lag lasts if it goes on like this; None if it does not shrink."""
    if not lag:
        return 0.0
    return lag / -growth if growth is not None and growth < 0 else None
