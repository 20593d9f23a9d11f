"""Every command of `gantry` on a running cluster, as docs/gantry.md shows it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gantrykit import GantryPlace, furnish, gantry_cases, leaves, page_of, said
from mqadminkit import Case, Scene, missing_line, white_listed

from gantrymq.testing.threaded import GantryCluster

DOCS = Path(__file__).parents[2] / "docs"
CASES = [case for group in gantry_cases().values() for case in group]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GantryPlace]:
    """A cluster at work, with a delayed message and a dead letter."""
    rules = white_listed(tmp_path_factory.mktemp("access"))
    running = GantryCluster(acl_enable=True, acl_file=rules["aclFile"])
    with Scene(running.namesrv, tmp_path_factory.mktemp("gantry")) as scene:
        yield furnish(scene.place)
    running.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_a_command_prints_what_its_page_shows(
    place: GantryPlace, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 0; its lines come in the order of the table."""
    monkeypatch.setenv("GANTRY_CONFIG", str(tmp_path / "profiles.toml"))
    for words in case.needs:
        assert said(words, place)[0] == 0
    code, printed = said(case.words, place)
    for words in case.then:
        assert said(words, place)[0] == 0

    assert code == 0, printed
    assert missing_line(case, place, printed) is None, printed


def test_every_command_has_a_place_on_the_page() -> None:
    """
    With what it prints, or with the page that shows it at work.
    """
    page = (DOCS / "gantry.md").read_text()
    shown = gantry_cases()
    for name, _ in leaves():
        if name in shown:
            assert f"\n## {name}\n" in page
            continue
        target = page_of(name)
        assert target is not None, f"gantry {name} is neither in the table nor on another page"
        assert f"| `gantry {name}` |" in page
        if not target.startswith("#"):
            assert f"gantry {name}" in re.sub(r"\s+", " ", (DOCS / target).read_text()), name
