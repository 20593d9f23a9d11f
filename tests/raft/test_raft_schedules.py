"""Random schedules of three and five members on a bad network and bad disks."""

import random
from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from members import GROUP, Member

from gantrymq.replication.raft import LogView, RaftConfig
from gantrymq.replication.raft.log_view import EpochStart
from gantrymq.replication.raft.messages import RaftMessage

STEPS = 800


class Schedule:
    """A group in which chance decides what happens next, and what was promised."""

    def __init__(self, size: int, chance: random.Random, trouble: float) -> None:
        self._chance, self._trouble = chance, trouble
        names = tuple(str(number + 1) for number in range(size))
        self.members = {
            name: Member(
                RaftConfig(
                    group=GROUP, me=name, members=names, election_ticks=4, inflight_bytes_max=60
                ),
                chance.randrange,
            )
            for name in names
        }
        self._flying: list[RaftMessage] = []
        self._leaders: dict[int, str] = {}
        self._written: dict[int, bytes] = defaultdict(bytes)
        self.committed = b""
        self._committed_in = 0
        self._records = 0

    def run(self, steps: int) -> None:
        """Let so many things happen, and check after each."""
        for _ in range(steps):
            self._step()
            for name, member in self.members.items():
                self._check(name, member)
            self._check_durable()

    def calm(self) -> None:
        """End all trouble, and let the group agree."""
        self._trouble = 0.0
        for member in self.members.values():
            if not member.alive:
                member.start()
        for _ in range(60):
            for name, member in self.members.items():
                member.core.tick()
                self._send(member.sync_all())
                self._check(name, member)
            for _ in range(20):
                self._deliver_all()

    def _deliver_all(self) -> None:
        flying, self._flying = self._flying, []
        for message in flying:
            member = self.members[message.receiver]
            member.core.step(message)
            self._send(member.sync_all())
            self._check(message.receiver, member)

    def _step(self) -> None:
        chance = self._chance
        name = chance.choice(list(self.members))
        member = self.members[name]
        if not member.alive:
            if chance.random() < 0.05:
                member.start()
            return
        lot = chance.random()
        if lot < 0.6 and self._flying:
            self._deliver()
        elif lot < 0.75:
            member.core.tick()
            self._send(member.settle())
        elif lot < 0.85:
            self._records += 1
            member.propose(b"%d." % self._records)
            self._send(member.settle())
        elif lot < 0.98:
            self._send(member.sync())
            self._send(member.sync())
        elif chance.random() < self._trouble * 2:
            member.crash()
        elif chance.random() < 0.3:
            self._retain(member)
        elif chance.random() < 0.2 and member.core.leadership:
            member.core.transfer(chance.choice([each for each in self.members if each != name]))
            self._send(member.settle())

    def _retain(self, member: Member) -> None:
        """Delete the older half of what is committed and durable."""
        core = member.core
        first = core.log.first
        last = min(core.commit, core.log.synced, member.durable_log.end)
        first += max(0, last - first) // 2
        member.durable_log = member.durable_log.drop_before(max(first, member.durable_log.first))
        core.note_first(first)

    def _whole(self, log: LogView, data: bytes) -> bytes:
        """The log with what was deleted; that was committed."""
        assert log.first <= len(self.committed)
        return self.committed[: log.first] + data[log.first :]

    def _deliver(self) -> None:
        chance = self._chance
        late = chance.random() < self._trouble
        message = self._flying[chance.randrange(len(self._flying)) if late else 0]
        if chance.random() >= self._trouble / 2:
            self._flying.remove(message)
        member = self.members[message.receiver]
        if member.alive and chance.random() >= self._trouble:
            member.core.step(message)
            self._send(member.settle())

    def _send(self, messages: Iterable[RaftMessage]) -> None:
        self._flying += messages

    def _check(self, name: str, member: Member) -> None:
        core = member.core
        if not member.alive:
            return
        assert core.log.end == len(member.data)
        data = self._whole(core.log, bytes(member.data))
        if core.leadership is not None:
            # One leader a term, that has what was committed before and only appends.
            assert name == self._leaders.setdefault(core.term, name)
            assert data.startswith(self._written[core.term])
            self._written[core.term] = data
            if core.term > self._committed_in:
                assert data.startswith(self.committed)
        # What one committed, all commit.
        mine = data[: core.commit]
        shorter = min(len(mine), len(self.committed))
        assert mine[:shorter] == self.committed[:shorter]
        if len(mine) > len(self.committed):
            self.committed, self._committed_in = mine, core.term
        self._check_matching(core.log.epochs, data)

    def _check_matching(self, epochs: tuple[EpochStart, ...], data: bytes) -> None:
        """A log with a record of a term has the bytes of that term's leader up to it."""
        for index, epoch in enumerate(epochs):
            following = epochs[index + 1].offset if index + 1 < len(epochs) else len(data)
            written = self._written[epoch.term]
            assert written[:following] == data[:following]

    def _check_durable(self) -> None:
        held = sum(
            self._whole(member.durable_log, member.durable_data).startswith(self.committed)
            for member in self.members.values()
        )
        assert held * 2 > len(self.members)


@pytest.mark.parametrize("size", [3, 5])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), trouble=st.sampled_from([0.0, 0.05, 0.2]))
def test_promises_hold_in_random_schedules(size: int, seed: int, trouble: float) -> None:
    """
    Loss, duplicates, reordering and crashes break no promise, and the group agrees afterwards.
    """
    schedule = Schedule(size, random.Random(seed), trouble)

    schedule.run(STEPS)
    schedule.calm()

    ends = {(member.core.commit, member.core.log.end) for member in schedule.members.values()}
    assert {(len(schedule.committed),) * 2} == ends
    assert 1 == sum(member.core.serving for member in schedule.members.values())
