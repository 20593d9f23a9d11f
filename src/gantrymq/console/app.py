"""Puts the console together: API, pages, files for the browser, and who may come in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.console.access.audit import AuditTrail
from gantrymq.console.access.gate import METRICS_PATH, LoginGate
from gantrymq.console.access.login import Login
from gantrymq.console.access.safety import SafeRequests
from gantrymq.console.access.sessions import Session
from gantrymq.console.access.user import NOBODY
from gantrymq.console.api.all import ENDPOINTS
from gantrymq.console.api.ask import Ask, Parts
from gantrymq.console.api.endpoint import PREFIX
from gantrymq.console.api.http import response_of, route_of, trouble
from gantrymq.console.api.openapi import document
from gantrymq.console.clusters import Clusters
from gantrymq.console.console_metrics import ConsoleMetrics, MeasuredRequests
from gantrymq.console.errors import ConsoleError, NotThere
from gantrymq.console.jobs import Jobs
from gantrymq.console.pages.all import PAGES
from gantrymq.console.pages.login import LoginPages
from gantrymq.console.pages.page import View
from gantrymq.console.sampling.cluster_tables import ClusterTables
from gantrymq.console.sampling.watch import ClusterWatch
from gantrymq.console.settings import LOOPBACK, ConsoleSettings


def make_app(settings: ConsoleSettings, clock: WallClock | None = None) -> Starlette:
    """The ASGI application of a console."""
    clock = clock or SystemClock()
    clusters, jobs, tables = Clusters(settings.clusters), Jobs(clock), ClusterTables()
    watch = ClusterWatch(clusters, tables, settings.data, clock)
    parts = Parts(settings, clusters, AuditTrail(settings.data), clock, jobs, tables, watch)
    login, metrics = Login(settings, parts.clusters), ConsoleMetrics(parts)

    def ask_of(request: Request) -> Ask:
        session: Session | None = request.scope["session"]
        if session is None:
            return Ask(NOBODY, parts, Clusters(()))
        return Ask(session.user, parts, session.clusters, session.is_live)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        metrics.start()
        try:
            async with watch.running():
                yield
        finally:
            metrics.stop()
            await jobs.close()
            await login.close()
            await parts.clusters.close()

    async def not_found(request: Request, error: Exception) -> Response:
        if request.url.path.startswith(PREFIX):
            return trouble(HTTPStatus.NOT_FOUND, f"nothing is at {request.url.path}")
        if request.scope["session"] is None:
            return PlainTextResponse("nothing is here\n", HTTPStatus.NOT_FOUND)
        view = View(request, ask_of(request), "")
        return view.trouble(NotThere(f"nothing is at {request.url.path}"))

    async def fault(request: Request, error: Exception) -> Response:
        """A fault of the console: its traceback is in the log."""
        text = f"{type(error).__name__}: a fault of this console; its log has more"
        if request.url.path.startswith(PREFIX):
            return trouble(HTTPStatus.INTERNAL_SERVER_ERROR, text)
        return View(request, ask_of(request), "").trouble(ConsoleError(text))

    api = document(ENDPOINTS, version("gantrymq"))

    async def openapi(request: Request) -> Response:
        return response_of(api)

    routes: list[BaseRoute] = [
        Mount("/static", StaticFiles(packages=[("gantrymq.console", "static")])),
        Route(f"{PREFIX}/openapi.json", openapi),
        *(route_of(endpoint, ask_of) for endpoint in ENDPOINTS),
        Route(METRICS_PATH, metrics.show),
        *LoginPages(login, parts).routes,
        *(page.route(ask_of) for page in PAGES),
    ]
    hosts = LOOPBACK if settings.is_local else None
    return Starlette(
        routes=routes,
        lifespan=life,
        exception_handlers={404: not_found, 500: fault},
        middleware=[
            Middleware(MeasuredRequests, metrics=metrics),
            Middleware(SafeRequests, hosts=hosts),
            Middleware(LoginGate, login=login, audit=parts.audit, clock=parts.clock),
        ],
    )
