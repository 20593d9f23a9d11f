"""Rates and times of a consumer over the last minute, by topic."""

from collections import deque
from typing import Final

MINUTE: Final = 60.0
HOUR: Final = 3600.0
BUCKET_SECONDS: Final = 10.0


class WindowCount:
    """A count and a sum over a sliding window, in buckets of ten seconds."""

    __slots__ = ("_buckets", "_keep")

    def __init__(self, keep_seconds: float = MINUTE) -> None:
        self._keep = keep_seconds
        self._buckets: deque[list[float]] = deque()

    def add(self, now: float, count: int = 1, amount: float = 0.0) -> None:
        buckets = self._buckets
        if not buckets or now >= buckets[-1][0] + BUCKET_SECONDS:
            buckets.append([now - now % BUCKET_SECONDS, 0, 0.0])
            self._forget(now)
        last = buckets[-1]
        last[1] += count
        last[2] += amount

    def _forget(self, now: float) -> None:
        while self._buckets and self._buckets[0][0] + BUCKET_SECONDS < now - self._keep:
            self._buckets.popleft()

    def total(self, now: float) -> int:
        self._forget(now)
        return int(sum(bucket[1] for bucket in self._buckets))

    def rate(self, now: float) -> float:
        """The count per second."""
        return self.total(now) / self._keep

    def average(self, now: float) -> float:
        """The mean of the amounts."""
        count = self.total(now)
        return sum(bucket[2] for bucket in self._buckets) / count if count else 0.0


class TopicStats:
    """The figures of one topic of one consumer."""

    __slots__ = ("done", "failed", "failed_hour", "pulls")

    def __init__(self) -> None:
        self.done, self.failed, self.pulls = WindowCount(), WindowCount(), WindowCount()
        self.failed_hour = WindowCount(HOUR)

    def went_wrong(self, now: float) -> None:
        self.failed.add(now)
        self.failed_hour.add(now)

    def pulled(self, now: float, seconds: float, count: int) -> None:
        self.pulls.add(now, count, seconds * count)

    def as_status(self, now: float) -> dict[str, float]:
        """RocketMQ's ConsumeStatus; times in milliseconds."""
        return {
            "consumeFailedMsgs": self.failed_hour.total(now),
            "consumeFailedTPS": self.failed.rate(now),
            "consumeOKTPS": self.done.rate(now),
            "consumeRT": self.done.average(now) * 1000,
            "pullRT": self.pulls.average(now) * 1000,
            "pullTPS": self.pulls.rate(now),
        }


class ConsumeStats:
    """The figures of all topics of one consumer."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicStats] = {}

    def of(self, topic: str) -> TopicStats:
        stats = self._topics.get(topic)
        if stats is None:
            stats = self._topics[topic] = TopicStats()
        return stats
