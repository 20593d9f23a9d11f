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

from gantrymq.base import upkeep
from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Listener, Network
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

IDLE_SECONDS_MAX: Final = 120.0
IDLE_SCAN_SECONDS: Final = 10.0
SLOW_INFLIGHT_MAX: Final = 256
"""Slow requests of one connection under way at once; more are refused, not queued."""
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
    ) -> None:
        self.hot = dict(hot or {})
        self.slow = dict(slow or {})
        self.guard = guard
        """Sees the code, the raw fields and the body of every request first; raises to refuse."""
        clash = self.hot.keys() & self.slow.keys()
        assert not clash, f"codes in both tables: {sorted(clash)}"

    def without(self, *codes: int) -> "HandlerTable":
        """The same table without some codes (a broker's fast port takes no pulls)."""
        return HandlerTable(
            {c: h for c, h in self.hot.items() if c not in codes},
            {c: h for c, h in self.slow.items() if c not in codes},
            self.guard,
        )


class Server:
    """One listening port with its connections."""

    def __init__(
        self,
        routes: HandlerTable,
        network: Network,
        *,
        on_lost: Callable[[Connection], None] | None = None,
    ) -> None:
        self._routes, self._network = routes, network
        self._on_lost_hook = on_lost
        self._connections: dict[Connection, None] = {}
        self._background = Background("a server")
        self._slow_by_connection: dict[Connection, int] = {}
        self._to_start: deque[tuple[Slow, Connection, Command]] = deque()
        self._listener: Listener | None = None
        self._stopping = False

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._listener = await self._network.listen(host, port, self._new_connection)
        self._background.spawn(self._close_idle())
        return self._listener.port

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections)

    def _new_connection(self) -> Connection:
        return Connection(self._answer, on_made=self._on_made, on_lost=self._on_lost)

    def _on_made(self, connection: Connection) -> None:
        self._connections[connection] = None
        if self._stopping:
            connection.abort()

    def _on_lost(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._slow_by_connection.pop(connection, None)
        if self._on_lost_hook is not None:
            self._on_lost_hook(connection)

    def _answer(self, connection: Connection, command: Command) -> None:
        routes = self._routes
        try:
            if routes.guard is not None:
                routes.guard(connection, command)
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
        elif self._slow_by_connection.get(connection, 0) >= SLOW_INFLIGHT_MAX:
            remark = f"[OVERLOAD]system busy: over {SLOW_INFLIGHT_MAX} requests of this connection"
            connection.reply(command, ResponseCode.SYSTEM_BUSY, remark=remark)
        else:
            self._start_slow(slow, connection, command)

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
        try:
            answer = await slow(connection, command)
        except Exception as error:
            self._reply_error(connection, command, error)
            return
        finally:
            if connection in self._slow_by_connection:
                self._slow_by_connection[connection] -= 1
        if answer is not None:
            connection.reply(
                command, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body
            )

    def _reply_error(self, connection: Connection, command: Command, error: Exception) -> None:
        """Reply with the response code for an exception; the only place that maps them."""
        if isinstance(error, GantryError):
            connection.reply(command, error.code, remark=str(error))
        else:
            log.exception(
                "code %d from %s failed", command.code, connection.address, exc_info=error
            )
            remark = f"{type(error).__name__}: {error}"
            connection.reply(command, ResponseCode.SYSTEM_ERROR, remark=remark)

    async def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await upkeep.pause(IDLE_SCAN_SECONDS)
            oldest = loop.time() - IDLE_SECONDS_MAX
            for connection in self.connections:
                if connection.last_active < oldest:
                    log.info("%s idle for %d s, closed", connection.address, IDLE_SECONDS_MAX)
                    connection.close()

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
