"""A port that answers requests from two tables.

Hot codes are answered by a plain function: no task, no await. All other codes take the slow table:
a coroutine whose result is the response. An exception in one handler answers that request only.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.base.network import CountedFactory, Listener, Network, limit_received
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.admission import OVERLOAD, ServerAdmission
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import ConnectionLimits, LimitReached
from gantrymq.remoting.requests import PlainSends

log = logging.getLogger(__name__)

IDLE_SECONDS_MAX: Final = 120.0
SCAN_SECONDS_MAX: Final = 10.0
"""Connections are looked at so often, or more often if a limit in milliseconds asks for it."""
SLOW_STARTS_PER_TURN: Final = 8
"""A thousand questions at once must not hold the loop: the rest starts in the turns after."""
STOP_SECONDS_MAX: Final = 5.0

Hot = Callable[[Connection, Command], None]
Slow = Callable[[Connection, Command], Awaitable[Command | None]]
Guard = Callable[[Connection, Command], None]


class HandlerTable:
    """All requests that a server answers: code to handler, hot or slow."""

    def __init__(
        self,
        hot: Mapping[int, Hot] | None = None,
        slow: Mapping[int, Slow] | None = None,
        guard: Guard | None = None,
        sends: PlainSends | None = None,
    ) -> None:
        self.hot = dict(hot or {})
        self.slow = dict(slow or {})
        self.guard = guard
        """Sees the code, the raw fields and the body of every request first; raises to refuse."""
        self.sends = sends
        """Takes runs of plain sends, which the guard does not see: with one, `sends` asks it."""
        clash = self.hot.keys() & self.slow.keys()
        assert not clash, f"codes in both tables: {sorted(clash)}"

    def without(self, *codes: int) -> "HandlerTable":
        """The same table without some codes (a broker's fast port takes no pulls)."""
        return HandlerTable(
            {c: h for c, h in self.hot.items() if c not in codes},
            {c: h for c, h in self.slow.items() if c not in codes},
            self.guard,
            self.sends,
        )


class _CountedConnections(CountedFactory):
    """Makes the connections of a port, and counts those that have not begun."""

    def __init__(self, make: Callable[[], Connection], admission: ServerAdmission) -> None:
        self._make, self._admission = make, admission

    def __call__(self) -> Connection:
        return self._make()

    def enter(self, address: str) -> bool:
        key = self._admission.enter(address)
        if key is not None:
            self._admission.refusals.count(key, address)
        return key is None

    def leave(self, address: str) -> None:
        self._admission.leave(address)


class Server:
    """One listening port with its connections."""

    def __init__(
        self,
        routes: HandlerTable,
        network: Network,
        *,
        on_lost: Callable[[Connection], None] | None = None,
        admission: ServerAdmission | None = None,
    ) -> None:
        """Ports of one broker share an admission; without one the default limits hold."""
        self._routes, self._network = routes, network
        self._admission = (
            admission if admission is not None else ServerAdmission(ConnectionLimits())
        )
        self._on_lost_hook = on_lost
        self._connections: dict[Connection, None] = {}
        self._background = Background("a server")
        self._slow_by_connection: dict[Connection, int] = {}
        self._to_start: deque[tuple[Slow, Connection, Command]] = deque()
        self._listener: Listener | None = None
        self._stopping = False

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        factory = _CountedConnections(self._new_connection, self._admission)
        self._listener = await self._network.listen(host, port, factory)
        self._background.every(self._scan_seconds, self._close_late, may_be_late=True)
        return self._listener.port

    def _scan_seconds(self) -> float:
        limits = self._admission.limits
        shortest_ms = min(limits.frame_timeout_mills, limits.reader_timeout_mills)
        if self._routes.guard is not None:
            shortest_ms = min(shortest_ms, limits.authentication_timeout_mills)
        return min(SCAN_SECONDS_MAX, shortest_ms / 4000)

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections)

    def _new_connection(self) -> Connection:
        return Connection(
            self._answer,
            on_made=self._on_made,
            on_lost=self._on_lost,
            gate=self._admission,
            sends=self._routes.sends,
        )

    def _on_made(self, connection: Connection) -> None:
        if not self._admission.made(connection):
            return
        self._connections[connection] = None
        limit_received(connection.transport, self._admission.limits.server_socket_rcv_buf_size)
        if self._stopping:
            connection.abort()

    def _on_lost(self, connection: Connection) -> None:
        self._admission.lost(connection)
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._slow_by_connection.pop(connection, None)
        if self._on_lost_hook is not None:
            self._on_lost_hook(connection)

    def _answer(self, connection: Connection, command: Command) -> None:
        routes = self._routes
        try:
            if routes.guard is not None:
                routes.guard(connection, command)
                connection.is_admitted = True
            hot = routes.hot.get(command.code)
            if hot is not None:
                hot(connection, command)
                return
        except Exception as error:
            self._reply_error(connection, command, error)
            return
        slow = routes.slow.get(command.code)
        if slow is None:
            connection.reply(
                command,
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                remark=f" request type {command.code} not supported",
            )
        elif self._is_full_of_slow(connection):
            reached = self._admission.refusals.reached(
                "maxSlowRequestsPerConnection", f"{OVERLOAD}one connection", connection.address
            )
            connection.reply(command, reached.code, remark=str(reached))
        else:
            self._start_slow(slow, connection, command)

    def _is_full_of_slow(self, connection: Connection) -> bool:
        under_way = self._slow_by_connection.get(connection, 0)
        return under_way >= self._admission.limits.max_slow_requests_per_connection

    def _start_slow(self, slow: Slow, connection: Connection, command: Command) -> None:
        counts = self._slow_by_connection
        counts[connection] = counts.get(connection, 0) + 1
        if not self._to_start:
            connection.loop.call_soon(self._start_some)
        self._to_start.append((slow, connection, command))

    def _start_some(self) -> None:
        for _ in range(min(SLOW_STARTS_PER_TURN, len(self._to_start))):
            slow, connection, command = self._to_start.popleft()
            self._background.spawn(self._run_slow(slow, connection, command))
        if self._to_start:
            asyncio.get_running_loop().call_soon(self._start_some)

    async def _run_slow(self, slow: Slow, connection: Connection, command: Command) -> None:
        began, code = connection.loop.time(), int(ResponseCode.SYSTEM_ERROR)
        try:
            answer = await slow(connection, command)
            code = ResponseCode.SUCCESS if answer is None else answer.code
        except Exception as error:
            self._reply_error(connection, command, error)
            code = getattr(error, "code", code)
            return
        finally:
            self._admission.took(command.code, code, connection.loop.time() - began)
            if connection in self._slow_by_connection:
                self._slow_by_connection[connection] -= 1
        if answer is not None:
            connection.reply(
                command, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body
            )

    def _reply_error(self, connection: Connection, command: Command, error: Exception) -> None:
        """Reply with the response code for an exception; the only place that maps them."""
        if isinstance(error, LimitReached) and not error.is_counted:
            self._admission.refusals.count(error.key, connection.address)
        if isinstance(error, GantryError):
            connection.reply(command, error.code, remark=str(error))
        else:
            log.exception(
                "code %d from %s failed", command.code, connection.address, exc_info=error
            )
            remark = f"{type(error).__name__}: {error}"
            connection.reply(command, ResponseCode.SYSTEM_ERROR, remark=remark)

    async def _close_late(self) -> None:
        """Close connections whose peer is silent, or too slow in what it began."""
        limits, guarded = self._admission.limits, self._routes.guard is not None
        now = asyncio.get_running_loop().time()
        for connection in self.connections:
            since, slow = connection.frame_since, connection.slow_reader
            if slow and now - connection.slow_since > limits.reader_timeout_mills / 1000:
                self._cut(connection, "readerTimeoutMills")
            elif since and now - since > limits.frame_timeout_mills / 1000:
                self._cut(connection, "frameTimeoutMills")
            elif (
                guarded
                and not connection.is_admitted
                and now - connection.made_at > limits.authentication_timeout_mills / 1000
            ):
                self._cut(connection, "authenticationTimeoutMills")
            elif now - connection.last_active > IDLE_SECONDS_MAX:
                log.info("%s idle for %d s, closed", connection.address, IDLE_SECONDS_MAX)
                connection.close()

    def _cut(self, connection: Connection, key: str) -> None:
        """Close at once: a peer that takes nothing would keep an orderly end waiting."""
        self._admission.refusals.count(key, connection.address)
        connection.abort()

    async def stop(self) -> None:
        """Stop reading requests, answer those accepted, then close."""
        self._stopping = True
        if self._listener is not None:
            await self._listener.close()
        for connection in self.connections:
            connection.stop_reading()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await asyncio.gather(*(each.all_answered() for each in self.connections))
        await self._background.close()
        for connection in self.connections:
            connection.close()
        await asyncio.sleep(0)
