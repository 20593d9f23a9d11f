"""The slave's side of the copy: follows a master's HA port.

The slave connects, reports the end of its log, and writes what comes. It reports again whenever its
log has grown, and every second in any case, so that the master knows it is alive. A connection
that breaks, falls silent or brings bytes that do not fit is closed and made again; each time the
copy goes on at the end of the slave's own log.

A link that was cut is made anew, because the old connection would stand still for longer than the
cut: TCP doubles its pauses. So a slave gives a connection up when its master, which promised a
heartbeat a second, is silent for some of them, and connects in short tries. A master of RocketMQ's
promises nothing, and gets the time that RocketMQ gives it. Who was refused tries again later.

With SYNC_FLUSH a report covers only what is flushed, so that a master that waits for its slave
waits for two disks.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, cast

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.base.network import ConnectFailed, Network, split_address
from gantrymq.remoting.pending_call import CallTimeout, ConnectionLost
from gantrymq.replication.ha.wire import REPORT, TransferReader
from gantrymq.store.writing.log_copy import CopyRefused, LogCopy

log = logging.getLogger(__name__)

REPORT_SECONDS: Final = 1.0
SILENT_SECONDS_MAX: Final = 20.0
"""RocketMQ's haHousekeepingInterval, for a master that promised no heartbeats."""
SILENT_HEARTBEATS_MAX: Final = 2.5
AGAIN_SECONDS: Final = 0.5
"""How soon a link that broke is tried again."""
RECONNECT_SECONDS: Final = 5.0
"""How soon a slave that was refused tries again, and how often name servers are asked."""
CONNECT_SECONDS_MAX: Final = 1.0
"""Short, because TCP sends a lost first packet again after 1, 3 and 7 seconds only."""
LOOK_SECONDS: Final = 0.5

Introduce = Callable[[tuple[str, int]], Awaitable[float]]
"""Tells the master over the remoting port which address the HA connection comes from; returns how
many seconds at most it lets pass without a heartbeat, 0 if it promises nothing."""


class LinkSilent(GantryError):
    """Nothing came from the master for too long."""


