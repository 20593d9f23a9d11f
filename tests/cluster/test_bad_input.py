"""Garbage, truncated, oversized, unknown: each is answered or closed, and nothing else breaks."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from gantrymq.base.network import TcpNetwork
from gantrymq.protocol.command import Command, encode
from gantrymq.remoting.connection import Connection
from gantrymq.testing.cluster import HOST, Cluster


def run(work: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Cluster() as cluster:
            await work(cluster)

    asyncio.run(main())


async def raw(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(HOST, port)


async def call(port: int, command: Command) -> Command:
    """One request on a connection of its own."""
    connection = await TcpNetwork().connect(HOST, port, Connection, 3)
    try:
        return await connection.call(command, 5)
    finally:
        connection.close()


def ports(cluster: Cluster) -> list[int]:
    return [int(cluster.namesrv.rpartition(":")[2]), cluster.broker().config.listen_port]


async def still_serves(port: int) -> bool:
    answer = await call(port, Command(code=105 if port % 2 else 106))
    return answer.is_response


def send_header(topic: str, **more: str) -> dict[str, str]:
    return {
        "a": "p",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1",
        "h": "0",
        **more,
    }


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    struct.pack(">II", 0x00FF_FFFF + 5, 0),
    struct.pack(">II", 8, 100) + b"x" * 4,
    struct.pack(">II", 6, 2) + b"{}",
    struct.pack(">II", 6, 0x07000002) + b"{}",
    struct.pack(">II", 10, 0x01000006) + b"\x00" * 6,
]


class TestGarbage:
    @pytest.mark.parametrize("data", GARBAGE, ids=lambda data: data[:10].hex())
    def test_bytes_that_are_no_frame_close_that_connection_alone(self, data: bytes) -> None:
        """
        The server hangs up on the sender and goes on serving everybody else.
        """

        async def work(cluster: Cluster) -> None:
            for port in ports(cluster):
                reader, writer = await raw(port)
                writer.write(data)
                assert b"" == await reader.read()
                writer.close()
                assert await still_serves(port)

        run(work)

    def test_requests_before_a_bad_frame_are_answered(self) -> None:
        """
        Closing does not swallow what was accepted.
        """

        async def work(cluster: Cluster) -> None:
            reader, writer = await raw(ports(cluster)[0])
            writer.write(encode(Command(code=106, opaque=5)) + b"\xff" * 8)
            answer = await reader.read()
            assert b'"opaque":5' in answer
            writer.close()

        run(work)

    def test_a_slow_frame_is_put_together(self) -> None:
        """
        One byte at a time is slow, not wrong.
        """

        async def work(cluster: Cluster) -> None:
            reader, writer = await raw(ports(cluster)[0])
            for byte in encode(Command(code=106, opaque=5)):
                writer.write(bytes([byte]))
                await writer.drain()
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            assert b'"opaque":5' in await reader.readexactly(size)
            writer.close()

        run(work)


class TestRefusals:
    def test_an_unknown_code_is_answered_with_3(self) -> None:
        """
        In RocketMQ's words, by both servers.
        """

        async def work(cluster: Cluster) -> None:
            for port in ports(cluster):
                answer = await call(port, Command(code=9999))
                assert (3, " request type 9999 not supported") == (answer.code, answer.remark)

        run(work)

    @pytest.mark.parametrize(
        "code, ext",
        [
            (11, {"consumerGroup": "g", "topic": "T", "queueId": "x", "queueOffset": "0"}),
            (11, {}),
            (14, {"consumerGroup": "g"}),
            (30, {"topic": "T"}),
            (310, {"b": "T"}),
            (310, send_header("T", e="one")),
            (10, {"topic": "T"}),
            (17, {"topic": "T", "readQueueNums": "-1"}),
            (17, {"topic": "T", "readQueueNums": "1000000"}),
        ],
    )
    def test_wrong_or_missing_fields_are_an_error_answer(
        self, code: int, ext: dict[str, str]
    ) -> None:
        """
        Code 1 with a remark that names the trouble.
        """

        async def work(cluster: Cluster) -> None:
            answer = await call(cluster.broker().config.listen_port, Command(code=code, ext=ext))
            assert 1 == answer.code
            assert answer.remark

        run(work)

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"[]", b'{"clientID":"c","consumerDataSet":7}', b"\xff\xff"]
    )
    def test_a_body_that_is_no_heartbeat_is_an_error_answer(self, body: bytes) -> None:
        """
        The connection lives on.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            connection = await TcpNetwork().connect(HOST, port, Connection, 3)
            assert 1 == (await connection.call(Command(code=34, body=body), 5)).code
            assert 0 == (await connection.call(Command(code=21), 5)).code
            connection.close()

        run(work)


