"""The master's side of the copy: serves the HA port.

Each slave has a connection of its own. The first report says from where on the slave wants the log;
from then on the master sends whatever is written, without waiting for acknowledgements. A
connection that has sent everything parks on the end of the log and goes on when it grows. A slave
that reads slowly is sent nothing more until its socket has room, so it costs no memory.

What counts as acknowledged: only bytes that were sent on the same connection, and only from a slave
that is known: one of ours that has introduced itself over the remoting port, or one whose address
the name servers have as a slave of this broker. A stranger gets the log, as from RocketMQ's master,
but cannot make a send count as copied. With access control a stranger gets nothing: a slave has to
introduce itself, which needs an admin's key, or come from an address that needs none.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, NamedTuple, cast

from gantrymq.base.background import Background
from gantrymq.base.network import Listener, Network
from gantrymq.replication.ha.in_sync import InSyncSlaves, SlaveProgress
from gantrymq.replication.ha.wire import TRANSFER_BYTES_MAX, TRANSFER_HEAD, ReportReader
from gantrymq.store.reading.log_bytes import LogBytes

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 5.0
"""RocketMQ's haSendHeartbeatInterval."""
PROMISED_HEARTBEAT_SECONDS: Final = 1.0
"""What a slave of ours is promised when it introduces itself."""
SILENT_REPORTS_MAX: Final = 2.5
"""A slave that let as many reports be missing gives way to one with the same id."""
SILENT_SECONDS_MAX: Final = 20.0
"""RocketMQ's haHousekeepingInterval."""
WRITE_BUFFER_BYTES_MAX: Final = 4 << 20
LOOK_SECONDS: Final = 0.5


class SlaveIdentity(NamedTuple):
    """What a slave of ours says of itself before it asks for the log."""

    broker_id: int
    wants_all: bool
    """Whether a slave without a log gets the whole log instead of the last file."""
    report_seconds: float
    """It reports as often as this, also when its log does not grow."""


