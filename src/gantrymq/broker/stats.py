"""Counts messages in and out: totals, and rates over 10 s, 1 min and 10 min."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from gantrymq.base.histogram import Histogram
from gantrymq.store.append import Append
from gantrymq.store.writing.write_counts import WriteCounts

SIZE_BOUNDS = (1024, 4096, 524_288, 1_048_576, 2_097_152, 4_194_304)
"""RocketMQ's classes of sizes of messages, in bytes."""
FINISH_BOUNDS = (5.0, 60.0, 600.0, 3600.0, 43_200.0, 86_400.0)
"""Its classes of seconds that a transaction takes."""
SAMPLE_SECONDS = 10.0
WINDOWS = (1, 6, 60)
"""Samples behind the three rates."""


class BrokerStats:
    """Counters a broker keeps per topic and per group; plain additions on the hot path.

    The store counts all messages written: a message that waited was written twice.
    """

    def __init__(self, boot_ms: int, written: WriteCounts) -> None:
        self.boot_ms, self._written = boot_ms, written
        self.put_count = self.get_count = 0
        self.get_found = self.get_missed = 0
        self.read_longest_ms = 0
        """Of pulls that waited for the disk; what is in memory is read in less than 1 ms."""
        self.counters: dict[str, int] = {}
        """What happens seldom and should be noticed: how often since the start, by name."""
        self.topic_put: dict[str, list[int]] = {}
        self.group_get: dict[str, list[int]] = {}
        self.sent_back: dict[str, list[int]] = {}
        """Messages, bytes and requests: by topic, and twice by `topic@group`."""
        self.disk_reads: dict[str, list[int]] = {}
        """Milliseconds, nothing, and pulls that waited for the disk: by `queue@topic@group`."""
        self.larger: dict[str, list[int]] = {}
        """By topic, how many messages were in each class of sizes but the first."""
        self.typed: dict[str, dict[str, list[int]]] = {}
        """Messages and bytes by topic and RocketMQ's type of message, where that is not the
        topic's own: copies of messages that waited, and committed ones. They are in `topic_put`."""
        self.dead: dict[tuple[str, str], int] = {}
        """Dead letters by group and original topic."""
        self.committed: dict[str, Histogram] = {}
        """Seconds to the commit of half messages, by topic."""
        self.rolled_back: dict[str, int] = {}
        self.revived: dict[tuple[str, str, str], int] = {}
        """Popped messages that were given out again, by group, topic and status of the write."""
        self.rows = {
            "topic": self.topic_put,
            "group": self.group_get,
            "back": self.sent_back,
            "disk": self.disk_reads,
        }
        self.new_rows: list[tuple[str, str, list[int]]] = []
        """Table, key and row of what was counted for the first time; the windows take them."""
        self._samples: deque[tuple[float, ...]] = deque(maxlen=WINDOWS[-1] + 1)
        self._sampled = 0
        self.put_morning = self.get_morning = (0, 0)
        """The totals of yesterday's and of today's midnight."""

    def count(self, name: str) -> None:
        """Add one to a named counter; for rare events."""
        self.counters[name] = self.counters.get(name, 0) + 1

    def put(self, topic: str, count: int, size: int) -> None:
        self.put_count += count
        row = self.topic_put.get(topic) or self._row("topic", topic)
        row[0] += count
        row[1] += size
        row[2] += 1
        if size > 1024 * count:
            self._put_larger(topic, count, size)

    def put_many(
        self, topic: str, count: int, size: int, larger: Iterable[tuple[int, int]]
    ) -> None:
        """Count messages of one request each; `larger` has classes of sizes, and how many are in
        each."""
        self.put_count += count
        row = self.topic_put.get(topic) or self._row("topic", topic)
        row[0] += count
        row[1] += size
        row[2] += count
        for number, more in larger:
            if topic not in self.larger:
                self.larger[topic] = [0] * len(SIZE_BOUNDS)
            self.larger[topic][number] += more

    def _put_larger(self, topic: str, count: int, size: int) -> None:
        larger = self.larger.get(topic)
        if larger is None:
            larger = self.larger[topic] = [0] * len(SIZE_BOUNDS)
        larger[bisect_left(SIZE_BOUNDS, size // count, 1) - 1] += count

    def put_copies(self, copies: Iterable[Append], message_type: str = "") -> None:
        """Count the copies that the broker stored in their topics; failed ones do not count."""
        for copy in copies:
            if copy.status.is_stored:
                self.put_as(message_type, copy.topic, copy.size)

    def put_as(self, message_type: str, topic: str, size: int) -> None:
        """Count a message of a type that may not be the topic's."""
        self.put(topic, 1, size)
        if message_type:
            row = self.typed.setdefault(topic, {}).setdefault(message_type, [0, 0])
            row[0] += 1
            row[1] += size

    def dead_letter(self, group: str, topic: str) -> None:
        """Count a message of a topic that became a dead letter of a group."""
        self.dead[group, topic] = self.dead.get((group, topic), 0) + 1

    def commit(self, topic: str, seconds: float) -> None:
        """Count a committed half message, so many seconds old."""
        times = self.committed.get(topic)
        if times is None:
            times = self.committed[topic] = Histogram(FINISH_BOUNDS)
        times.observe(max(0.0, seconds))

    def roll_back(self, topic: str) -> None:
        """Count a half message that was rolled back."""
        self.rolled_back[topic] = self.rolled_back.get(topic, 0) + 1

    def revive(self, group: str, topic: str, copies: Iterable[Append]) -> None:
        """Count copies of popped messages that nobody acknowledged."""
        for copy in copies:
            key = group, topic, copy.status.name
            self.revived[key] = self.revived.get(key, 0) + 1

    def forget_topic(self, topic: str) -> None:
        """Drop what is counted for metrics alone; the windows drop the rest."""
        for by_topic in (self.larger, self.typed, self.committed, self.rolled_back):
            by_topic.pop(topic, None)
        for key in [key for key in self.dead if key[1] == topic]:
            del self.dead[key]
        for triple in [triple for triple in self.revived if triple[1] == topic]:
            del self.revived[triple]

    def forget_group(self, group: str) -> None:
        for key in [key for key in self.dead if key[0] == group]:
            del self.dead[key]
        for triple in [triple for triple in self.revived if triple[0] == group]:
            del self.revived[triple]

    def back(self, topic: str, group: str) -> None:
        """Count a send-back of a topic by a group."""
        row = self._row("back", f"{topic}@{group}")
        row[0] += 1
        row[2] += 1

    def wait_for_disk(self, topic: str, group: str, queue_id: int, ms: int) -> None:
        """Count a pull that was not in memory: how long it waited."""
        self.read_longest_ms = max(self.read_longest_ms, ms)
        row = self._row("disk", f"{queue_id}@{topic}@{group}")
        row[0] += ms
        row[2] += 1

    def _row(self, table: str, key: str) -> list[int]:
        """The row of a key; the first time it is also put among the new ones."""
        rows = self.rows[table]
        row = rows.get(key)
        if row is None:
            row = rows[key] = [0, 0, 0]
            self.new_rows.append((table, key, row))
        return row

    def get(self, topic: str, group: str, count: int, size: int) -> None:
        self.get_count += count
        self.get_found += 1
        key = f"{topic}@{group}"
        row = self.group_get.get(key)
        if row is None:
            row = self._row("group", key)
        row[0] += count
        row[1] += size
        row[2] += 1

    def begin_day(self) -> None:
        """Keep the totals of this moment, midnight, as those of the morning."""
        self.put_morning = (self.put_morning[1], self._written.count)
        self.get_morning = (self.get_morning[1], self.get_count)

    def sample(self, now: float) -> None:
        """Copy the counters; called every 10 s."""
        found, missed = self.get_found, self.get_missed
        put, got = self._written.count, self.get_count
        self._samples.append((now, put, got, found, missed, found + missed))
        self._sampled += 1
        if self._sampled % WINDOWS[1] == 0:
            self._written.turn()

    def rates(self, column: int) -> str:
        """The rates a second over 10 s, 1 min and 10 min, as `clusterList` reads them.

        Columns: 1 messages put, 2 messages got; 3 pulls that found some, 4 that did not, 5 all.
        """
        return " ".join(f"{self._rate(column, window)}" for window in WINDOWS)

    def _rate(self, column: int, window: int) -> float:
        if len(self._samples) < 2:
            return 0.0
        last = self._samples[-1]
        first = self._samples[max(0, len(self._samples) - 1 - window)]
        seconds = last[0] - first[0]
        return round((last[column] - first[column]) / seconds, 4) if seconds > 0 else 0.0
