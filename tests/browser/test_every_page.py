"""Every page, wide and narrow, light and dark: no error, nothing beside the window, no barrier."""

from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from routes import PAGES, address_of, missing
from world import ADDRESS, World, process, said

from conftest import NARROW, SCREENSHOTS, WIDE, Theme, watched
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile

SERIOUS: Final = ("serious", "critical")
WINDOWS: Final[tuple[tuple[int, Theme], ...]] = (
    (WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark"),
)  # fmt: skip


def test_all_pages_are_visited() -> None:
    """
    A page that is added is visited by these tests, or stands in the list of parts of pages.
    """
    assert [] == missing()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(chromium: Browser, world: World, name: str) -> None:
    """
    The page loads without any complaint of the browser, fits into the window, also with all that
    is folded open, and axe finds nothing serious in it.
    """
    for window in WINDOWS:
        look(chromium, address_of(name, world), name, *window)


@pytest.mark.parametrize("kind", ["users", "keys"])
def test_the_login_is_whole(chromium: Browser, world: World, kind: str, tmp_path: Path) -> None:
    """
    So is the page that asks for a password, or for a key and its cluster.
    """
    command: tuple[str | Path, ...]
    if kind == "users":
        UsersFile(tmp_path / "users.json").put("ann", Role.ADMIN, "ann's password")
        command = ("--namesrv", f"pair={world.pair}")
    else:
        command = (
            "--namesrv", f"guarded={world.guarded}", "--namesrv", f"pair={world.pair}",
            "--login", "cluster", "--key-file", f"guarded={world.guarded_key}",
        )  # fmt: skip
    with process("console", *command, "--port", "0", "--data", tmp_path) as running:
        url = said(running, ADDRESS)
        for window in WINDOWS:
            look(chromium, f"{url}/login", f"login-{kind}", *window)


UNFOLD: Final = """async () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
"""Opens all that is folded; a part that comes when it is unfolded is asked for by then."""


def look(chromium: Browser, address: str, name: str, width: int, theme: Theme) -> None:
    """Open a page in a window, take its picture, and look for faults and barriers."""
    with watched(chromium, width, theme) as visitor:
        page = visitor.open(address)
        assert page.locator("h1").count() == 1
        assert not page.locator("p.said.error").count(), page.locator("main").inner_text()
        page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{theme}.png", full_page=True)
        assert beside(page) <= 0, f"{beside(page)} px beside a window of {width}"
        page.evaluate(UNFOLD)
        visitor.settle()
        assert not page.locator("details:not([open])").count()
        assert beside(page) <= 0, f"{beside(page)} px beside a window of {width}, all unfolded"
        assert [] == visitor.faults, f"{width} {theme}"
        assert "taken" not in page.title()
        if (width, theme) == (NARROW, "dark"):
            return  # the barriers of both are known by now
        grave = [
            f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes'][:3]]}"
            for each in Axe().run(page).response["violations"]
            if each["impact"] in SERIOUS
        ]
        assert [] == grave, f"{width} {theme}"


def beside(page: Page) -> int:
    """The pixels by which a page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


THIN_CELLS: Final = """() => [...document.querySelectorAll(".wide :is(td, th)")].filter(cell => {
  const inside = document.createRange();
  inside.selectNodeContents(cell);
  const lines = inside.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).fontSize);
  return cell.clientWidth < 90 && lines > 6;
}).map(cell => `${cell.innerText} (${cell.clientWidth} px)`)"""


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_tables_are_readable_in_a_narrow_window(
    chromium: Browser, world: World, language: str
) -> None:
    """
    A table that is wider than the window scrolls; no cell becomes a column of single words or
    letters, which Chinese allows anywhere.
    """
    with watched(chromium, NARROW, language=language) as visitor:
        found = {name: visitor.open(address_of(name, world)).evaluate(THIN_CELLS) for name in PAGES}

    assert {} == {name: cells for name, cells in found.items() if cells}


@pytest.mark.parametrize("name", ["overview", "topics", "topic", "groups", "data", "rights-off"])
def test_a_page_speaks_chinese(chromium: Browser, world: World, name: str) -> None:
    """
    A browser that asks for Chinese gets the page in Chinese.
    """
    with watched(chromium, language="zh-CN") as visitor:
        page = visitor.open(address_of(name, world))
        assert page.locator("html").get_attribute("lang") == "zh"
        assert "主题" in page.locator("body > nav").inner_text()