class MasterConnection(asyncio.Protocol):
    """The connection to a master."""

    def __init__(self, copy: LogCopy, background: Background) -> None:
        self._copy, self._background = copy, background
        self._reader = TransferReader()
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._transport: asyncio.Transport | None = None
        self._makes_room = False
        self._reported = -1
        """The last report; -1 before the first one."""
        self._reported_at = self._looked_at = 0.0
        self._silent_seconds_max = SILENT_SECONDS_MAX
        self.heard_at = 0.0
        self.ended: asyncio.Future[GantryError] = asyncio.get_running_loop().create_future()
        """Why the connection ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.heard_at = asyncio.get_running_loop().time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end(GantryError(f"the connection was closed{f': {exc}' if exc else ''}"))

    @property
    def local_address(self) -> tuple[str, int]:
        assert self._transport is not None, "asked for while connected"
        host, port = self._transport.get_extra_info("sockname")[:2]
        return str(host), int(port)

    def begin(self, heartbeat_seconds: float) -> None:
        """Ask for the log, from its own end on."""
        self.heard_at = self._looked_at = asyncio.get_running_loop().time()
        if heartbeat_seconds > 0:
            self._silent_seconds_max = SILENT_HEARTBEATS_MAX * heartbeat_seconds
        self._report(self._copy.end)

    # what the master sends

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        try:
            self._pieces.extend(self._reader.feed(data))
            self._take()
        except (GantryError, OSError) as error:
            self.fail(GantryError(str(error)))

    def _take(self) -> None:
        """Write the pieces that are there, up to the end of the file."""
        while self._pieces and not self._makes_room:
            at, piece = self._pieces[0]
            if not piece:
                self._check_heartbeat(at)
                self._pieces.popleft()
            elif self._copy.has_room():
                taken = self._copy.append(at, piece)
                self._pieces.popleft()
                if taken < len(piece):
                    self._pieces.appendleft((at + taken, piece[taken:]))
            else:
                self._makes_room = True
                if self._transport is not None:
                    self._transport.pause_reading()
                self._background.spawn(self._make_room(at))
        self._report_growth()

    def _check_heartbeat(self, at: int) -> None:
        """A heartbeat names where the master goes on: that has to be the end of this log."""
        if at != self._copy.end and not self._copy.is_empty:
            raise CopyRefused(
                f"the master would go on at log offset {at}, but this log ends at {self._copy.end}"
            )

    async def _make_room(self, at: int) -> None:
        try:
            await self._copy.make_room(at)
            self._makes_room = False
            self.heard_at = asyncio.get_running_loop().time()
            if self._transport is not None:
                self._transport.resume_reading()
            self._take()
        except (GantryError, OSError) as error:
            self.fail(GantryError(str(error)))

    # what the slave reports

    def _report_growth(self) -> None:
        if not self._copy.sync_flush:
            self._report_new(self._copy.end)
        elif self._copy.flushed.value < self._copy.end:
            end = self._copy.end
            self._copy.flushed.park(end, lambda: self._report_new(end))

    def _report_new(self, offset: int) -> None:
        if 0 <= self._reported < offset:
            self._report(offset)

    def _report(self, offset: int) -> None:
        if self._transport is not None:
            self._reported, self._reported_at = offset, asyncio.get_running_loop().time()
            self._transport.write(REPORT.pack(offset))

    def look(self, now: float) -> None:
        """Report although nothing has grown; end a connection whose master is silent.

        The master is not silent while this slave does not read, be it that it waits for its disk or
        that the whole process stood still.
        """
        stood_still = now - self._looked_at > 2 * LOOK_SECONDS
        self._looked_at = now
        if stood_still or self._makes_room:
            self.heard_at = now
        if now - self.heard_at > self._silent_seconds_max:
            self.fail(LinkSilent(f"the master was silent for {self._silent_seconds_max:g} s"))
        elif self._reported >= 0 and now - self._reported_at >= REPORT_SECONDS:
            self._report(self._reported)

    def fail(self, why: GantryError) -> None:
        """End the connection."""
        self._end(why)
        if self._transport is not None:
            self._transport.abort()

    def _end(self, why: GantryError) -> None:
        if not self.ended.done():
            self.ended.set_result(why)


class HaSlave:
    """Follows the master for as long as the broker runs."""

    def __init__(
        self,
        copy: LogCopy,
        network: Network,
        master: Callable[[], str | None],
        introduce: Introduce,
        on_silence: Callable[[], None],
    ) -> None:
        """`on_silence` hears when the link was cut: other connections to the master are, too."""
        self._copy, self._network = copy, network
        self._master, self._introduce, self._on_silence = master, introduce, on_silence
        self.connection: MasterConnection | None = None
        """The connection over which the log comes; None while there is none."""
        self.address: str | None = None
        """The master's HA port, as it was last known."""
        self._asked_at = -RECONNECT_SECONDS
        self._said = ""

    async def run(self) -> None:
        """Connect, follow until the connection ends, and again."""
        began = asyncio.get_running_loop().time()
        while True:
            address = self._find_master()
            if address is not None:
                pause = await self._follow(address)
                await asyncio.sleep(pause)
            elif asyncio.get_running_loop().time() - began > RECONNECT_SECONDS:
                self._say("no name server has a master of this broker's name", RECONNECT_SECONDS)
                await asyncio.sleep(RECONNECT_SECONDS)
            else:
                await asyncio.sleep(2 * LOOK_SECONDS)

    def _find_master(self) -> str | None:
        """The master's HA port; short tries do not ask the name servers each time."""
        now = asyncio.get_running_loop().time()
        if self.address is None or now - self._asked_at >= RECONNECT_SECONDS:
            self.address, self._asked_at = self._master(), now
        return self.address

    async def _follow(self, address: str) -> float:
        """Follow until the connection ends; returns how long to pause before the next try."""
        began = asyncio.get_running_loop().time()
        why: GantryError
        try:
            why = await self._connect_and_copy(address)
        except (GantryError, OSError) as error:
            why = error if isinstance(error, GantryError) else GantryError(str(error))
        lasted = asyncio.get_running_loop().time() - began
        if isinstance(why, LinkSilent | CallTimeout):
            self._on_silence()
        is_broken = isinstance(why, LinkSilent | ConnectFailed | CallTimeout | ConnectionLost)
        pause = AGAIN_SECONDS if is_broken or lasted > RECONNECT_SECONDS else RECONNECT_SECONDS
        self._say(f"the copy of {address} stopped at offset {self._copy.end}: {why}", pause)
        return 0.0 if isinstance(why, LinkSilent) else pause

    async def _connect_and_copy(self, address: str) -> GantryError:
        """Returns why it ended."""
        host, port = split_address(address)
        background = Background(f"the copy of {address}")
        connection = await self._network.connect(
            host, port, lambda: MasterConnection(self._copy, background), CONNECT_SECONDS_MAX
        )
        try:
            heartbeat_seconds = await self._introduce(connection.local_address)
            self.connection = connection
            log.info("the copy of %s goes on at offset %d", address, self._copy.end)
            self._said = ""
            connection.begin(heartbeat_seconds)
            background.spawn(_watch(connection))
            return await connection.ended
        finally:
            self.connection = None
            connection.fail(GantryError("the copy was stopped"))
            await background.close()

    def _say(self, what: str, pause: float) -> None:
        """Log a warning, once for each reason."""
        if what != self._said:
            self._said = what
            log.warning("%s; trying again every %g s", what, pause)


async def _watch(connection: MasterConnection) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        connection.look(asyncio.get_running_loop().time())
