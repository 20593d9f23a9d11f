"""What was promised and what happened: the ledger that a story is judged by."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gantrymq.testing.invariants import (
    SendTimes,
    acknowledged_is_kept,
    nothing_before_its_time,
    nothing_from_nowhere,
    one_worker_a_key,
    order_is_kept,
    withdrawn_is_never_delivered,
)
from gantrymq.testing.timeline import Timeline

LOCK_TRUST_SECONDS = 30.0
"""How long a member believes in a lock it has not renewed."""


@dataclass
class Entry:
    """One message that somebody tried to send."""

    name: str
    topic: str
    key: str | None = None
    number: int = 0
    """Its place among the messages of its key."""
    not_before: float = 0.0
    """The earliest moment of a first delivery."""
    poison: bool = False
    fate: str = "trying"
    """trying, stored, maybe (nobody knows), committed, rolled back, undecided."""


@dataclass
class Ledger:
    """Everything that happened, in order, and what it means for each message."""

    entries: dict[str, Entry] = field(default_factory=dict)
    finished: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """Group to message to the moment it was acknowledged."""
    dead: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    at_work: dict[tuple[str, str], str] = field(default_factory=dict)
    """Group and key to the member that is handling one of the key's messages."""
    locks_lost_at: float = float("-inf")
    """When a broker last forgot who holds its queues."""
    clock_error: float = 0.0
    """By how many seconds brokers' clocks may have been wrong."""
    timeline: Timeline = field(default_factory=Timeline)
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind of thing happened."""

    @property
    def faults(self) -> list[str]:
        """The invariants that were broken."""
        return self.timeline.faults

    def say(self, who: str, what: str) -> None:
        self.timeline.say(who, what)

    def expect(self, entry: Entry) -> Entry:
        self.entries[entry.name] = entry
        delayed = entry.not_before > asyncio.get_running_loop().time()
        self.counts[f"{'delayed' if delayed else entry.topic} messages"] += 1
        return entry

    def fate(self, entry: Entry, fate: str) -> None:
        entry.fate = fate
        self.counts[fate] += 1
        self.say(entry.name, f"is {fate}")

    def delivered(self, group: str, member: str, name: str) -> Entry:
        """A handler got a message: it must be one that may be delivered, and not too early."""
        entry = self.entries.get(name)
        self.say(f"{group}/{member}", f"gets {name}")
        self.timeline.accuse(nothing_from_nowhere.broken([name], self.entries))
        if entry is None:
            return Entry(name, "nowhere")
        withdrawn = {name} if entry.fate == "rolled back" else set()
        self.timeline.accuse(withdrawn_is_never_delivered.broken(withdrawn, [name]))
        now = asyncio.get_running_loop().time()
        at = now + 0.001 + self.clock_error
        self.timeline.accuse(nothing_before_its_time.broken([(name, at, entry.not_before)]))
        return entry

    def begin(self, group: str, member: str, entry: Entry) -> None:
        """One member at a time works on a key; only a broker's death may shake that for a while."""
        if entry.key is None:
            return
        other = self.at_work.get((group, entry.key), member)
        now = asyncio.get_running_loop().time()
        if now - self.locks_lost_at > LOCK_TRUST_SECONDS:
            workers = dict.fromkeys((other, member))
            self.timeline.accuse(one_worker_a_key.broken(entry.key, workers))
        self.at_work[group, entry.key] = member

    def end(self, group: str, member: str, entry: Entry) -> None:
        if entry.key is not None and self.at_work.get((group, entry.key)) == member:
            del self.at_work[group, entry.key]

    def forget_member(self, member: str) -> None:
        """A dead process works on nothing."""
        self.at_work = {key: who for key, who in self.at_work.items() if who != member}

    def acknowledged(self, group: str, entry: Entry) -> None:
        """The handler is through with it; the first time counts."""
        self.say(group, f"is done with {entry.name}")
        self.finished[group].setdefault(entry.name, asyncio.get_running_loop().time())

    def judge(self, group: str, topics: tuple[str, ...]) -> None:
        """At the end a group has got everything, and the messages of each key in order.

        A dead one has ended as dead; that it may come again when its member's progress was not
        stored is no disorder.
        """
        owed = self.owed(group, topics)
        got = {*self.finished[group], *self.dead[group]}
        self.timeline.accuse(f"{group}: {text}" for text in acknowledged_is_kept.broken(owed, got))
        for key in dict.fromkeys(entry.key for entry in self.entries.values() if entry.key):
            sends = {
                e.name: SendTimes(e.number, e.number) for e in self.entries.values() if e.key == key
            }
            done = [name for name in self.finished[group] if name not in self.dead[group]]
            self.timeline.accuse(f"{group}: {text}" for text in order_is_kept.broken(done, sends))

    def owed(self, group: str, topics: tuple[str, ...]) -> list[str]:
        """Messages that a group must still get."""
        done, dead = self.finished[group], self.dead[group]
        return [
            entry.name
            for entry in self.entries.values()
            if entry.topic in topics
            and entry.fate in ("stored", "committed")
            and entry.name not in done
            and entry.name not in dead
        ]
