"""What a browser is told and asked, so that other sites cannot use the console of its user.

Every answer has headers that forbid scripts from elsewhere, frames and guessing of types. A request
that changes something has to come from a page of the console itself: browsers say so in
Sec-Fetch-Site or Origin, and programs that are no browsers send neither. A console that listens on
a loopback address answers to its own names only, or else a site whose name points to 127.0.0.1
would be the same site (DNS rebinding).
"""

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
STATIC: Final = "/static/"
OWN_SITE: Final = ("same-origin", "none")


class SafeRequests:
    """An ASGI application behind these rules; `hosts` are the names it answers to, None all."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith(STATIC):
                    headers.setdefault("Cache-Control", "no-store")  # who logs out leaves nothing
            await send(message)

        why = refusal(scope["method"], Headers(scope=scope), self._hosts)
        app = self._app if why is None else PlainTextResponse(why + "\n", 403)
        await app(scope, receive, send_safely)


def refusal(method: str, headers: Headers, hosts: Collection[str] | None) -> str | None:
    """Why a request is refused; None if it is not."""
    host = headers.get("host", "")
    name = _name(f"//{host}")
    if hosts is not None and name not in hosts:
        return f"this console does not answer to the name {name!r}; use {', '.join(hosts)}"
    if method in SAFE_METHODS:
        return None
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    is_own = site in OWN_SITE if site else origin is None or is_at(origin, host)
    return None if is_own else "a page of another site may not change anything here"


def is_at(address: str, host: str) -> bool:
    """Whether an address is one of this host."""
    try:
        return urlsplit(address).netloc == host
    except ValueError:
        return False


def _name(address: str) -> str:
    """The host name in an address; empty where nobody can read it."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
