"""The table of all undecided half messages; a message that is not in it is decided.

A half message enters when it is stored and, after a start, from the two queues on disk. The table
keeps bodies and properties up to a limit, so that most commits read nothing from disk.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from gantrymq.broker.transactions.half import number
from gantrymq.protocol import properties
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import StoredMessage
from gantrymq.store.append import Append

UNDECIDED_MAX: Final = 200_000
"""Half messages without a decision; more are refused until some are decided."""
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bodies and properties kept in memory; above it the oldest ones are read from the log."""


class HalfMessage(msgspec.Struct, gc=False):
    """A half message without a decision."""

    physical: int
    """Where its newest copy lies in the log."""
    offset: int
    """Where that stands in the half queue."""
    group: str
    topic: str
    queue_id: int
    """Where it goes when it is committed."""
    flag: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    reconsume_times: int
    size: int
    body: bytes | None
    """None for body and properties: not kept, they lie in the log."""
    properties: bytes | None
    check_at: float
    """When its producer is asked next, in the loop's time."""
    due: float
    """When it is looked at next: to ask, or only to bring it forward in its queue."""
    decisions_from: int
    """No decision about it, or about anything behind it, stands before this one in the op queue."""
    checks: int = 0
    first_offset: int = -1
    deciding: bool = False
    """A decision is on its way into the log."""
    done: bool = False
    formerly: tuple[tuple[int, int], ...] = ()
    """Log and queue offsets of its older copies, which late answers still name."""

    def stands_at(self, physical: int, offset: int) -> bool:
        """Whether these two offsets name this message or an older copy of it."""
        return (physical, offset) in ((self.physical, self.offset), *self.formerly)


class HalfMessageTable:
    """Every undecided half message, and when the next one is due."""

    def __init__(self, timeout_ms: int, interval_ms: int) -> None:
        self.set_times(timeout_ms, interval_ms)
        self._loop = asyncio.get_running_loop()
        self._table: dict[int, HalfMessage] = {}
        self._moved: dict[int, HalfMessage] = {}
        self._kept_bytes = 0
        self.decisions_from = 0
        """Where the op queue ended when somebody last looked; refreshed by the checker."""
        self.next_due = float("inf")
        self.sooner = asyncio.Event()
        """Set when `next_due` came nearer."""

    def set_times(self, timeout_ms: int, interval_ms: int) -> None:
        """Set the time before the first check-back and between two check-backs."""
        self._timeout, self._interval = timeout_ms / 1000, interval_ms / 1000

    def __len__(self) -> int:
        return len(self._table)

    @property
    def full(self) -> bool:
        return len(self._table) >= UNDECIDED_MAX

    def hold(self, message: Append, topic: str, queue_id: int, group: str) -> None:
        """Add a half message that was stored just now."""
        wait = self._timeout
        if b"CHECK_IMMUNITY" in message.properties:
            wait = self.immunity(properties.decode(message.properties))
        now = self._loop.time()
        self.add(
            HalfMessage(
                message.physical_offset,
                message.queue_offset,
                group,
                topic,
                queue_id,
                message.flag,
                message.sys_flag,
                message.born_ms,
                message.born_host,
                message.reconsume_times,
                len(message.body) + len(message.properties),
                message.body,
                message.properties,
                now + wait,
                now + min(wait, self._interval),
                self.decisions_from,
            )
        )

    def reopen(self, message: StoredMessage, now_ms: int) -> None:
        """Add a half message that an earlier run left undecided."""
        found = message.properties
        checks = number(found.get(properties.CHECK_TIMES), 0)
        renewed = found.get(properties.PREPARED_QUEUE_OFFSET)
        stored_ms = message.store_ms if renewed is None else min(message.born_ms, message.store_ms)
        wait = self._interval if checks else self.immunity(found)
        now = self._loop.time()
        wait = max(0.0, wait - max(0, now_ms - stored_ms) / 1000)
        self.add(
            HalfMessage(
                message.physical_offset,
                message.queue_offset,
                found.get(properties.PRODUCER_GROUP, ""),
                found.get(properties.REAL_TOPIC, ""),
                number(found.get(properties.REAL_QUEUE), 0),
                message.flag,
                message.sys_flag,
                message.born_ms,
                encode_host(*message.born_host),
                message.reconsume_times,
                len(message.body) + len(message.raw_properties),
                message.body,
                message.raw_properties,
                now + wait,
                now + min(wait, self._interval),
                self.decisions_from,
                checks,
                number(renewed, -1),
            )
        )

    def immunity(self, found: dict[str, str]) -> float:
        """Seconds before the first check-back: the message's own, or the broker's."""
        seconds = number(found.get(properties.CHECK_IMMUNITY), -1)
        return self._timeout if seconds < 0 else float(seconds)

    def add(self, entry: HalfMessage) -> None:
        self._table[entry.physical] = entry
        self._kept_bytes += entry.size
        if self._kept_bytes > KEPT_BYTES_MAX:
            self._keep_less()
        self.expect(entry.due)

    def _keep_less(self) -> None:
        """Drop a quarter of the kept bytes at once, so that this happens rarely."""
        for entry in self._table.values():
            if self._kept_bytes <= KEPT_BYTES_MAX * 3 // 4:
                break
            self.drop_content(entry)

    def drop_content(self, entry: HalfMessage) -> None:
        if entry.body is not None:
            entry.body = entry.properties = None
            self._kept_bytes -= entry.size

    def keep(self, entry: HalfMessage, body: bytes, stored_properties: bytes) -> None:
        """Keep the content of a message that was read from the log again."""
        if entry.body is None:
            entry.body, entry.properties = body, stored_properties
            entry.size = len(body) + len(stored_properties)
            if not entry.done:
                self._kept_bytes += entry.size

    def find(self, physical: int) -> HalfMessage | None:
        """The undecided message that has, or had, a copy at this log offset."""
        return self._table.get(physical) or self._moved.get(physical)

    def all(self) -> list[HalfMessage]:
        """All undecided messages, in the order in which they came."""
        return list(self._table.values())

    def move(self, entry: HalfMessage, copy: Append) -> None:
        """A newer copy replaces the message; the offsets of the older one stay known."""
        del self._table[entry.physical]
        self._moved[entry.physical] = entry
        entry.formerly += ((entry.physical, entry.offset),)
        if entry.first_offset < 0:
            entry.first_offset = entry.offset
        entry.physical, entry.offset = copy.physical_offset, copy.queue_offset
        if entry.body is not None:
            self._kept_bytes += len(copy.properties) - len(entry.properties or b"")
            entry.properties = copy.properties
            entry.size = len(entry.body) + len(copy.properties)
        entry.decisions_from = self.decisions_from
        self._table[entry.physical] = entry

    def close(self, entry: HalfMessage) -> None:
        """Remove a decided message."""
        if entry.done:
            return
        entry.done = True
        del self._table[entry.physical]
        for physical, _ in entry.formerly:
            del self._moved[physical]
        self.drop_content(entry)

    def check_now(self, entry: HalfMessage) -> None:
        """Let the checker ask about this message at once; the checks before do not count."""
        entry.checks = 0
        entry.check_at = entry.due = self._loop.time()
        self.expect(entry.due)

    def expect(self, due: float) -> None:
        """Wake the checker at this loop time at the latest."""
        if due < self.next_due:
            self.next_due = due
            self.sooner.set()

    def in_slices(self, size: int) -> Iterator[list[HalfMessage]]:
        """All undecided messages as of now, `size` at a time."""
        every = self.all()
        for start in range(0, len(every), size):
            yield every[start : start + size]