class SlaveConnection(asyncio.Protocol):
    """One slave: what it asked for, what was sent to it, what it has acknowledged."""

    def __init__(self, master: "HaMaster") -> None:
        self._master, self._log = master, master.log
        self._reader = ReportReader()
        self._transport: asyncio.Transport | None = None
        self._is_reading = self._is_blocked = self._is_parked = False
        self._wrote_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sent_before = 0
        self.bytes_per_second = 0
        self.peer = ("", 0)
        self.progress: SlaveProgress | None = None
        """None until the first report has come."""
        self.heard_at = 0.0
        self.is_known = False
        """Whether its acknowledgements count."""
        self.wants_all = False
        self.heartbeat_seconds = HEARTBEAT_SECONDS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        peer = transport.get_extra_info("peername")
        self.peer = (str(peer[0]), int(peer[1]))
        loop = asyncio.get_running_loop()
        self.heard_at = self._wrote_at = loop.time()
        self._timer = loop.call_later(LOOK_SECONDS, self._look)
        self._master.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._master.disconnected(self)

    @property
    def address(self) -> str:
        return f"{self.peer[0]}:{self.peer[1]}"

    # what the slave says

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        reports = self._reader.feed(data)
        if self.progress is None and reports:
            self._begin(reports[0])
        if self.progress is not None and reports:
            self._acknowledge(self.progress, reports[-1])

    def _begin(self, asked: int) -> None:
        """The first report: from where on the slave wants the log."""
        if not self._master.admits(self):
            self._refuse(
                "access control is on, and it did not introduce itself with an admin's key: give "
                "a slave innerClientAuthenticationCredentials, or a Java slave's address to the "
                "white list"
            )
            return
        start = asked
        if asked == 0:
            start = self._log.min if self.wants_all else self._log.last_file
        if start > self._log.end.value:
            self._refuse(
                f"its log ends at {asked}, behind this master's end {self._log.end.value}: this "
                "master has lost what the slave still has. Move the slave's store away and start "
                "it empty, or make the slave the master"
            )
            return
        if start < self._log.min:
            self._refuse(
                f"it wants the log from {asked} on, which begins at {self._log.min} by now: move "
                "its store away and start it empty"
            )
            return
        self.progress = SlaveProgress(self.address, start, start if asked else 0, self.heard_at)
        self._sent_before = start
        log.info("slave %s gets the log from offset %d on", self.address, start)
        self._master.began(self)
        self._send()

    def _acknowledge(self, progress: SlaveProgress, offset: int) -> None:
        if offset > progress.sent:
            self._refuse(f"it acknowledges offset {offset}, but was sent {progress.sent} only")
            return
        if offset >= progress.acknowledged:
            self._master.acknowledged(progress, offset, self.heard_at)

    def _refuse(self, why: str) -> None:
        log.error("slave %s is refused: %s", self.address, why)
        self.close()

    # what the master sends

    def pause_writing(self) -> None:
        self._is_blocked = True

    def resume_writing(self) -> None:
        self._is_blocked = False
        self._send()

    def _send(self) -> None:
        """Send the log up to its end, or until the socket or the disk makes us wait."""
        progress = self.progress
        if progress is None or self._is_reading or self._is_parked:
            return
        while self._transport is not None and not self._is_blocked:
            if progress.sent >= self._log.end.value:
                self._is_parked = True
                self._log.end.park(progress.sent + 1, self._go_on)
                return
            data = self._log.read(progress.sent, TRANSFER_BYTES_MAX)
            if not isinstance(data, bytes):
                self._is_reading = True
                self._master.background.spawn(self._send_cold(progress, data))
                return
            self._transfer(progress, data)

    def _go_on(self) -> None:
        """The log has grown."""
        self._is_parked = False
        self._send()

    async def _send_cold(self, progress: SlaveProgress, reading: Awaitable[bytes]) -> None:
        try:
            data = await reading
        except OSError as error:
            self._refuse(f"the log cannot be read at {progress.sent}: {error}")
            return
        finally:
            self._is_reading = False
        self._transfer(progress, data)
        self._send()

    def _transfer(self, progress: SlaveProgress, data: bytes) -> None:
        if self._transport is None:
            return
        if not data:
            self._refuse(f"the log file at {progress.sent} was deleted before it was sent")
            return
        head = TRANSFER_HEAD.pack(progress.sent, len(data))
        progress.sent += len(data)
        self._wrote_at = asyncio.get_running_loop().time()
        if len(data) < TRANSFER_BYTES_MAX:
            self._transport.write(head + data)
        else:
            self._transport.writelines((head, data))

    def _look(self) -> None:
        """Close a silent connection; send a heartbeat on one that had nothing to send."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = loop.call_later(LOOK_SECONDS, self._look)
        if self.progress is not None:
            self.bytes_per_second = int((self.progress.sent - self._sent_before) / LOOK_SECONDS)
            self._sent_before = self.progress.sent
        self._master.time_passed()
        if now - self.heard_at > SILENT_SECONDS_MAX:
            self._refuse(f"it was silent for {SILENT_SECONDS_MAX:g} s")
        elif (
            self._transport is not None
            and self.progress is not None
            and not self._is_blocked
            and now - self._wrote_at >= self.heartbeat_seconds
        ):
            self._wrote_at = now
            self._transport.write(TRANSFER_HEAD.pack(self.progress.sent, 0))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class HaMaster:
    """The HA port of a master."""

    def __init__(
        self,
        log_bytes: LogBytes,
        slaves: InSyncSlaves,
        changed: Callable[[], None],
        trusts: Callable[[str], bool] | None = None,
    ) -> None:
        """`trusts` says which hosts need no key; None: every host."""
        self.log, self._slaves, self._trusts = log_bytes, slaves, trusts
        self._changed = changed
        """Called when a slave acknowledged, came or went."""
        self.background = Background("the HA port")
        self.connections: dict[SlaveConnection, None] = {}
        self._known_hosts: frozenset[str] = frozenset()
        self._introduced: dict[tuple[str, int], SlaveIdentity] = {}
        """The slaves that have introduced themselves, by the address they connect from."""
        self.unknown_came = asyncio.Event()
        """Set when somebody connects who is not known as a slave."""
        self._listener: Listener | None = None

    async def start(self, network: Network, host: str, port: int) -> None:
        """Open the HA port."""
        self._listener = await network.listen(host, port, lambda: SlaveConnection(self))

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._listener is not None:
            await self._listener.close()
        for connection in list(self.connections):
            connection.close()
        await self.background.close()

    # who is a slave

    def introduce(self, address: tuple[str, int], slave: SlaveIdentity) -> None:
        """Take a slave of ours as known: its HA connection comes from this address."""
        self._introduced[address] = slave
        for connection in self.connections:
            if connection.peer == address:
                self._know(connection)

    def admits(self, connection: SlaveConnection) -> bool:
        """Whether who connected may have the log."""
        if self._trusts is None or connection.peer in self._introduced:
            return True
        return self._trusts(connection.peer[0])

    def rival_of(self, address: tuple[str, int], broker_id: int) -> tuple[str, int] | None:
        """The address of another slave with this id that follows this master.

        One that has not reported in time is none: the slave has noticed before its master that the
        link was cut, and connects anew.
        """
        now = asyncio.get_running_loop().time()
        for connection, slave in self._connections_of(broker_id):
            has_begun = connection.progress is not None and connection.peer != address
            if has_begun and now - connection.heard_at < SILENT_REPORTS_MAX * slave.report_seconds:
                return connection.peer
        return None

    def _connections_of(self, broker_id: int) -> list[tuple[SlaveConnection, SlaveIdentity]]:
        found = [(each, self._introduced.get(each.peer)) for each in self.connections]
        return [(each, slave) for each, slave in found if slave and slave.broker_id == broker_id]

    def broker_id_of(self, connection: SlaveConnection) -> int | None:
        """The id of a connected slave; None if it has not introduced itself."""
        identity = self._introduced.get(connection.peer)
        return identity.broker_id if identity is not None else None

    def set_known_hosts(self, hosts: Collection[str]) -> None:
        """Take slaves at these hosts as known: name servers have them as this broker's slaves."""
        self._known_hosts = frozenset(hosts)
        for connection in self.connections:
            self._know(connection)

    @property
    def has_unknown(self) -> bool:
        """Whether somebody is connected who is not known as a slave."""
        return any(not connection.is_known for connection in self.connections)

    def _know(self, connection: SlaveConnection) -> None:
        identity = self._introduced.get(connection.peer)
        if identity is not None:
            connection.wants_all = identity.wants_all
            connection.heartbeat_seconds = PROMISED_HEARTBEAT_SECONDS
        known = identity is not None or connection.peer[0] in self._known_hosts
        if known and not connection.is_known:
            connection.is_known = True
            self.began(connection)

    # told by connections

    def connected(self, connection: SlaveConnection) -> None:
        self.connections[connection] = None
        self._know(connection)
        if not connection.is_known:
            self.unknown_came.set()

    def disconnected(self, connection: SlaveConnection) -> None:
        self.connections.pop(connection, None)
        self._introduced.pop(connection.peer, None)
        if connection.progress is not None:
            self._slaves.leave(connection.progress)
            log.warning("slave %s is gone", connection.address)
            self._changed()

    def began(self, connection: SlaveConnection) -> None:
        """Count a slave that is known and has told where it stands."""
        if connection.is_known and connection.progress is not None:
            self._slaves.join(connection.progress)
            self._replace_older(connection)
            self._changed()

    def _replace_older(self, connection: SlaveConnection) -> None:
        """Close what is left of this slave's connections before, now that nobody waits for them."""
        identity = self._introduced.get(connection.peer)
        if identity is not None:
            for older, _ in self._connections_of(identity.broker_id):
                if older is not connection:
                    log.info("slave %s is connected anew: %s", older.address, connection.address)
                    older.close()

    def acknowledged(self, progress: SlaveProgress, offset: int, now: float) -> None:
        self._slaves.acknowledge(progress, offset, now)
        self._changed()

    def time_passed(self) -> None:
        """A slave may be silent for too long by now."""
        self._changed()
