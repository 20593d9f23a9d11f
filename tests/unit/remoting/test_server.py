"""The server's promises: one bad handler, one slow reader, one idle peer, one clean stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from gantrymq.base.errors import GantryError
from gantrymq.base.network import TcpNetwork
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import ConnectionLimits
from gantrymq.remoting.pending_call import CallTimeout, ConnectionLost
from gantrymq.remoting.server import IDLE_SECONDS_MAX, HandlerTable, Server
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"


class Refused(GantryError):
    code = 16


def echo(connection: Connection, command: Command) -> None:
    connection.reply(command, body=command.body)


def broken(connection: Connection, command: Command) -> None:
    raise KeyError("a bug")


SLOW_MAX = ConnectionLimits().max_slow_requests_per_connection


async def refusing(connection: Connection, command: Command) -> Command:
    raise Refused("not you")


class Slow:
    """A slow handler that waits until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.started = 0

    async def handle(self, connection: Connection, command: Command) -> Command:
        self.started += 1
        await self.go.wait()
        return response(command, body=b"done")


def with_server(work: Callable[[Server, Connection, Slow], Awaitable[None]]) -> None:
    """A server and one connection to it, in virtual time."""

    async def main() -> None:
        network, slow = MemoryNetwork(), Slow()
        server = Server(HandlerTable({1: echo, 2: broken}, {3: refusing, 4: slow.handle}), network)
        port = await server.start(HOST, 0)
        connection = await network.connect(HOST, port, Connection, 3)
        await work(server, connection, slow)
        slow.go.set()
        await server.stop()

    simulate(main)


class TestAnswers:
    def test_an_error_in_one_handler_answers_that_request_only(self) -> None:
        """
        A bug is code 1, a refusal its own code, and the connection goes on.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            answers = await asyncio.gather(
                *(connection.call(Command(code=code, body=b"x"), 5) for code in (1, 2, 3, 1))
            )
            assert [0, 1, 16, 0] == [answer.code for answer in answers]
            assert "not you" == answers[2].remark

        with_server(work)

    def test_the_guard_sees_every_request_first(self) -> None:
        """
        With the raw fields and the body; what it raises is the answer.
        """
        seen = []

        def guard(connection: Connection, command: Command) -> None:
            seen.append((command.code, command.ext, command.body))
            if command.code == 4:
                raise Refused("no")

        async def main() -> None:
            network = MemoryNetwork()
            server = Server(HandlerTable({1: echo}, {4: refusing}, guard), network)
            port = await server.start(HOST, 0)
            connection = await network.connect(HOST, port, Connection, 3)
            await connection.call(Command(code=1, ext={"Signature": "s"}, body=b"x"), 5)
            assert 16 == (await connection.call(Command(code=4), 5)).code
            await server.stop()

        simulate(main)
        assert [(1, {"Signature": "s"}, b"x"), (4, {}, b"")] == seen

    def test_too_many_slow_requests_are_refused_not_queued(self) -> None:
        """
        SYSTEM_BUSY names the limit.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            calls = [connection.submit(Command(code=4), 30) for _ in range(SLOW_MAX + 1)]
            answer = await calls[-1]
            assert (2, True) == (answer.code, str(SLOW_MAX) in (answer.remark or ""))
            slow.go.set()
            assert {0} == {(await call).code for call in calls[:-1]}

        with_server(work)


class TestCalls:
    def test_a_call_without_an_answer_times_out_alone(self) -> None:
        """
        The connection stays; a late answer is dropped.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            with pytest.raises(CallTimeout):
                await connection.call(Command(code=4), 0.5)
            slow.go.set()
            assert b"x" == (await connection.call(Command(code=1, body=b"x"), 5)).body

        with_server(work)

    def test_a_lost_connection_fails_its_calls_at_once(self) -> None:
        """
        Nobody waits for the time-out.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            call = connection.submit(Command(code=4), 30)
            await asyncio.sleep(0.01)
            began = asyncio.get_running_loop().time()
            connection.transport.abort()
            with pytest.raises(ConnectionLost):
                await call
            assert asyncio.get_running_loop().time() - began < 1

        with_server(work)

    def test_the_server_calls_its_clients_too(self) -> None:
        """
        Over the connection they opened.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            await connection.call(Command(code=1), 5)
            (to_client,) = server.connections
            answer = await to_client.call(Command(code=307), 5)
            assert 3 == answer.code

        with_server(work)


class TestLife:
    def test_an_idle_peer_is_closed(self) -> None:
        """
        After 120 s without a byte in either direction.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            await connection.call(Command(code=1), 5)
            await asyncio.sleep(IDLE_SECONDS_MAX - 5)
            assert connection.open
            await asyncio.sleep(20)
            assert not connection.open

        with_server(work)

    def test_a_clean_stop_answers_what_was_accepted(self) -> None:
        """
        The slow request under way still gets its answer; a new connection does not.
        """

        async def work(server: Server, connection: Connection, slow: Slow) -> None:
            call = connection.submit(Command(code=4), 30)
            while not slow.started:
                await asyncio.sleep(0.001)
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(0.1)
            slow.go.set()
            assert b"done" == (await call).body
            await stopping

        with_server(work)

    def test_a_reader_that_does_not_read_is_not_served_into_memory(self) -> None:
        """
        Over real sockets: the server stops reading from it, and serves others meanwhile.
        """

        async def main() -> None:
            server = Server(HandlerTable({1: echo}), TcpNetwork())
            port = await server.start(HOST, 0)
            _, writer = await asyncio.open_connection(HOST, port, limit=1024)
            from gantrymq.protocol.command import encode

            frame = encode(Command(code=1, opaque=1, body=b"x" * 1_000_000))
            for _ in range(64):
                writer.write(frame)
            while not any(connection.slow_reader for connection in server.connections):
                await asyncio.sleep(0.01)
            (slow,) = server.connections
            await asyncio.sleep(0.1)
            assert slow.transport.get_write_buffer_size() < 64 * 1_000_000
            other = await TcpNetwork().connect(HOST, port, Connection, 3)
            assert b"y" == (await other.call(Command(code=1, body=b"y"), 5)).body
            writer.transport.abort()
            await server.stop()

        asyncio.run(asyncio.wait_for(main(), 20))


def test_only_who_answers_requests_is_warned_about_holding_the_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A client that takes in a large answer keeps nobody waiting but itself.
    """
    monkeypatch.setattr("gantrymq.remoting.connection.TURN_SECONDS_LOUD", -1.0)

    async def work(server: Server, connection: Connection, slow: Slow) -> None:
        await connection.call(Command(code=1, body=b"x"), 3)

    with caplog.at_level(logging.DEBUG, "gantrymq.remoting"):
        with_server(work)

    held = [entry for entry in caplog.records if "held the loop" in entry.message]
    assert [[1]] == [entry.args[1] for entry in held if entry.levelno == logging.WARNING]
    assert [] != [entry for entry in held if entry.levelno == logging.DEBUG]
