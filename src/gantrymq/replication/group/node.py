"""The driver of a raft member: calls the core, and does what it says in the order it says.

One task takes ticks and messages to the core and carries out each `Ready`. The leader's writer
calls `_wrote` outside of that task: the core learns of new bytes in the moment in which they are in
the log, so both always agree where it ends.

What always holds:

- Term and vote are on disk before a message of that term leaves, rows of the epoch table before the
  bytes they speak of, a cut before what is written behind it.
- With SYNC_FLUSH nothing is acknowledged before it is synced. With ASYNC_FLUSH the page cache will
  do, and a member that finds another boot id than its files have has lost its vote for a while.
- Only a leader that serves takes messages (`refusal`), and it begins when all before its leader
  record is dispatched. One whose leadership ends answers what waits as not stored; it may be stored
  all the same, as the client's next try has to expect.
- A disk that refuses a follower's bytes makes it silent until it takes them. A leader whose disk
  refuses anything hands leadership on. One that finds damage in what it sends leaves the group.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from gantrymq.base.background import Background
from gantrymq.base.network import Network
from gantrymq.base.offload import Offload
from gantrymq.protocol.codes import NOT_LEADER
from gantrymq.replication.group.commit_gate import CommitGate
from gantrymq.replication.group.files import MemberFiles, MemberState
from gantrymq.replication.group.identity import GroupIdentity
from gantrymq.replication.group.links import MemberLinks
from gantrymq.replication.group.log_reads import LogReads
from gantrymq.replication.group.member_disk import MemberDisk
from gantrymq.replication.group.node_settings import NodeSettings
from gantrymq.replication.group.wire import Greeting
from gantrymq.replication.raft import LogConflict, NotServing, RaftCore
from gantrymq.replication.raft.leadership import Leadership
from gantrymq.replication.raft.messages import AppendRequest, RaftMessage
from gantrymq.replication.raft.quorum import majority
from gantrymq.replication.raft.ready import Ready
from gantrymq.store.engine import Store
from gantrymq.store.errors import StoreError

log = logging.getLogger(__name__)

SUCCESSION_SECONDS_MAX: Final = 0.15
"""A member that sees its leader's connection end wants an election after a part of this."""
LOOK_SECONDS: Final = 5.0
HAND_OVER_SECONDS_MAX: Final = 2.0
LEADERSHIP_LOST: Final = (
    "this member does not lead its raft group any more; the message may be stored all the same"
)


class Position(NamedTuple):
    """What a member is to clients."""

    leads: bool
    """It serves as the leader: its leader record is committed and everything is dispatched."""
    term: int
    leader: str | None


