"""Looks at a raft group after each delivery: what it decided, and whether that may be."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from sim_ledger import Ledger

from gantrymq.replication.raft import RaftCore
from gantrymq.replication.raft.ready import RaftRole
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.invariants import (
    committed_is_held,
    committed_never_changes,
    leaders_have_all,
    old_leaders_stop,
    one_leader_a_term,
    progress_is_not_ahead,
)

LINGER_SECONDS_MAX = 2.0
"""How long two members may serve: a leader looks for its majority every 0.6 s."""
UNDER_WAY_SECONDS_MAX = 12.0
"""How long an acknowledgement may be under way from a member that has lost its disk meanwhile."""


class Seen(NamedTuple):
    """A member as it was when it was last looked at."""

    core: RaftCore
    term: int
    role: RaftRole
    commit: int
    cuts: int
    shown: int


@dataclass
class GroupWatch:
    """What all members together have decided so far."""

    cluster: Cluster
    members: list[str]
    ledger: Ledger
    is_sync_flush: bool
    counts: Counter[str] = field(default_factory=Counter)
    leaders: dict[int, str] = field(default_factory=dict)
    """Who led in each term."""
    shown: bytearray = field(default_factory=bytearray)
    """The log as far as somebody has shown it."""
    commit: int = 0
    commit_term: int = 0
    """The term of the last record that is committed."""
    held: int = 0
    """Up to here it was made sure that a majority has it."""
    former: dict[str, tuple[float, MemoryDisk]] = field(default_factory=dict)
    """Disks that members have lost, and when."""
    _seen: dict[str, Seen] = field(default_factory=dict)
    _outvoted: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """Called after each delivery."""
        serving = []
        for name in self.cluster.running:
            broker = self.cluster.broker(name)
            node = broker.node
            assert node is not None
            core, shown = node.core, broker.store.dispatched.value
            if node.position.leads:
                serving.append((node.position.term, name))
            now = (core, core.term, core.role, core.commit, core.cuts, shown)
            before = self._seen.get(name)
            if before != now:
                self._seen[name] = Seen(*now)
                self._changed(name, before, Seen(*now))
        if len(serving) > 1 or self._outvoted:
            self._look_at_serving(serving)

    def lose_disk(self, name: str) -> None:
        """What a member has acknowledged may be under way although its disk is gone."""
        self.former[name] = (asyncio.get_running_loop().time(), self.cluster.disk_of(name))

    def look_at_progress(self) -> None:
        """Called now and then: what a leader would save or copy is not ahead of its queues.

        In memory POP's own group is, until what it has read is committed.
        """
        name = self.cluster.leader
        if name is None or self.cluster.broker(name).config.is_slave:
            return
        broker = self.cluster.broker(name)
        progress, ends = {}, {}
        for key, queues in broker.registry.offsets.shown().items():
            for queue_id, offset in queues.items():
                place = f"{key}/{queue_id}"
                progress[place] = offset
                ends[place] = broker.store.queues.max_offset(key.rpartition("@")[0], queue_id)
        self.ledger.timeline.accuse(progress_is_not_ahead.broken(progress, ends))

    # what changed

    def _changed(self, name: str, before: Seen | None, now: Seen) -> None:
        if before is None or before.core is not now.core:
            before = Seen(now.core, 0, RaftRole.FOLLOWER, 0, 0, 0)
        if now.role is not before.role or now.term != before.term:
            self._moved(name, before, now)
        if now.cuts != before.cuts:
            self.counts["cuts"] += now.cuts - before.cuts
            self.ledger.say(name, f"cuts its log back to {now.core.log.end}")
        if now.shown != before.shown:
            self._look_at_shown(name, before.shown, now.shown)
        if now.core.leadership is not None and now.commit > self.held:
            self._look_at_holders(name, now.commit)
        if now.commit > self.commit:
            self.commit, self.commit_term = now.commit, now.core.log.term_before(now.commit)

    def _moved(self, name: str, before: Seen, now: Seen) -> None:
        if now.role is RaftRole.CANDIDATE:
            self.counts["elections"] += 1
            self.ledger.say(name, f"asks for votes in term {now.term}")
        elif now.role is RaftRole.LEADER:
            self._leads(name, now)
        elif before.role is RaftRole.LEADER:
            self.ledger.say(name, f"leads no more, in term {now.term}")

    def _leads(self, name: str, now: Seen) -> None:
        self.ledger.say(name, f"leads in term {now.term} with a log up to {now.core.log.end}")
        other = self.leaders.setdefault(now.term, name)
        pairs = [(now.term, other), (now.term, name)]
        self.ledger.timeline.accuse(one_leader_a_term.broken(pairs))
        self.ledger.locks_lost_at = asyncio.get_running_loop().time()
        if now.term == max(self.leaders):
            has_it = now.core.log.holds(self.commit, self.commit_term)
            broken = leaders_have_all.broken(name, self.commit, has_it=has_it)
            self.ledger.timeline.accuse(broken)

    def _look_at_shown(self, name: str, before: int, now: int) -> None:
        log = self.cluster.broker(name).store.group_log
        start = max(before, log.first)
        data = log.read(start, min(now, log.end) - start) if start < now else b""
        known = self.shown[start : start + len(data)]
        self.ledger.timeline.accuse(committed_never_changes.broken(name, start, known, data))
        if start + len(data) > len(self.shown) >= start:
            self.shown[start:] = data

    def _look_at_holders(self, name: str, commit: int) -> None:
        log = self.cluster.broker(name).store.group_log
        start = max(self.held, log.first)
        data = log.read(start, commit - start)
        holders = [each for each in self.members if self._holds(each, start, data)]
        broken = committed_is_held.broken(name, commit, holders, len(self.members))
        self.ledger.timeline.accuse(broken)
        self.held = commit

    def _holds(self, name: str, start: int, data: bytes) -> bool:
        disks = [self.cluster.disk_of(name)]
        lost_at, disk = self.former.get(name, (0.0, None))
        if disk and asyncio.get_running_loop().time() - lost_at < UNDER_WAY_SECONDS_MAX:
            disks.append(disk)
        return any(self._lies_on(disk, name, start, data) for disk in disks)

    def _lies_on(self, disk: MemoryDisk, name: str, start: int, data: bytes) -> bool:
        config = self.cluster.config_of(name).store
        size = config.segment_bytes
        while data:
            base = start - start % size
            part = data[: base + size - start]
            path = f"{config.commit_log_directory}/{base:020}"
            at = start - base
            if disk.part_of(path, at, at + len(part), durable=self.is_sync_flush) != part:
                return False
            start, data = start + len(part), data[len(part) :]
        return True

    def _look_at_serving(self, serving: list[tuple[int, str]]) -> None:
        if len(serving) < 2:
            self._outvoted.clear()
            return
        now = asyncio.get_running_loop().time()
        last = max(serving)[1]
        since = {name: self._outvoted.get(name, now) for _, name in serving if name != last}
        self._outvoted = since
        seconds = {name: now - began for name, began in since.items()}
        self.ledger.timeline.accuse(old_leaders_stop.broken(seconds, LINGER_SECONDS_MAX))
