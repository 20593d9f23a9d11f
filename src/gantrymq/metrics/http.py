"""A port that answers GET /metrics and GET / over HTTP/1.1, and nothing else.

Everything has a limit: connections, bytes of a request, and seconds for a request, for an answer
and between two of them. A request that is not well formed is answered and its connection closed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.network import Listener, Network

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
HEAD_BYTES_MAX: Final = 8 * 1024
REQUEST_SECONDS_MAX: Final = 10.0
"""From the first byte that is waited for to the end of a request's head; also of an idle one."""
IDLE_SECONDS_MAX: Final = 75.0
"""Between two requests: Prometheus asks every 15 s to a minute, on one connection."""
ANSWER_SECONDS_MAX: Final = 60.0
_REASONS: Final = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    505: "HTTP Version Not Supported",
}  # fmt: skip
_PLAIN: Final = "text/plain; charset=utf-8"

Page = Callable[[], Awaitable[Sequence[bytes]]]
Allows = Callable[[str, str | None], bool]
"""Whether an IP address may read, given its header Authorization."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The head of a request."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    """By names in small letters; Authorization is among them."""
    keeps_open: bool


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; its body may come in many pieces."""

    status: int
    body: Sequence[bytes] = ()
    content_type: str = _PLAIN
    headers: dict[str, str] = field(default_factory=dict)


class BadHttp(Exception):
    """A request that is answered with an error and the end of the connection."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def parse_head(head: bytes) -> HttpRequest:
    """The request that a head says; raises BadHttp. A request with a body is refused."""
    try:
        first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    except UnicodeDecodeError:
        raise BadHttp(400, "not ASCII") from None
    words = first.split(" ")
    if len(words) != 3 or not words[0].isalpha() or not words[2].startswith("HTTP/"):
        raise BadHttp(400, "no request line")
    method, target, protocol = words
    if protocol not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadHttp(505, "write HTTP/1.1")
    headers = {}
    for line in lines:
        name, mark, value = line.partition(":")
        if not mark or not name or name != name.strip():
            raise BadHttp(400, "a header without a name")
        headers[name.lower()] = value.strip()
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise BadHttp(400, "a request with a body")
    wish = headers.get("connection", "").lower()
    keeps = wish != "close" if protocol == "HTTP/1.1" else wish == "keep-alive"
    return HttpRequest(method, target.partition("?")[0], headers, keeps)


class MetricsPort:
    """The port and its connections."""

    def __init__(
        self, page: Page, content_type: str, index: bytes, allows: Allows | None = None
    ) -> None:
        """`index` is the answer to GET /; without `allows` everybody may read."""
        self._page, self._type, self._index, self._allows = page, content_type, index, allows
        self._tasks = Background("the metrics port")
        self._silent: dict[asyncio.StreamWriter, None] = {}
        """Connections that have not asked yet, or not again; the one that did longest first."""
        self._listener: Listener | None = None

    async def start(self, network: Network, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._listener = await network.listen(host, port, self._protocol)
        return self._listener.port

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._tasks.close()

    def _protocol(self) -> asyncio.Protocol:
        reader = asyncio.StreamReader(limit=HEAD_BYTES_MAX)
        return asyncio.StreamReaderProtocol(reader, self._connected)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTIONS_MAX:
            # Whoever holds connections without asking must not shut others out.
            longest = next(iter(self._silent), writer)
            longest.transport.abort()
            if longest is writer:
                return
            del self._silent[longest]
        self._tasks.spawn(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("",))[0])
        writer.transport.set_write_buffer_limits(high=0)  # so that drain waits for all of it
        seconds = REQUEST_SECONDS_MAX
        try:
            while await self._answer_next(reader, writer, address, seconds):
                seconds = IDLE_SECONDS_MAX
            writer.close()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # gone, silent or too slow
        finally:
            self._silent.pop(writer, None)
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer_next(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: str,
        seconds: float,
    ) -> bool:
        """Read one request and answer it; False if the connection ends with it."""
        head, self._silent[writer] = b"", None
        try:
            async with asyncio.timeout(seconds):
                head = await reader.readuntil(b"\r\n\r\n")
            self._silent.pop(writer, None)
            request = parse_head(head)
            answer, keeps = await self._answer(request, address), request.keeps_open
        except asyncio.LimitOverrunError:
            answer, keeps = _error(431, f"more than {HEAD_BYTES_MAX} bytes"), False
        except BadHttp as error:
            answer, keeps = _error(error.status, str(error)), False
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            await _write(writer, answer, keeps_open=keeps, head_only=_is_head(head, answer))
        return keeps

    async def _answer(self, request: HttpRequest, address: str) -> HttpAnswer:
        if request.method not in ("GET", "HEAD"):
            return _error(405, "GET only", {"Allow": "GET, HEAD"})
        if request.path not in ("/", "/metrics"):
            return _error(404, "there is /metrics")
        allows, said = self._allows, request.headers.get("authorization")
        if allows is not None and not allows(address, said):
            wanted = {"WWW-Authenticate": 'Basic realm="gantrymq", charset="UTF-8"'}
            return _error(401, "an access key and its secret key are needed", wanted)
        if request.path == "/":
            return HttpAnswer(200, [self._index])
        try:
            return HttpAnswer(200, await self._page(), self._type)
        except Exception:
            log.exception("metrics could not be collected")
            return _error(500, "see the log")


def _is_head(head: bytes, answer: HttpAnswer) -> bool:
    return head.startswith(b"HEAD ") and answer.status == 200


def _error(status: int, why: str, headers: dict[str, str] | None = None) -> HttpAnswer:
    return HttpAnswer(status, [f"{why}\n".encode()], _PLAIN, headers or {})


async def _write(
    writer: asyncio.StreamWriter, answer: HttpAnswer, *, keeps_open: bool, head_only: bool
) -> None:
    """Write an answer piece by piece, as fast as the peer takes it."""
    lines = {
        "Content-Type": answer.content_type,
        "Content-Length": str(sum(map(len, answer.body))),
        "Connection": "keep-alive" if keeps_open else "close",
        **answer.headers,
    }
    head = f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"{head}\r\n".encode())
    if not head_only:
        for piece in answer.body:
            writer.write(piece)
            await writer.drain()
    await writer.drain()
