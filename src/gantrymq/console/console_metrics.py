"""The console's own metrics at /metrics, for Prometheus: its process, its requests and jobs."""

import asyncio
from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gantrymq.base.histogram import Histogram
from gantrymq.base.telemetry_settings import TelemetrySettings
from gantrymq.console.api.ask import Parts
from gantrymq.console.api.endpoint import PREFIX
from gantrymq.metrics import table
from gantrymq.metrics.metric import Samples
from gantrymq.metrics.process import ProcessMetrics
from gantrymq.metrics.scrape import MetricsSource
from gantrymq.metrics.text import CONTENT_TYPE

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ConsoleMetrics:
    """What the console counts of itself, and the page that shows it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._times: dict[tuple[str, str], Histogram] = {}
        self._process = ProcessMetrics(lambda: "CONSOLE", parts.clock.now_ms())
        settings = parts.settings
        identity = {
            "cluster": "",
            "node_type": "console",
            "node_id": f"{settings.host}:{settings.port}",
        }
        collectors = (self._process.collect, self.collect)
        self._source = MetricsSource(TelemetrySettings(), identity, lambda: collectors)

    def start(self) -> None:
        """Watch the event loop from now on."""
        self._process.loop_lag.start()

    def stop(self) -> None:
        self._process.loop_lag.stop()

    def took(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        kind = (
            "api" if path.startswith(PREFIX) else "file" if path.startswith("/static") else "page"
        )
        key = kind, f"{status // 100}xx"
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = Histogram(BOUNDS)
        times.observe(seconds)

    async def collect(self) -> Samples:
        yield table.CONSOLE_REQUESTS, [(key, times.shown) for key, times in self._times.items()]
        states = Counter(job.state.value for job in self._parts.jobs.all)
        yield table.CONSOLE_JOBS, [((state,), count) for state, count in states.items()]
        names, watch = self._parts.clusters.names, self._parts.watch
        yield table.CONSOLE_CLUSTERS, [((name,), int(watch.is_up(name))) for name in names]

    async def show(self, request: Request) -> Response:
        """The page for Prometheus."""
        return Response(b"".join(await self._source.text()), media_type=CONTENT_TYPE)


class MeasuredRequests:
    """An ASGI application whose requests are counted."""

    def __init__(self, app: ASGIApp, metrics: ConsoleMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        began, status = loop.time(), 500

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A stream that goes on for hours is answered when it begins.
                self._metrics.took(scope["path"], status, loop.time() - began)
            await send(message)

        await self._app(scope, receive, send_counted)
