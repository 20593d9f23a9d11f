"""An ASGI application behind a login.

A browser has a cookie, a program HTTP's basic authentication. Who has neither is sent to the login
page, or told so where it asked the API.
"""

import base64
import binascii
import hashlib
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.console.access.audit import AuditTrail
from gantrymq.console.access.login import Login
from gantrymq.console.access.sessions import Session
from gantrymq.console.errors import ConsoleError, LoginNeeded, status_of

COOKIE: Final = "gantry-console"
LOGIN_PATH: Final = "/login"
OPEN_PATHS: Final = ("/login", "/static/", "/language/")
API_PATH: Final = "/api/"
METRICS_PATH: Final = "/metrics"
PAIR_CHARACTERS_MAX: Final = 2_048


class LoginGate:
    """Lets requests through that have a session, which the request keeps in its scope."""

    def __init__(self, app: ASGIApp, login: Login, audit: AuditTrail, clock: WallClock) -> None:
        self._app, self._login, self._audit, self._clock = app, login, audit, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["session"] = None
        request = Request(scope)
        path = request.url.path
        try:
            session = await self._session_of(request)
            if session is None and not path.startswith(OPEN_PATHS):
                raise LoginNeeded("log in first")
        except GantryError as error:  # that of a cluster, too, which checks the key of its user
            await _refusal(request, error)(scope, receive, send)
            return
        scope["session"] = session
        await self._app(scope, receive, send)

    async def _session_of(self, request: Request) -> Session | None:
        session = self._login.session_of(request.cookies.get(COOKIE))
        pair = None if session else _pair(request.headers.get("authorization"))
        if pair is None:
            return session
        # The pair itself is the token of such a session: it is checked once, not at each request.
        cluster = _cluster(request.url.path)
        token = hashlib.sha256(msgspec.json.encode((*pair, cluster))).hexdigest()
        found = self._login.session_of(f"basic {token}")
        if found is not None:
            return found
        address = address_of(request)
        try:
            opened = await self._login.open(f"basic {token}", *pair, address, cluster)
        except GantryError as refused:
            with suppress(ConsoleError):  # it is refused in any case
                await self._note(pair[0], address, str(refused))
            raise
        await self._note(pair[0], address, None)
        return opened

    async def _note(self, name: str, address: str, error: str | None) -> None:
        """A program's login stands in the audit trail once, not at each of its requests."""
        await self._audit.keep_login(self._clock.now_ms(), name, address, error)


def address_of(request: Request) -> str:
    """The address from which a request comes."""
    return request.client.host if request.client else ""


def _pair(authorization: str | None) -> tuple[str, str] | None:
    """Name and password of a header `Basic ...`."""
    kind, _, text = (authorization or "").partition(" ")
    if kind.lower() != "basic" or len(text) > PAIR_CHARACTERS_MAX:
        return None
    try:
        name, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise LoginNeeded("the header Authorization cannot be read") from None
    return name, password


def _cluster(path: str) -> str | None:
    """The cluster that a call of the API names: with keys of clusters that one is asked."""
    words = path.split("/")
    return words[4] if words[1:4] == ["api", "v1", "clusters"] and len(words) > 4 else None


def _refusal(request: Request, error: GantryError) -> Response:
    status = status_of(error)
    if request.url.path.startswith(API_PATH):
        body = msgspec.json.encode({"error": str(error)})
        is_asked = status is HTTPStatus.UNAUTHORIZED and "sec-fetch-site" not in request.headers
        headers = _ASK_FOR_BASIC if is_asked else {}
        return Response(body, status, headers, media_type="application/json")
    if request.url.path == METRICS_PATH and "sec-fetch-site" not in request.headers:
        return Response(f"{error}\n", HTTPStatus.UNAUTHORIZED, _ASK_FOR_BASIC)
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    where = f"{LOGIN_PATH}?next={quote(back, safe='/')}"
    if "hx-request" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": LOGIN_PATH})
    return RedirectResponse(where, HTTPStatus.SEE_OTHER)


_ASK_FOR_BASIC: Final = {"WWW-Authenticate": 'Basic realm="gantry console", charset="UTF-8"'}
"""Not for pages of the console itself: a browser would open a window of its own."""
