"""The connections of one client, by address, each opened when first needed."""

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from gantrymq.base.network import ConnectFailed, Network, split_address
from gantrymq.client.core.shared_work import SharedWork
from gantrymq.kernel import cut_stored
from gantrymq.model import SendResult
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.pending_call import PendingCall

SILENT_CALLS_MAX: Final = 2
"""Calls in a row without an answer after which a connection counts as dead and is made anew."""


class StoredAnswers(NamedTuple):
    """What becomes of answers that say no more than that a message is stored."""

    kind: type
    """The class of the calls that they answer."""
    settle: Callable[["BrokerConnection", list[tuple[Any, SendResult]]], None]
    """Gets calls with their results, those of one read together."""


class BrokerConnection(Connection):
    """A connection whose user can wait until written bytes have left."""

    stored_answers: StoredAnswers | None = None
    """None until there are calls for it."""
    _until_drained: asyncio.Future[None] | None = None

    def _take_turn(self, began: float, data: bytes = b"", *, is_called: bool = False) -> None:
        """Take plain answers to sends in one go, and all else from the first that is not plain."""
        answers = self.stored_answers
        if answers is not None and self._calls:
            found, used = cut_stored(data or self._buffer, self._calls, answers.kind)
            if found:
                if data:
                    data = data[used:]
                else:
                    del self._buffer[:used]
                answers.settle(self, found)
        super()._take_turn(began, data, is_called=is_called)

    def numbers(self, count: int) -> list[int]:
        """Numbers for so many requests whose frames the caller builds itself."""
        return [number & 0x7FFF_FFFF for number in islice(self._opaques, count)]

    def call_all(
        self, numbers: Sequence[int], calls: Sequence[PendingCall], frames: Sequence[bytes]
    ) -> None:
        """Register calls that have one deadline, and let their frames leave now.

        Only while the connection is open.
        """
        self._calls.update(zip(numbers, calls, strict=True))
        if calls[0].deadline < self._sweep_at:
            self._schedule_sweep(calls[0].deadline)
        self._out += frames
        self._flush()

    async def drained(self) -> None:
        """Wait while the write buffer is above its limit."""
        if self.slow_reader and self.open:
            if self._until_drained is None:
                self._until_drained = self.loop.create_future()
            await asyncio.shield(self._until_drained)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        if self._until_drained is not None:
            self._until_drained.set_result(None)
            self._until_drained = None


class Connections:
    """One connection an address. Callers of the same address share one connect.

    `advice` tells what follows the text of a failed connect to an address.
    """

    def __init__(
        self,
        network: Network,
        answer: Callable[[Connection, Command], None],
        connect_timeout: float,
        on_open: Callable[[str], None] = lambda address: None,
        advice: Callable[[str], str] = lambda address: "",
    ) -> None:
        self._network, self._answer, self._connect_timeout = network, answer, connect_timeout
        self._on_open, self._advice = on_open, advice
        self._open: dict[str, BrokerConnection] = {}
        self._connecting: SharedWork[BrokerConnection] = SharedWork("the connections of a client")
        self.silent: dict[Connection, int] = {}
        """Calls in a row that each connection left without an answer."""
        self._closed = False

    def ready(self, address: str) -> BrokerConnection | None:
        """The connection if it is open; else None."""
        connection = self._open.get(address)
        return connection if connection is not None and connection.open else None

    async def get(self, address: str, timeout: float | None = None) -> BrokerConnection:
        """The connection, opened if needed; raises ConnectFailed."""
        connection = self.ready(address)
        if connection is not None:
            return connection
        return await self._connecting.run(address, lambda: self._connect(address, timeout))

    async def _connect(self, address: str, timeout: float | None) -> BrokerConnection:
        host, port = split_address(address)
        limit = min(self._connect_timeout, timeout or self._connect_timeout)

        def lost(connection: Connection) -> None:
            self.silent.pop(connection, None)
            if self._open.get(address) is connection:
                del self._open[address]

        def make() -> BrokerConnection:
            return BrokerConnection(self._answer, on_lost=lost)

        try:
            connection = await self._network.connect(host, port, make, limit)
        except ConnectFailed as error:
            raise ConnectFailed(f"{error}{self._advice(address)}") from error
        if self._closed:
            connection.abort()
        self._open[address] = connection
        self._on_open(address)
        return connection

    def heard(self, connection: Connection) -> None:
        """Note that the peer answered."""
        self.silent.pop(connection, None)

    def unheard(self, connection: Connection) -> None:
        """Count a call without an answer; after SILENT_CALLS_MAX in a row close the connection."""
        silent = self.silent.get(connection, 0) + 1
        self.silent[connection] = silent
        if silent >= SILENT_CALLS_MAX:
            # Remove it from the table first: `lost` runs only in the loop's next turn.
            for address in [a for a, known in self._open.items() if known is connection]:
                del self._open[address]
            connection.abort()

    def forget(self, address: str) -> None:
        """Close the connection to a broker that left every route."""
        connection = self._open.pop(address, None)
        if connection is not None:
            connection.close()

    @property
    def addresses(self) -> list[str]:
        return list(self._open)

    def let_go(self) -> None:
        """In a forked child: release the parent's sockets without sending anything.

        The descriptors are pointed to /dev/null instead of closed, because the socket objects still
        exist and would later close a descriptor with the same number.
        """
        nowhere = os.open(os.devnull, os.O_RDWR)
        for connection in self._open.values():
            socket = connection.transport.get_extra_info("socket")
            if connection.open and socket is not None and socket.fileno() >= 0:
                os.dup2(nowhere, socket.fileno(), inheritable=False)
        os.close(nowhere)

    async def close(self) -> None:
        """Close all connections after their written bytes have left."""
        self._closed = True
        await self._connecting.close()
        for connection in list(self._open.values()):
            connection.close()
        self._open.clear()
        await asyncio.sleep(0)