class TestNames:
    @pytest.mark.parametrize(
        "topic", ["", " ", "a/b", "../../etc", "a b", "t" * 128, "a\x00b", "täg", "a.b"]
    )
    def test_a_bad_topic_name_is_refused_everywhere(self, topic: str) -> None:
        """
        Sending, creating, deleting: none of them makes a folder of it.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            before = set(cluster.broker().registry.topics.table)
            for code, ext in (
                (310, send_header(topic)),
                (17, {"topic": topic, "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}),
                (215, {"topic": topic}),
            ):
                answer = await call(port, Command(code=code, ext=ext, body=b"x"))
                assert 1 == answer.code, (code, answer.remark)
                assert answer.remark
            assert before == set(cluster.broker().registry.topics.table)

        run(work)

    @pytest.mark.parametrize(
        "topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "SELF_TEST_TOPIC"]
    )
    def test_nobody_sends_to_the_systems_own_topics(self, topic: str) -> None:
        """
        NO_PERMISSION, as RocketMQ answers.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            answer = await call(port, Command(code=310, ext=send_header(topic), body=b"x"))
            assert 16 == answer.code

        run(work)


class TestSizes:
    def test_a_body_over_the_limit_is_refused_by_the_broker(self) -> None:
        """
        MESSAGE_ILLEGAL, and nothing is stored.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            big = Command(code=310, ext=send_header("T"), body=b"x" * (64 * 1024 + 1))
            answer = await call(port, big)
            assert 13 == answer.code
            assert "65536 is the most" in (answer.remark or "")
            assert 0 == cluster.broker().store.queues.max_offset("T", 0)

        async def main() -> None:
            async with asyncio.timeout(30), Cluster(max_message_size=64 * 1024) as cluster:
                await work(cluster)

        asyncio.run(main())

    def test_properties_over_32767_bytes_are_refused(self) -> None:
        """
        Their length has 16 bits, one of them the sign.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            ext = send_header("T", i="k\x01" + "v" * 33_000 + "\x02")
            answer = await call(port, Command(code=310, ext=ext, body=b"x"))
            assert 13 == answer.code

        run(work)

    def test_a_queue_that_does_not_exist_is_refused(self) -> None:
        """
        The remark names the queue.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            answer = await call(port, Command(code=310, ext=send_header("T", e="99"), body=b"x"))
            assert 1 == answer.code
            assert "queueId[99] is illegal" in (answer.remark or "")

        run(work)

    def test_half_of_a_batch_is_no_batch(self) -> None:
        """
        A batch that does not add up is refused whole.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            ext = send_header("T", m="true")
            answer = await call(
                port, Command(code=320, ext=ext, body=b"\x00\x00\x00\x32" + bytes(10))
            )
            assert answer.code in (1, 13)
            assert 0 == cluster.broker().store.queues.max_offset("T", 0)

        run(work)

    def test_half_messages_with_endless_numbers_are_answered(self) -> None:
        """
        Properties come from whoever wrote them; what is no sensible number counts as none.
        """

        async def work(cluster: Cluster) -> None:
            port = cluster.broker().config.listen_port
            for name in ("CHECK_IMMUNITY_TIME_IN_SECONDS", "TRANSACTION_CHECK_TIMES"):
                found = f"{name}\x01{'9' * 5000}\x02PGROUP\x01p\x02TRAN_MSG\x01true\x02"
                ext = send_header("T", f="4", i=found)
                answer = await call(port, Command(code=310, ext=ext, body=b"x"))
                assert 0 == answer.code, answer.remark

        run(work)
