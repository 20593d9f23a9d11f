"""Logging in and out. These pages need no login."""

import contextlib
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from gantrymq.base.errors import GantryError
from gantrymq.base.tokens import secret_text
from gantrymq.console.access.gate import COOKIE, LOGIN_PATH, address_of
from gantrymq.console.access.login import Login
from gantrymq.console.access.sessions import LIFE_SECONDS
from gantrymq.console.api.ask import Parts
from gantrymq.console.api.http import read_body
from gantrymq.console.errors import BadInput, ConsoleError, status_of
from gantrymq.console.pages.own_place import own_place
from gantrymq.console.pages.page import language_of
from gantrymq.console.pages.rendering import render
from gantrymq.console.settings import LoginKind
from gantrymq.console.texts import LANGUAGES, Texts

FIELDS_MAX = 10
BODY_BYTES_MAX = 16 * 1024
"""Of the form, which anybody may send."""


class LoginPages:
    """The form, what it sends, and the end of a session."""

    def __init__(self, login: Login, parts: Parts) -> None:
        self._login, self._parts = login, parts

    @property
    def routes(self) -> list[Route]:
        return [
            Route(LOGIN_PATH, self.show, methods=["GET"]),
            Route(LOGIN_PATH, self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The form; where nobody logs in, the first page."""
        if self._login.kind is LoginKind.NONE:
            return RedirectResponse("/", HTTPStatus.SEE_OTHER)
        return self._form(request, own_place(request.query_params.get("next", "/")))

    async def _note(self, name: str, request: Request, error: str | None) -> None:
        """Logins stand in the audit trail, too, those that failed among them."""
        now_ms = self._parts.clock.now_ms()
        await self._parts.audit.keep_login(now_ms, name, address_of(request), error)

    async def log_in(self, request: Request) -> Response:
        """Check name and password; then a cookie, and the page that was asked for."""
        fields = await _fields(request)
        name, place = fields.get("name", ""), own_place(fields.get("next", "/"))
        cluster = fields.get("cluster") or None
        before = request.cookies.get(COOKIE)
        # A new token each time: who has planted or seen the one of before gains nothing by it.
        token = secret_text()
        try:
            await self._login.open(
                token, name, fields.get("password", ""), address_of(request), cluster, before
            )
            await self._note(name, request, None)
        except GantryError as refused:
            error, status = str(refused), status_of(refused)
            with contextlib.suppress(ConsoleError):  # it is refused in any case
                await self._note(name, request, error)
            return self._form(request, place, name, error, status)
        answer = RedirectResponse(place, HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            COOKIE,
            token,
            int(LIFE_SECONDS),
            secure=_is_https(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        token = request.cookies.get(COOKIE)
        if token:
            self._login.end(token)
        answer = RedirectResponse(LOGIN_PATH, HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, secure=_is_https(request), httponly=True, samesite="strict")
        return answer

    def _form(
        self,
        request: Request,
        place: str,
        name: str = "",
        error: str | None = None,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:
        texts = Texts(language_of(request))
        words = place.split("/")
        wanted = words[2] if words[1:2] == ["c"] and len(words) > 2 else None
        values = {
            "t": texts,
            "languages": LANGUAGES,
            "clusters": self._parts.clusters.names,
            "wanted": wanted,
            "asks_for_keys": self._login.kind is LoginKind.CLUSTER,
            "place": place,
            "name": name,
            "error": texts.told(error) if error else None,
        }
        return HTMLResponse(render("login.html", values), status)


def _is_https(request: Request) -> bool:
    """Whether browsers shall send the cookie back over HTTPS only."""
    return request.url.scheme == "https"


async def _fields(request: Request) -> dict[str, str]:
    try:
        text = (await read_body(request, BODY_BYTES_MAX)).decode()
        found = parse_qs(text, max_num_fields=FIELDS_MAX)
    except (ValueError, BadInput):
        return {}
    return {key: values[0] for key, values in found.items()}
