"""Every promise of docs/security.md names a test that is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
TEST = re.compile(r"`(tests/[\w./-]+)`")


def promises() -> list[tuple[str, str]]:
    """Who is stopped, and the cell with its tests, of all tables that have such a column."""
    found = []
    columns: list[str] = []
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
        elif columns[-1].strip() == "test" and not line.startswith("|---"):
            found.append((cells[0], cells[-1]))
    return found


def test_there_are_promises() -> None:
    """
    The tables were found.
    """
    assert len(promises()) > 30


@pytest.mark.parametrize("who, cell", promises(), ids=lambda text: text[:40])
def test_a_promise_names_its_test(who: str, cell: str) -> None:
    """
    By the path of a file or folder in this repository.
    """
    names = TEST.findall(cell)

    assert names, who
    assert all((ROOT / name).exists() for name in names), names


def test_pages_that_are_linked_exist() -> None:
    """
    Guides and tables beside the page.
    """
    links = re.findall(r"\]\(([\w./-]+)\)", PAGE)

    assert links
    assert all((ROOT / "docs" / link).exists() for link in links)
