"""Every page, wide and narrow, light and dark: no error, nothing beside the window, no barrier."""

from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser
from routes import PAGES, address_of, missing
from world import World

from conftest import NARROW, SCREENSHOTS, WIDE, Theme, watched

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
    The page loads without any complaint of the browser, fits into the window, and axe finds
    nothing serious.
    """
    axe = Axe()
    for width, theme in WINDOWS:
        with watched(chromium, width, theme) as visitor:
            page = visitor.open(address_of(name, world))
            assert page.locator("h1").count() == 1
            assert not page.locator("p.said.error").count(), page.locator("main").inner_text()
            page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{theme}.png", full_page=True)
            beside = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert beside <= 0, f"{beside} px beside a window of {width}"
            assert [] == visitor.faults, f"{width} {theme}"
            assert "taken" not in page.title()
            if (width, theme) == (NARROW, "dark"):
                continue  # the barriers of both are known by now
            found = axe.run(page).response["violations"]
            grave = [
                f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes'][:3]]}"
                for each in found
                if each["impact"] in SERIOUS
            ]
            assert [] == grave, f"{width} {theme}"


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
