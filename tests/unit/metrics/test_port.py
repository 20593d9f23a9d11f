"""The metrics port: what it answers, what it refuses, and that nobody can hold it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from gantrymq.base.network import TcpNetwork
from gantrymq.metrics import http
from gantrymq.metrics.http import BadHttp, MetricsPort, parse_head

HOST = "127.0.0.1"
PIECE = b"x" * 100_000


async def page() -> Sequence[bytes]:
    return [b"up 1\n"]


async def large() -> Sequence[bytes]:
    return [PIECE] * 100


async def failing() -> Sequence[bytes]:
    raise RuntimeError("no")


@asynccontextmanager
async def port(
    shown: Callable[[], Awaitable[Sequence[bytes]]] = page, allows: http.Allows | None = None
) -> AsyncIterator[int]:
    served = MetricsPort(shown, "text/plain; version=0.0.4", b"see /metrics\n", allows)
    try:
        yield await served.start(TcpNetwork(), HOST, 0)
    finally:
        await served.close()


async def said(number: int, *requests: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """The answers on one connection, until it is closed or all are answered."""
    reader, writer = await asyncio.open_connection(HOST, number)
    found = []
    for request in requests:
        writer.write(request)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            break
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        size = 0 if request.startswith(b"HEAD") else int(headers["Content-Length"])
        found.append((int(first.split()[1]), headers, await reader.readexactly(size)))
    writer.close()
    return found


GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_scraper_reads_again_and_again_on_one_connection() -> None:
    """With the type that Prometheus expects; a query behind the path does not matter."""

    async def work() -> None:
        async with port() as number:
            for status, headers, body in await said(
                number, GET, GET.replace(b"ics ", b"ics?name=up "), GET
            ):
                assert (200, b"up 1\n") == (status, body)
                assert "text/plain; version=0.0.4" == headers["Content-Type"]
                assert "keep-alive" == headers["Connection"]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 200),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 400),
        (b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /metrics HTTP/2\r\n\r\n", 505),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 431),
    ],
    ids=range(14),
)
def test_every_request_has_an_answer(request_bytes: bytes, status: int) -> None:
    """One that is not well formed is the last one of its connection."""

    async def work() -> None:
        async with port() as number:
            answers = await said(number, request_bytes, GET)
            assert status == answers[0][0]
            if status in (400, 431, 505) or b"HTTP/1.0" in request_bytes:
                assert 1 == len(answers)

    asyncio.run(work())


def test_a_page_of_megabytes_arrives_whole() -> None:
    """Piece by piece, as fast as the reader takes it."""

    async def work() -> None:
        async with port(large) as number:
            ((status, _, body),) = await said(number, GET)
            assert (200, PIECE * 100) == (status, body)

    asyncio.run(work())


def test_a_failure_is_an_answer() -> None:
    """The port goes on."""

    async def work() -> None:
        async with port(failing) as number:
            assert [500, 500] == [status for status, _, _ in await said(number, GET, GET)]

    asyncio.run(work())


def test_silent_connections_make_room_for_others() -> None:
    """More than may be open and ask nothing; a scraper is served all the same."""

    async def work() -> None:
        async with port() as number:
            silent = [
                await asyncio.open_connection(HOST, number) for _ in range(http.CONNECTIONS_MAX + 5)
            ]
            ((status, _, _),) = await said(number, GET)
            assert 200 == status
            assert b"" == await silent[0][0].read()
            for _, writer in silent:
                writer.close()

    asyncio.run(work())


def test_whoever_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the middle of a request."""
    monkeypatch.setattr(http, "REQUEST_SECONDS_MAX", 0.05)

    async def work() -> None:
        async with port() as number:
            reader, writer = await asyncio.open_connection(HOST, number)
            writer.write(b"GET /metr")
            async with asyncio.timeout(5):
                with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
            writer.close()

    asyncio.run(work())


def test_only_who_may_read_reads() -> None:
    """Others are told how to say who they are."""

    async def work() -> None:
        async with port(allows=lambda address, said: said == "Basic eA==") as number:
            ((status, headers, body),) = await said(number, GET)
            assert (401, "Basic") == (status, headers["WWW-Authenticate"].split()[0])
            assert b"up" not in body
            allowed = GET.replace(b"Host: a", b"Authorization: Basic eA==")
            assert [200] == [status for status, _, _ in await said(number, allowed)]

    asyncio.run(work())


def test_a_head_is_read_as_it_is_written() -> None:
    """Names of headers in any case, spaces around values."""
    head = parse_head(b"GET /a?b HTTP/1.1\r\nCONNECTION:  Close \r\n\r\n")

    assert ("GET", "/a", {"connection": "Close"}, False) == (
        head.method, head.path, head.headers, head.keeps_open,
    )  # fmt: skip
    with pytest.raises(BadHttp):
        parse_head(b"\r\n\r\n")