class RaftNode:
    """One member, running from `start` to `stop`."""

    def __init__(
        self,
        identity: GroupIdentity,
        settings: NodeSettings,
        core: RaftCore,
        store: Store,
        files: MemberFiles,
        reads: LogReads,
        *,
        network: Network,
        offload: Offload,
        boot_id: str,
        draw: Callable[[int], int],
    ) -> None:
        self.identity, self.core = identity, core
        self._settings, self._store, self._files = settings, store, files
        self._log, self._boot_id, self._draw = store.group_log, boot_id, draw
        self._reads = reads
        self._disk = MemberDisk(identity.me, store, files, reads, offload, core.log)
        self._links = MemberLinks(
            identity,
            network,
            greeting=self._greeting,
            on_message=self._receive,
            on_greeting=self._meet,
            on_lost=self._lost,
            key=settings.key,
        )
        self._loop = asyncio.get_running_loop()
        self._background = Background(f"raft member {identity.me}")
        self._wake = asyncio.Event()
        self._inbox: list[RaftMessage] = []
        self._ticked = False
        self._timer: asyncio.TimerHandle | None = None
        self._empty_members: dict[str, bool] = {}
        self._client_addresses = {identity.me: settings.client_address}
        self._led: Leadership | None = None
        """The leadership that the gate belongs to, or will."""
        self._gate: CommitGate | None = None
        self._resigned = ""
        self._failure = ""
        self.position = Position(False, core.term, None)
        self._moved = asyncio.Event()

    # Life

    async def start(self) -> None:
        """Open the raft port and take part."""
        self._store.leading = self.refusal
        self._reads.on_fetched = self._fetched
        self._store.tell_of_failures(self._disk_failed)
        self._store.upkeep.ask_before_delete(self._may_delete)
        await self._save_state()
        self._store.damage.clear()
        await self._links.start(self._settings.bind_address)
        self._background.keep_up(self._run)
        self._background.every(LOOK_SECONDS, self._look_at_disk)
        self._timer = self._loop.call_later(self._settings.tick_seconds, self._tick)
        if len(self.identity.members) == 1:
            self.core.begin_group()
        self._wake.set()

    async def stop(self) -> None:
        """Take part no more; a leader had better call `hand_over` before."""
        if self._timer is not None:
            self._timer.cancel()
        await self._background.close()
        await self._reads.close()
        await self._links.stop()
        self._store.leading = lambda: "this member of a raft group stops"
        await self._store.end_to_lead("this member of a raft group stops")
        try:
            await self._store.flush()
            self._files.save_state(self._member_state(stopped=True))
        except OSError as error:
            log.error("%s could not save that it stopped cleanly: %s", self.identity.me, error)

    async def hand_over(self) -> None:
        """Let a follower lead before this member stops: the group need not wait for a time-out."""
        if self._gate is None or len(self.identity.members) == 1:
            return
        try:
            self.transfer(None)
            async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
                while self._gate is not None:
                    await self.wait_moved()
        except (TimeoutError, NotServing) as error:
            log.warning("%s stops as the leader: %s", self.identity.me, error or "nobody took over")

    # What the broker asks

    def tables_copied(self, cuts: int) -> None:
        """Note that the leader's tables were copied and saved since the core had so many cuts."""
        if cuts == self.core.cuts and not self.core.holds_registry:
            log.info("%s has the tables of its group", self.identity.me)
            self.core.note_registry()
            self._wake.set()

    def refusal(self) -> str | None:
        """Why no message is taken now; None while this member leads."""
        if self._failure:
            return self._failure
        if self._gate is not None and self.core.accepts_writes:
            return None
        if self.core.leadership is not None:
            return f"{NOT_LEADER}the leader of this raft group is changing, try again"
        leader = self.core.leader
        if leader is None:
            return f"{NOT_LEADER}this raft group has no leader now, try again"
        where = self._client_addresses.get(leader, "an address not known yet")
        return f"{NOT_LEADER}this member follows {leader}: send to the leader at {where}"

    @property
    def connected(self) -> list[str]:
        """The other members that messages can be sent to."""
        return self._links.connected

    @property
    def trouble(self) -> str:
        """Why this member does not take part, or may not lead; empty if it does."""
        waits = "" if self.core.holds_registry else "it waits for the leader's tables"
        return self._failure or self._disk.problem or self._resigned or waits

    @property
    def leader_address(self) -> str | None:
        """The leader's port for clients, if another member leads."""
        leader = self.core.leader
        if leader is None or leader == self.identity.me:
            return None
        return self._client_addresses.get(leader)

    def address_of(self, name: str) -> str:
        """A member's port for clients, or its raft port if that is all that is known."""
        host, port = self.identity.addresses[name]
        return self._client_addresses.get(name, f"{host}:{port}")

    async def wait_moved(self) -> None:
        """Wait for the next change of the position, or for `interrupt`."""
        self._moved.clear()
        await self._moved.wait()

    def interrupt(self) -> None:
        """End all waits for a change of the position."""
        self._moved.set()

    def transfer(self, to: str | None) -> None:
        """Hand leadership to a member, by default to the one that holds most; NotServing if not."""
        leadership = self.core.leadership
        if self._gate is None or leadership is None:
            raise NotServing(f"{self.identity.me} does not lead; ask {self.core.leader or 'later'}")
        connected = [name for name in leadership.able() if name in self._links.connected]
        target = to or max(connected, key=lambda name: leadership.followers[name].match, default="")
        if target not in connected:
            raise NotServing(
                f"leadership cannot be handed to {target or 'anybody'}: connected and able are "
                f"{', '.join(connected) or 'none'}"
            )
        self._note_growth()
        self.core.transfer(target)
        self._wake.set()

    # Inputs

    def _tick(self) -> None:
        self._ticked = True
        self._wake.set()
        self._timer = self._loop.call_later(self._settings.tick_seconds, self._tick)

    def _receive(self, message: RaftMessage) -> None:
        self._inbox.append(message)
        self._wake.set()

    def _meet(self, greeting: Greeting) -> None:
        self._client_addresses[greeting.sender] = greeting.address
        self._empty_members[greeting.sender] = greeting.is_empty
        is_new = 1 + len(self._empty_members) >= majority(len(self.identity.members))
        if not self.core.stored.may_vote and is_new and all(self._empty_members.values()):
            self.core.begin_group()
            self._wake.set()

    def _lost(self, name: str) -> None:
        """A member's connection ended; if it was the leader, it may be gone."""
        if name == self.core.leader:
            self.core.forget_leader()
            part = self._draw(1000) / 1000
            self._loop.call_later(SUCCESSION_SECONDS_MAX * part, self._succeed)

    def _succeed(self) -> None:
        if self.core.leader is None and not self._failure:
            self.core.campaign()
            self._wake.set()

    def _wrote(self) -> None:
        """The writer has written as the leader."""
        self._note_growth()
        self._note_own_sync()
        self._wake.set()

    def _fetched(self) -> None:
        """Old bytes are there that a follower needs."""
        self._note_growth()
        self.core.send_again()
        self._wake.set()

    def _note_growth(self) -> None:
        size = self._log.end - self.core.log.end
        if size > 0 and self.core.leadership is not None:
            self.core.grow(size)
            self._disk.written = self.core.log

    def _note_own_sync(self) -> None:
        """Count this member's own copy when it is as durable as it promises."""
        core = self.core
        self._when_safe(partial(core.note_synced, core.log.end, core.cuts))

    def _when_safe(self, act: Callable[[], None]) -> None:
        """Do something when this member may confirm its log.

        One whose log began anew confirms nothing before it has the tables; its leader asks again.
        """
        if self.core.holds_registry or self.core.leadership is not None:
            self._when_synced(act)

    def _when_synced(self, act: Callable[[], None]) -> None:
        """Do something when the log is as durable as its acknowledgement promises.

        After a failed sync that is never: even what is in memory may be dropped by the system.
        """
        if self._log.flusher.failure:
            return
        if not self._is_sync_flush:
            act()
            return

        def synced() -> None:
            act()
            self._wake.set()

        flusher, end = self._log.flusher, self.core.log.end
        flusher.request(end)
        flusher.flushed.park(end, synced)

    @property
    def _is_sync_flush(self) -> bool:
        return self._store.config.flush == "SYNC_FLUSH"

    def _disk_failed(self, reason: str) -> None:
        if self.core.leadership is not None:
            log.error("%s hands leadership on: %s", self.identity.me, reason)
            self._note_growth()
            self._resigned = reason
            self.core.resign()
            self._wake.set()

    async def _look_at_disk(self) -> None:
        """Let a leader that resigned lead again when its disk has room, unless a sync failed."""
        if self._resigned and self._store.has_room_for_a_file():
            log.info("%s may lead again: its disk has room", self.identity.me)
            self._resigned = ""
            self.core.may_lead_again()

    async def _may_delete(self, upto: int) -> bool:
        return upto <= self.core.commit

    # The task

    async def _run(self) -> None:
        while not self._failure:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._turn()
            except (LogConflict, StoreError) as error:
                await self._fail(str(error))

    async def _fail(self, reason: str) -> None:
        """Take part no more: this member's log and the group's contradict each other."""
        self._failure = f"this member left its raft group: {reason}"
        log.critical("%s; move its store away and start it empty", self._failure)
        await self._links.stop()
        await self._stop_leading()

    async def _turn(self) -> None:
        core = self.core
        self._note_growth()
        inbox, self._inbox = self._inbox, []
        for message in inbox:
            core.step(message)
        if self._ticked:
            self._ticked = False
            core.tick()
        if core.log.first < self._log.first <= core.commit:
            core.note_first(self._log.first)
        await self._settle()
        await self._dispatch()

    async def _settle(self) -> None:
        """Carry out everything that the core wants."""
        core = self.core
        while True:
            if self._led is not None and core.leadership is not self._led:
                await self._stop_leading()
            ready = core.take_ready()
            if not ready:
                break
            await self._carry_out(ready)
        self._note_position()

    async def _carry_out(self, ready: Ready) -> None:
        await self._save_state()
        for message in ready.messages:
            if isinstance(message, AppendRequest) and message.size:
                await self._send_bytes(message)
            else:
                self._send(message)
        for write in ready.writes:
            await self._disk.write(write)
        if ready.after_sync:
            cuts = self.core.cuts
            self._when_safe(partial(self._answer, ready.after_sync, cuts, self.core.log.end))
        elif ready.writes:
            self._note_own_sync()
        if ready.leader_record:
            await self._begin_leading()
        if ready.commit is not None and self._gate is not None:
            self._gate.mark.advance(ready.commit)

    def _answer(self, messages: tuple[RaftMessage, ...], cuts: int, end: int) -> None:
        """Send what waited for a sync, unless the log was cut since: then it is not true."""
        if cuts == self.core.cuts:
            for message in messages:
                self._send(message)
            self.core.note_synced(end, cuts)
            self._wake.set()

    def _send(self, message: RaftMessage) -> None:
        self._links.send(message)

    async def _send_bytes(self, message: AppendRequest) -> None:
        try:
            read = self._reads.read(message.start, message.size)
            payload = read if isinstance(read, bytes) else await read
        except StoreError:
            return  # retention was quicker; the core learns of it in the next turn
        if message.start < self.core.commit:
            self._log.verify(message.start, payload)  # old bytes, which the disk may damage
        self._links.send(message, payload)

    # Files

    async def _save_state(self) -> None:
        """Save term and vote if they changed; everything else waits until they are on disk."""
        await self._disk.save_state(self._member_state())

    def _member_state(self, *, stopped: bool = False) -> MemberState:
        stored = self.core.stored
        return MemberState(
            group=self.identity.group,
            me=self.identity.me,
            term=stored.term,
            vote=stored.vote,
            may_vote=stored.may_vote,
            has_registry=self.core.holds_registry,
            boot_id=self._boot_id,
            is_synced=stopped or self._is_sync_flush,
        )

    # Leading

    async def _begin_leading(self) -> None:
        """Write the leader record; clients are served once it is committed."""
        core = self.core
        leadership = self._led = core.leadership
        assert leadership is not None
        await self._disk.write_leader_record(core.term, lambda: core.leadership is leadership)
        if core.leadership is leadership:
            self._note_growth()
            self._note_own_sync()

    async def _stop_leading(self) -> None:
        self._led = None
        if self._gate is not None:
            self._gate = None
            self._note_position()
            await self._store.end_to_lead(LEADERSHIP_LOST)

    async def _dispatch(self) -> None:
        """Show what is committed; a leader's own writes are shown by the store itself."""
        core = self.core
        if self._gate is not None:
            return
        while self._log.dispatch(core.commit):
            await asyncio.sleep(0)
            if self._inbox or self._ticked:
                self._wake.set()
                return
        if core.serving and self._led is core.leadership:
            self._gate = CommitGate(core.commit, self._settings.commit_timeout_ms, self._wrote)
            self._store.begin_to_lead(self._gate)
            self._note_position()

    def _note_position(self) -> None:
        position = Position(self._gate is not None, self.core.term, self.core.leader)
        if position != self.position:
            if position.leads:
                log.info(
                    "%s leads %s in term %d", self.identity.me, self.identity.group, position[1]
                )
            elif position.leader not in (None, self.identity.me, self.position.leader):
                log.info("%s follows %s in term %d", self.identity.me, position[2], position[1])
            self.position = position
            self._moved.set()

    def _greeting(self, receiver: str) -> Greeting:
        core = self.core
        return Greeting(
            group=self.identity.group,
            sender=self.identity.me,
            receiver=receiver,
            members=self.identity.members,
            file_bytes=self._store.config.segment_bytes,
            address=self._settings.client_address,
            is_empty=core.term == 0 and core.log.end == 0,
        )
