"""A console that listens, on a thread of its own, and a small HTTP client for it.

def test_names(gantry: GantryCluster) -> None:
    with console(gantry) as site:
        assert site.api("GET", "/clusters") == {"clusters": ["test"]}
        assert "broker-a" in site.page("/c/test/overview")
"""

import asyncio
import http.client
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from gantrymq.console.serve import ConsoleServer
from gantrymq.console.settings import ClusterAddress, ConsoleSettings
from gantrymq.testing.threaded import GantryCluster

NAME = "test"
"""The name under which the console knows the cluster."""
SECONDS_MAX = 30.0

T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """What the console answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Site:
    """A console that runs, as a program or a browser without scripts sees it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.headers: dict[str, str] = {}
        """What goes with every request."""

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """One request; names of headers are written with underscores."""
        link = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=SECONDS_MAX)
        try:
            named = self.headers | headers
            sent = {name.replace("_", "-"): value for name, value in named.items()}
            link.request(method, path, body, sent)
            answer = link.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            link.close()

    def call(self, method: str, path: str, **question: object) -> Reply:
        """One call of the API; `path` is below /api/v1."""
        if method in ("POST", "PUT"):
            body = json.dumps(question).encode()
            return self.ask(method, f"/api/v1{path}", body, content_type="application/json")
        query = urlencode({key: _text(value) for key, value in question.items()})
        return self.ask(method, f"/api/v1{path}" + (f"?{query}" if query else ""))

    def api(self, method: str, path: str, **question: object) -> Any:
        """The answer of a call that has to succeed."""
        reply = self.call(method, path, **question)
        assert reply.status == 200, f"{method} {path}: {reply.status} {reply.text}"
        return reply.json()

    def page(self, path: str) -> str:
        """The text of a page that has to be there."""
        reply = self.ask("GET", path)
        assert reply.status == 200, f"{path}: {reply.status} {reply.text}"
        return reply.text

    def act(self, path: str, **fields: object) -> Reply:
        """Send a form; a list is a field that is there several times."""
        body = urlencode(fields, doseq=True).encode()
        return self.ask(
            "POST", path, body, content_type="application/x-www-form-urlencoded", origin=self.url
        )


def _text(value: object) -> object:
    """A value in an address: `true`, not Python's `True`."""
    return str(value).lower() if isinstance(value, bool) else value


@contextmanager
def console(
    *clusters: GantryCluster | str, data: Path | None = None, **settings: Any
) -> Iterator[Site]:
    """A console of these clusters or name servers; the first one is called `test`, then `test-1`.

    Without `data` its folder goes with it.
    """
    addresses = [each if isinstance(each, str) else each.namesrv for each in clusters]
    with tempfile.TemporaryDirectory(prefix="gantrymq-console-") as folder:
        named = tuple(
            ClusterAddress(f"{NAME}-{number}" if number else NAME, address)
            for number, address in enumerate(addresses)
        )
        running = _Running(
            ConsoleSettings(clusters=named, data=data or Path(folder), port=0, **settings)
        )
        try:
            yield Site(running.url)
        finally:
            running.close()


class _Running:
    """A console on a thread of its own."""

    url: str

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()
        assert self._ready.wait(SECONDS_MAX), "the console did not start in time"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with ConsoleServer(self._settings) as server:
            self.url = server.url
            self._ready.set()
            await self._stop.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS_MAX)
        if self._failure is not None:
            raise self._failure


def until(look: Callable[[], T], seconds: float = SECONDS_MAX) -> T:
    """What `look` returns once it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise TimeoutError("it did not come true in time")
