"""Who may come in: connections and requests of a server, held to its limits.

Ports that belong together share one `ServerAdmission`. Requests are counted a turn at a time, and
the sum over all connections is an upper bound: answers are subtracted when a connection sends
again, or all at once when the bound is reached. So a request costs nothing here as long as there is
room.
"""

import asyncio
import resource
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from gantrymq.base.histogram import Histogram
from gantrymq.kernel import Request
from gantrymq.protocol.codes import VERSION_4_9_8, ResponseCode
from gantrymq.protocol.command import (
    JSON_CODEC,
    ONEWAY_FLAG,
    PREFIX,
    RESPONSE_FLAG,
    Command,
    encode,
)
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import ConnectionLimits, Refusals
from gantrymq.remoting.requests import commands_of

TURNED_AWAY_MAX: Final = 64
"""Connections over the limit that stay until their first request is refused; more are cut."""
TURNED_AWAY_SECONDS_MAX: Final = 3.0
RECOUNT_SECONDS: Final = 0.05
LOOK_SECONDS: Final = 0.001
"""How often a congested server looks whether it still is."""
FILES_RATIO: Final = 0.75
"""The part of a process's files that connections may be; the store needs the others."""
TIME_BOUNDS_MS: Final = (1.0, 3.0, 5.0, 7.0, 10.0, 100.0, 1000.0, 2000.0, 3000.0)
"""RocketMQ's classes of the times of requests."""
OVERLOAD: Final = "[OVERLOAD]system busy, start flow control for a while: "
"""RocketMQ's words, which clients and operators know."""


class BusyAnswer:
    """SYSTEM_BUSY with one remark; only the number of the request differs between two answers."""

    def __init__(self, remark: str, ext: dict[str, str] | None = None) -> None:
        self._remark, self._ext = remark, ext or {}
        whole = encode(self._command(0, JSON_CODEC))[PREFIX.size :]
        self._head, self._tail = whole.split(b'"opaque":0')
        assert b"%d" % VERSION_4_9_8 in self._tail

    def _command(self, opaque: int, codec: int) -> Command:
        return Command(
            code=ResponseCode.SYSTEM_BUSY,
            ext=self._ext,
            flag=RESPONSE_FLAG,
            opaque=opaque,
            remark=self._remark,
            codec=codec,
        )

    def frame(self, command: Command) -> bytes:
        """The answer to one request."""
        if command.codec != JSON_CODEC:
            return encode(self._command(command.opaque, command.codec))
        header = b'%b"opaque":%d%b' % (self._head, command.opaque, self._tail)
        return PREFIX.pack(4 + len(header), len(header)) + header


def _never() -> bool:
    return False


