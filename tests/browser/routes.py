"""The address of every page in the world of the browser tests."""

import json
import urllib.request
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from world import PAIR, RAFT, World

from gantrymq.console.pages.all import PAGES as DECLARED

PARTS: Final = (
    "/", "/c/{cluster}", "/language/{code}", "/c/{cluster}/overview/findings",
    "/c/{cluster}/data/jobs",
)  # fmt: skip
"""Redirects, and parts of pages that are in the page that asks for them."""


@cache
def api(world: World, path: str, cluster: str = PAIR) -> Any:
    """An answer of the API."""
    address = f"{world.console}/api/v1/clusters/{cluster}{path}"
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.load(answer)


PAGES: Final[dict[str, tuple[str, Callable[[World], str]]]] = {
    "overview": ("/c/{cluster}/overview", lambda w: w.page("/overview")),
    "overview-raft": ("/c/{cluster}/overview", lambda w: w.page("/overview", RAFT)),
    "topics": ("/c/{cluster}/topics", lambda w: w.page("/topics")),
    "topic": ("/c/{cluster}/topics/{topic}", lambda w: w.page("/topics/orders")),
    "data": ("/c/{cluster}/data", lambda w: w.page("/data")),
    "audit": ("/c/{cluster}/access", lambda w: w.page("/access")),
}
"""By name: the path as it is declared, and the address."""


def address_of(name: str, world: World) -> str:
    """The address of a page."""
    return PAGES[name][1](world)


def missing() -> list[str]:
    """Declared pages that are neither visited nor a part of another page."""
    known = {path for path, _ in PAGES.values()} | set(PARTS)
    return sorted({each.path for each in DECLARED if each.method == "GET"} - known)


def segment(text: str) -> str:
    return quote(text, safe="")
