"""Real Chromium on real clusters: `make browser`. Pictures of all pages: .venv/screenshots."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright
from world import World, make_world

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
EXIT_MISSING_TOOL: Final = 2
SCREENSHOTS: Final = Path(__file__).parents[2] / ".venv" / "screenshots"
NARROW, WIDE = 400, 1400
SECONDS_MAX: Final = 20

Theme = Literal["light", "dark"]


ACTS: Final[set[str]] = set()
"""The paths of all forms that were sent by any visitor."""


class Watched:
    """A page, and everything in it that a person would call a fault."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", _note_act)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        # Leaving a page ends what it still asks for.
        if request.failure not in ("net::ERR_ABORTED", None):
            self.faults.append(f"{request.url}: {request.failure}")

    def open(self, address: str) -> Page:
        """Go to a page and wait until its parts have come."""
        self.page.goto(address)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until no part of the page is on its way."""
        self.page.wait_for_load_state("load")
        self.page.locator(".htmx-request").first.wait_for(state="detached")


def _note_act(request: Request) -> None:
    if request.method == "POST":
        ACTS.add(urlsplit(request.url).path)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        os.write(2, b"the browser tests need chromium, which is missing\n")
        pytest.exit("chromium is missing", EXIT_MISSING_TOOL)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with make_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@contextmanager
def watched(
    browser: Browser, width: int = WIDE, theme: Theme = "light", language: str = "en"
) -> Iterator[Watched]:
    """A page of a new visitor."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, locale=language
    )
    context.set_default_timeout(SECONDS_MAX * 1000)
    try:
        yield Watched(context.new_page())
    finally:
        context.close()


@pytest.fixture
def visitor(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A visitor with a wide window, in whose pages nothing goes wrong; the last is a picture."""
    with watched(chromium) as page:
        yield page
        page.page.screenshot(path=SCREENSHOTS / f"{request.node.name}.png", full_page=True)
        assert [] == page.faults