class ServerAdmission:
    """The connections and requests of one server, on all its ports."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals | None = None) -> None:
        self.limits = limits
        self.refusals = refusals if refusals is not None else Refusals(limits)
        self._connections: dict[Connection, None] = {}
        self._by_address: dict[str, int] = {}
        self._count = 0
        self._requests = 0
        self._recount_at = 0.0
        self._turned_away: dict[Connection, None] = {}
        self._slow_readers: dict[Connection, None] = {}
        """Those that have been slow for longest come first."""
        self._waiting: deque[Connection] = deque()
        self._turn: asyncio.TimerHandle | asyncio.Handle | None = None
        self.is_congested: Callable[[], bool] = _never
        """Whether connections should be held back for a moment; a broker replaces it."""
        self.times: dict[tuple[int, int], Histogram] = {}
        """Milliseconds of requests that are not hot, by their code and that of the answer."""
        self._files = int(resource.getrlimit(resource.RLIMIT_NOFILE)[0] * FILES_RATIO)

    @property
    def open_connections(self) -> int:
        """Connections of all ports."""
        return self._count

    def took(self, code: int, answer: int, seconds: float) -> None:
        """Count a request that was not hot."""
        times = self.times.get((code, answer))
        if times is None:
            times = self.times[code, answer] = Histogram(TIME_BOUNDS_MS)
        times.observe(seconds * 1000)

    # connections

    def enter(self, address: str) -> str | None:
        """Count a connection; if it is one too many, the name of the limit instead."""
        limits = self.limits
        if self._count >= min(limits.max_connections, self._files):
            return "maxConnections"
        here = self._by_address.get(address, 0)
        if here >= limits.max_connections_per_address:
            return "maxConnectionsPerAddress"
        self._count += 1
        self._by_address[address] = here + 1
        return None

    def leave(self, address: str) -> None:
        """Forget a connection that was counted."""
        self._count -= 1
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]

    def made(self, connection: Connection) -> bool:
        """A connection was made; False if it is turned away."""
        key = self.enter(connection.peer[0])
        if key is None:
            self._connections[connection] = None
            return True
        self._turn_away(connection, key)
        return False

    def _turn_away(self, connection: Connection, key: str) -> None:
        """Let a connection that is one too many ask once, so that it learns the reason."""
        what = "no more connections" + (" from this address" if key.endswith("Address") else "")
        error = self.refusals.reached(key, OVERLOAD + what, connection.address)
        if len(self._turned_away) >= TURNED_AWAY_MAX:
            connection.abort()
            return

        def refuse(connection: Connection, command: Command) -> None:
            connection.reply(command, error.code, remark=str(error))
            connection.close()

        self._turned_away[connection] = None
        connection.answer_with(refuse)
        connection.loop.call_later(TURNED_AWAY_SECONDS_MAX, connection.abort)

    def lost(self, connection: Connection) -> None:
        """A connection ended, whether it was turned away or not."""
        self._slow_readers.pop(connection, None)
        if self._turned_away.pop(connection, self) is None:
            return
        if connection in self._connections:
            del self._connections[connection]
            self._requests -= connection.counted
            self.leave(connection.peer[0])

    # readers

    def fell_behind(self, connection: Connection) -> None:
        """Close the slowest reader if there is one too many: each of them keeps megabytes here."""
        self._slow_readers[connection] = None
        if len(self._slow_readers) > self.limits.max_slow_readers:
            slowest = next(iter(self._slow_readers))
            del self._slow_readers[slowest]
            self.refusals.count("maxSlowReaders", slowest.address)
            slowest.abort()

    def caught_up(self, connection: Connection) -> None:
        """A reader is not slow any more."""
        self._slow_readers.pop(connection, None)

    # turns

    def must_wait(self, connection: Connection) -> bool:
        """Hold a connection back if the server is congested, behind those that wait already.

        TCP then holds its peer back, which costs this server nothing. Connections go on one by one,
        each with the requests of one turn, so that a busy peer cannot starve the others.
        """
        if not self._waiting and not self.is_congested():
            return False
        self._waiting.append(connection)
        if self._turn is None:
            self._turn = connection.loop.call_soon(self._let_one_go_on)
        return True

    def _let_one_go_on(self) -> None:
        self._turn = None
        loop = asyncio.get_running_loop()
        if self.is_congested():
            self._turn = loop.call_later(LOOK_SECONDS, self._let_one_go_on)
            return
        while self._waiting:
            connection = self._waiting.popleft()
            if connection.open:
                connection.go_on()
                break
        if self._waiting:
            self._turn = loop.call_soon(self._let_one_go_on)

    # requests

    def admitted(
        self, connection: Connection, requests: Sequence[Request], count: int
    ) -> Sequence[Request]:
        """The requests of one turn that there is room for; the others are refused."""
        limits = self.limits
        wanted = connection.pending + count
        self._requests += wanted - connection.counted
        connection.counted = wanted
        if self._requests > limits.max_requests:
            self._recount(connection, wanted)
        if wanted <= limits.max_requests_per_connection and self._requests <= limits.max_requests:
            return requests
        return self._some_of(connection, commands_of(requests))

    def _recount(self, connection: Connection, wanted: int) -> None:
        """Subtract what was answered in the meantime on all connections."""
        now = connection.loop.time()
        if now < self._recount_at:
            return
        self._recount_at = now + RECOUNT_SECONDS
        for each in self._connections:
            each.counted = each.pending
        connection.counted = wanted
        self._requests = sum(each.counted for each in self._connections)

    def _some_of(self, connection: Connection, commands: list[Command]) -> list[Command]:
        room = self.limits.max_requests_per_connection - connection.pending
        key = "maxRequestsPerConnection"
        of_all = self.limits.max_requests - self._requests + len(commands)
        if of_all < room:
            room, key = of_all, "maxRequests"
        served: list[Command] = []
        refused = 0
        answer = None
        for command in commands:
            if command.flag & (ONEWAY_FLAG | RESPONSE_FLAG):
                served.append(command)
            elif room > 0:
                room -= 1
                served.append(command)
            else:
                if answer is None:
                    now = self.refusals.value(key)
                    answer = BusyAnswer(f"{OVERLOAD}raise {key} (now {now})")
                connection.write(answer.frame(command))
                refused += 1
        if refused:
            self.refusals.count(key, connection.address, refused)
        return served
