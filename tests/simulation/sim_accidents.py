"""What happens to the members of a raft group: to their processes, machines, disks and links.

Any of it may happen at any time. What is lost for good is never more than a group may lose: the
unsynced bytes, the disk or a bit of one member, while all others run and have their vote.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sim_watch import GroupWatch

from gantrymq.kernel import walk_records
from gantrymq.replication.raft import NotServing, RaftCore
from gantrymq.replication.raft.ready import RaftRole
from gantrymq.store.errors import StoreError
from gantrymq.store.recovery import checkpoint
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.network import MemoryNetwork

COVERED = (1, 3, 5, 88)
"""Bytes of a record that are checked: its size, its magic number, its body."""
CLOCK_SECONDS_MAX = 30.0
Accident = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class Accidents:
    """Does to a group what a seed wants."""

    cluster: Cluster
    rng: random.Random
    members: list[str]
    watch: GroupWatch
    pause_max: float
    """The longest time without an accident."""
    burst: Accident
    """Sends some messages at once."""
    restarting: dict[str, None] = field(default_factory=dict)
    """Members that an accident has stopped and will start again."""

    @property
    def network(self) -> MemoryNetwork:
        assert isinstance(self.cluster.network, MemoryNetwork)
        return self.cluster.network

    def say(self, who: str, what: str) -> None:
        self.watch.ledger.say(who, what)

    async def happen(self, seconds: float) -> None:
        """One after the other for so long; some beside others."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        async with asyncio.TaskGroup() as beside:
            while loop.time() < end:
                await asyncio.sleep(self.rng.uniform(0.1, self.pause_max))
                accident = self.choose()
                if self.rng.random() < 0.3:
                    beside.create_task(accident())
                else:
                    await accident()
        for name in self.members:
            self.cluster.clock_of(name).shift_ms = 0

    def choose(self) -> Accident:
        """The next one."""
        chosen: Accident = self.rng.choice(
            (self.leader_dies, self.member_dies, self.member_restarts, self.two_die, self.all_die,
             self.network_breaks, self.network_is_slow, self.leader_is_cut_off,
             self.member_is_cut_off, self.one_way, self.link_stalls, self.leadership_moves,
             self.disk_is_lost, self.disk_is_full, self.disk_is_slow, self.syncs_fail,
             self.bit_flips, self.clock_jumps, self.laggards_and_a_loss, self.laggards_and_a_loss,
             self.leaders_in_a_row, self.leaders_in_a_row, self.leader_comes_back,
             self.leader_comes_back, self.answers_come_late, self.figure_eight, self.figure_eight)
        )  # fmt: skip
        self.watch.counts[chosen.__name__] += 1
        return chosen

    def someone(self) -> str:
        return self.rng.choice(self.members)

    def pause(self, least: float, most: float) -> Awaitable[None]:
        return asyncio.sleep(self.rng.uniform(least, most))

    # processes and machines

    async def leader_dies(self) -> None:
        await self.die(self.cluster.leader or self.someone())

    async def member_dies(self) -> None:
        await self.die(self.someone())

    async def two_die(self) -> None:
        """More than a group of three can lose: it stops, and goes on when they are back."""
        async with asyncio.TaskGroup() as tasks:
            for name in self.rng.sample(self.members, 2):
                tasks.create_task(self.die(name, power_cut=False))

    async def all_die(self) -> None:
        """All processes end, and come back one after the other."""
        async with asyncio.TaskGroup() as tasks:
            for name in self.members:
                tasks.create_task(self.die(name, power_cut=False))

    async def die(self, name: str, *, power_cut: bool | None = None) -> None:
        """kill -9 or a power cut, and a start a while later."""
        if self.is_up(name):
            self.restarting[name] = None
            await self.kill(name, power_cut=power_cut)
            await self.pause(0.1, 6)
            await self.start(name)

    def is_up(self, name: str) -> bool:
        """Whether it runs, and no accident is about to stop or start it."""
        return name in self.cluster.running and name not in self.restarting

    async def kill(self, name: str, *, power_cut: bool | None = None) -> None:
        if power_cut is None:
            power_cut = self.rng.random() < 0.5 and self.all_vote()
        self.watch.counts["power_cut" if power_cut else "kill"] += 1
        self.watch.counts["recoveries"] += 1
        self.say(name, "loses power" if power_cut else "is killed")
        if power_cut:
            self.watch.lose_disk(name)
        await self.cluster.kill_broker(name, power_cut=power_cut)

    async def start(self, name: str) -> None:
        """Start a member again; one whose disk is full does not start before there is room."""
        while name not in self.cluster.running:
            try:
                await self.cluster.start_broker(name)
            except (OSError, StoreError) as error:
                self.watch.counts["starts refused"] += 1
                self.say(name, f"cannot start: {error}")
                await asyncio.sleep(1)
        self.say(name, "is back")
        self.restarting.pop(name, None)

    def all_vote(self) -> bool:
        """Whether the group can lose what one member has not synced, or its disk."""
        return len(self.cluster.running) == len(self.members) and all(
            self.core(name).stored.may_vote for name in self.members
        )

    def core(self, name: str) -> RaftCore:
        node = self.cluster.broker(name).node
        assert node is not None
        return node.core

    async def member_restarts(self) -> None:
        name = self.someone()
        if self.is_up(name):
            self.restarting[name] = None
            self.say(name, "stops")
            with suppress(OSError):  # its disk may be full
                await self.cluster.stop_broker(name)
            await self.pause(0, 3)
            await self.start(name)

    async def leadership_moves(self) -> None:
        name = self.cluster.leader
        node = self.cluster.broker(name).node if name is not None else None
        if name is not None and node is not None:
            self.say(name, "is told to hand leadership on")
            await node.hand_over()

    async def clock_jumps(self) -> None:
        """Somebody sets the clock of a machine, and perhaps sets it right again."""
        name, seconds = self.someone(), self.rng.uniform(-CLOCK_SECONDS_MAX, CLOCK_SECONDS_MAX)
        self.say(name, f"has a clock that is {seconds:+.1f} s wrong")
        self.watch.ledger.clock_error += abs(seconds)
        self.cluster.clock_of(name).shift_ms = round(seconds * 1000)
        await self.pause(0, 4)
        if self.rng.random() < 0.5:
            self.cluster.clock_of(name).shift_ms = 0

    # disks

    async def disk_is_lost(self) -> None:
        """A member comes back empty, and gets everything from the others."""
        name = self.someone()
        if self.all_vote() and self.is_up(name):
            self.restarting[name] = None
            await self.lose_disk(name)
            await self.start(name)

    async def lose_disk(self, name: str) -> None:
        self.say(name, "loses its disk")
        self.watch.lose_disk(name)
        await self.cluster.kill_broker(name)
        self.cluster.empty_disk(name)

    async def disk_is_full(self) -> None:
        """The leader cannot make its next file, and hands leadership on."""
        name = self.cluster.leader or self.someone()
        self.say(name, "has a full disk")
        self.cluster.disk_of(name).capacity = 1
        await self.pause(0.1, 8)
        self.cluster.disk_of(name).capacity = None  # perhaps after a restart
        self.say(name, "has room on its disk")

    async def disk_is_slow(self) -> None:
        name = self.someone()
        syncer = self.cluster.syncer_of(name)
        before, syncer.delay = syncer.delay, self.rng.choice((0.1, 0.5, 2.0))
        self.say(name, f"takes {syncer.delay} s for a sync")
        await self.pause(0.1, 8)
        syncer.delay = min(before, 0.1)

    async def syncs_fail(self) -> None:
        """The disk of a member takes no syncs: it is out until it is started again."""
        name = self.cluster.leader or self.someone()
        if not self.is_up(name) or not self.all_vote():
            return
        self.say(name, "has a disk that takes no syncs")
        self.cluster.disk_of(name).fault = lambda operation, path: (
            OSError("no sync") if operation == "sync" and "commitlog" in path else None
        )
        await self.pause(0.1, 4)
        await self.die(name, power_cut=False)
        self.cluster.disk_of(name).fault = None  # it may have been down already

    async def bit_flips(self) -> None:
        """A bit of a member's log turns over while the member is down."""
        name = self.someone()
        if not self.all_vote() or not self.is_up(name):
            return
        self.restarting[name] = None
        await self.kill(name, power_cut=False)
        self.flip(name)
        await self.pause(0.1, 3)
        await self.start(name)

    def flip(self, name: str) -> None:
        """Turn over a bit of a record that the next start will read."""
        config, disk = self.cluster.config_of(name).store, self.cluster.disk_of(name)
        last = checkpoint.load(disk, f"{config.directory}/checkpoint")
        scanned_from = (last.dispatched or 0) if last is not None else 0
        places: list[tuple[str, int]] = []
        for file in disk.list(config.commit_log_directory):
            path, base = f"{config.commit_log_directory}/{file}", int(file)
            data = disk.part_of(path, 0, config.segment_bytes) or b""
            records, _, _ = walk_records(data, base, config.segment_bytes, True)
            places += [(path, record[3] - base) for record in records if record[3] >= scanned_from]
        if places:
            self.watch.counts["bits flipped"] += 1
            path, at = self.rng.choice(places)
            at += self.rng.choice(COVERED)
            self.say(name, f"has a bit turned over in {path.rpartition('/')[2]} at {at}")
            self.watch.lose_disk(name)
            disk.flip_bit(path, at, self.rng.randrange(8))

    # the network

    async def network_breaks(self) -> None:
        self.say("network", f"{self.network.cut_all()} connections break")

    async def network_is_slow(self) -> None:
        most = self.rng.choice((0.0005, 0.01, 0.05))
        self.say("network", f"takes up to {most} s")
        self.network.set_delay(0.0001, most)

    async def leader_is_cut_off(self) -> None:
        await self.cut_off_for(self.cluster.leader or self.someone())

    async def member_is_cut_off(self) -> None:
        await self.cut_off_for(self.someone())

    async def cut_off_for(self, name: str) -> None:
        """Members do not hear it, nor it them; clients may."""
        clients = [HOST] if self.rng.random() < 0.5 else []
        stalls = self.rng.random() < 0.5
        self.part([name], self.others(name), clients, stalls=stalls)
        await self.pause(0.1, 8)
        self.join([name], self.others(name), clients)
        if self.rng.random() < 0.5:
            await self.network_breaks()

    def others(self, *names: str) -> list[str]:
        return [name for name in self.members if name not in names]

    def part(
        self, ones: Iterable[str], others: Iterable[str], hosts: Iterable[str] = (), *, stalls: bool
    ) -> None:
        """Let nothing through between two sides: it is lost, or comes when they are joined."""
        part = self.network.stall if stalls else self.network.part_one_way
        others = list(others)
        for one in ones:
            how = "stalled links" if stalls else "no links"
            self.say(one, f"has {how} to {', '.join([*others, *hosts])}")
            for host in [*map(self.cluster.host_of, others), *hosts]:
                part(self.cluster.host_of(one), host)
                part(host, self.cluster.host_of(one))

    def join(self, ones: Iterable[str], others: Iterable[str], hosts: Iterable[str] = ()) -> None:
        others = list(others)
        for one in ones:
            self.say(one, f"has links to {', '.join([*others, *hosts])} again")
            here = self.cluster.host_of(one)
            for host in [*map(self.cluster.host_of, others), *hosts]:
                self.network.join(here, host)
                self.network.resume(here, host)
                self.network.resume(host, here)

    async def one_way(self) -> None:
        """One hears another, and is not heard by it."""
        one, other = self.rng.sample(self.members, 2)
        self.say(one, f"is not heard by {other}")
        self.network.part_one_way(self.cluster.host_of(one), self.cluster.host_of(other))
        await self.pause(0.1, 8)
        self.network.join(self.cluster.host_of(one), self.cluster.host_of(other))

    async def link_stalls(self) -> None:
        """What one sends to another comes later, perhaps when both have other connections."""
        one, other = self.rng.sample(self.members, 2)
        hosts = self.cluster.host_of(one), self.cluster.host_of(other)
        self.say(one, f"is heard by {other} later")
        self.network.stall(*hosts)
        await self.pause(0.1, 4)
        if self.rng.random() < 0.5:
            await self.network_breaks()
        self.network.resume(*hosts)

    # several things that need each other

    async def laggards_and_a_loss(self) -> None:
        """The few that miss messages, with one that has lost them, must not elect a leader.

        A minority is cut off while the others commit. Then one of these loses its disk or its
        power, the rest of them are killed, and the minority is joined with that one.
        """
        leader = self.cluster.leader
        if leader is None or not self.all_vote() or self.restarting:
            return
        others = self.rng.sample(self.others(leader), len(self.members) - 1)
        laggards, holders = others[: len(self.members) // 2], others[len(self.members) // 2 :]
        keepers = [leader, *holders]
        self.part(laggards, keepers, stalls=False)
        await self.pause(0.5, 3)
        unlucky = holders[0]
        if self.all_vote() and not self.restarting:
            self.restarting.update(dict.fromkeys(keepers))
            await self.lose_something(unlucky)
            rest = [name for name in keepers if name != unlucky]
            for name in rest:
                await self.kill(name, power_cut=False)
            self.join(laggards, keepers)
            await self.start(unlucky)
            await self.pause(2, 5)
            for name in rest:
                await self.start(name)
        else:
            self.join(laggards, keepers)

    async def lose_something(self, name: str) -> None:
        """Stop a member that loses its disk, its unsynced bytes, or one bit."""
        loss = self.rng.choice(("disk", "power", "bit"))
        if loss == "disk":
            await self.lose_disk(name)
            return
        await self.kill(name, power_cut=loss == "power")
        if loss == "bit":
            self.flip(name)

    async def leaders_in_a_row(self) -> None:
        """Each new leader is cut off before, while or after its first record is copied."""
        self.network.set_delay(0.0001, self.rng.choice((0.005, 0.05)))
        alone: list[str] = []
        for _ in range(self.rng.randint(3, 6)):
            leader = await self.elected(but=alone)
            if leader is None:
                break
            await self.pause(0, self.rng.choice((0.01, 0.1, 0.3)))
            with_it = self.rng.sample(self.others(leader), self.rng.choice((0, 0, 1)))
            stalls = self.rng.random() < 0.5
            self.part([leader, *with_it], self.others(leader, *with_it), stalls=stalls)
            if alone:
                self.join(alone, self.others(*alone))
            alone = [leader, *with_it]
        if alone:
            self.join(alone, self.others(*alone))
        self.network.set_delay(0.0001, 0.0005)

    async def leader_comes_back(self) -> None:
        """A leader takes messages that it cannot commit, is replaced, and leads again."""
        leader = self.cluster.leader
        if leader is None or self.restarting:
            return
        self.part([leader], self.others(leader), stalls=self.rng.random() < 0.5)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.burst())
            other = await self.elected(but=[leader])
            await self.pause(0, 1)
            self.join([leader], self.others(leader))
            await self.pause(0, 1)
            if other is not None:
                await self.move_to(leader)
                await self.burst()

    async def answers_come_late(self) -> None:
        """A leader hears what a follower confirmed in another term, and has cut off since.

        Both are cut off from the others, and messages reach them; what the follower answers is on
        its way. They follow another leader, then the first one leads again, without that follower.
        """
        leader = self.cluster.leader
        if leader is None or len(self.members) < 5 or self.restarting:
            return
        late, *others = self.rng.sample(self.others(leader), len(self.members) - 1)
        hosts = self.cluster.host_of(late), self.cluster.host_of(leader)
        self.say(late, f"is heard by {leader} later")
        self.network.stall(*hosts)
        self.part([leader, late], others, stalls=False)
        self.part(others, [], [HOST], stalls=False)  # the other leader gets no messages
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.burst())
            await self.until(lambda: any(map(self.leads, others)))
            self.join([leader, late], others)
            await self.pause(0.3, 0.6)
            await self.move_to(leader)
            self.join(others, [], [HOST])
            self.part([leader], [late, *others[1:]], stalls=True)
            tasks.create_task(self.burst())
            self.say(late, f"is heard by {leader}")
            self.network.resume(*hosts)
            await self.pause(0.5, 1.5)
            self.join([leader], [late, *others[1:]])

    async def figure_eight(self) -> None:
        """Figure 8 of raft's paper: a majority holds a record of an old term, and it is cut off.

        Two members win elections one after the other, and nobody gets their first records. The
        first one leads again, copies its old record to a majority, and is cut off. Then the second
        one leads: its record is of a later term.
        """
        leader = self.cluster.leader
        if leader is None or self.restarting:
            return
        self.network.set_delay(0.02, 0.05)
        self.part([leader], self.others(leader), stalls=False)
        first = await self.wins_alone(but=[leader])
        self.join([leader], self.others(leader, first or leader))
        second = await self.wins_alone(but=[first]) if first else None
        if first and second:
            self.join([first], self.others(first, second))
            if await self.until(lambda: self.has_copied_old_records(first)):
                self.watch.counts["old records copied"] += 1
                self.silence(first)
                await self.pause(0.1, 0.2)  # the answers arrive
            self.part([first], self.others(first), stalls=False)
            self.join([second], self.others(first, second))
            await self.pause(1, 3)
        for name in (first, second):
            if name:
                self.join([name], self.others(name))
        self.network.set_delay(0.0001, 0.0005)

    async def wins_alone(self, *, but: list[str]) -> str | None:
        """A member that wins an election and is heard by nobody from then on."""

        def candidates() -> list[str]:
            cores = {name: self.core(name) for name in self.cluster.running if name not in but}
            return [name for name, core in cores.items() if core.role is RaftRole.CANDIDATE]

        if not await self.until(lambda: bool(candidates())):
            return None
        name = candidates()[0]
        self.silence(name)
        wins = await self.until(lambda: self.leads(name), seconds=0.3)
        self.part([name], self.others(name), stalls=False)
        if not wins:
            self.join([name], self.others(name))
        return name if wins else None

    def leads(self, name: str) -> bool:
        return name in self.cluster.running and self.core(name).leadership is not None

    def silence(self, name: str) -> None:
        """Let a member hear the others, and nobody hear it."""
        for other in self.others(name):
            self.network.part_one_way(self.cluster.host_of(name), self.cluster.host_of(other))

    def has_copied_old_records(self, name: str) -> bool:
        """Whether a majority has all that a leader had when it was elected, and nothing newer."""
        leadership = self.core(name).leadership if name in self.cluster.running else None
        if leadership is None:
            return False
        others = [self.core(other).log for other in self.cluster.running if other != name]
        held = [log for log in others if log.end == leadership.start]
        return 2 * (1 + len(held)) > len(self.members)

    async def until(self, holds: Callable[[], bool], seconds: float = 4.0) -> bool:
        """Wait until something holds; False if it does not for long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not holds():
            if loop.time() > end:
                return False
            await asyncio.sleep(0.002)
        return True

    async def move_to(self, name: str, seconds: float = 3.0) -> None:
        """Hand leadership to a member as soon as that is possible."""
        self.say(name, "is to lead")

        def leads_now() -> bool:
            now = self.cluster.leader
            node = self.cluster.broker(now).node if now is not None else None
            if node is not None and now != name:
                with suppress(NotServing):
                    node.transfer(name)
            return now == name

        await self.until(leads_now, seconds)

    async def elected(self, *, but: list[str], seconds: float = 4.0) -> str | None:
        """A member that has just won an election; None if there is none for long."""

        def leaders() -> list[str]:
            return [name for name in self.cluster.running if name not in but and self.leads(name)]

        return leaders()[0] if await self.until(lambda: bool(leaders()), seconds) else None
