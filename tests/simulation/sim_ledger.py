"""What was promised and what happened: the ledger that a story is judged by."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

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
    history: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        now = asyncio.get_running_loop().time()
        self.history.append(f"{now:.6f} {text}")

    def accuse(self, text: str) -> None:
        """An invariant is broken."""
        self.say(f"FAULT {text}")
        self.faults.append(text)

    def expect(self, entry: Entry) -> Entry:
        self.entries[entry.name] = entry
        return entry

    def fate(self, entry: Entry, fate: str) -> None:
        entry.fate = fate
        self.say(f"{entry.name} is {fate}")

    def delivered(self, group: str, member: str, name: str) -> Entry:
        """A handler got a message: it must be one that may be delivered, and not too early."""
        entry = self.entries.get(name)
        self.say(f"{group}/{member} got {name}")
        if entry is None:
            self.accuse(f"{name} was never sent")
            return Entry(name, "nowhere")
        if entry.fate == "rolled back":
            self.accuse(f"{name} was rolled back and is delivered to {group}")
        now = asyncio.get_running_loop().time()
        if now + 0.001 < entry.not_before:
            self.accuse(f"{name} comes at {now:.3f}, before {entry.not_before:.3f}")
        return entry

    def begin(self, group: str, member: str, entry: Entry) -> None:
        """One member at a time works on a key; only a broker's death may shake that for a while."""
        if entry.key is None:
            return
        other = self.at_work.get((group, entry.key))
        now = asyncio.get_running_loop().time()
        if other not in (None, member) and now - self.locks_lost_at > LOCK_TRUST_SECONDS:
            self.accuse(f"{member} gets {entry.name} while {other} works on its key")
        self.at_work[group, entry.key] = member

    def end(self, group: str, member: str, entry: Entry) -> None:
        if entry.key is not None and self.at_work.get((group, entry.key)) == member:
            del self.at_work[group, entry.key]

    def forget_member(self, member: str) -> None:
        """A dead process works on nothing."""
        self.at_work = {key: who for key, who in self.at_work.items() if who != member}

    def acknowledged(self, group: str, entry: Entry) -> None:
        """The handler is through with it; the first time counts."""
        self.say(f"{group} done {entry.name}")
        self.finished[group].setdefault(entry.name, asyncio.get_running_loop().time())

    def judge_order(self, group: str) -> None:
        """A key's messages end in the order in which they were sent.

        A dead one has ended as dead; that it may come again when its member's progress was not
        stored is no disorder.
        """
        last: dict[str, tuple[float, str]] = {}
        for entry in self.entries.values():
            at = self.finished[group].get(entry.name)
            if entry.key is None or at is None or entry.name in self.dead[group]:
                continue
            before = last.get(entry.key)
            if before is not None and at < before[0]:
                self.accuse(f"{group}: {entry.name} was done before {before[1]}")
            last[entry.key] = (at, entry.name)

    def open(self, group: str, topics: tuple[str, ...]) -> list[str]:
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
