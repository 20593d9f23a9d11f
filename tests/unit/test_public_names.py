"""Public names: each is where its package says, and guides import from public places only."""

import re
from importlib import import_module
from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).parents[2] / "docs" / "guides").glob("*.md"))
FOLDERS = tuple(f"gantrymq.pipelines.{name}" for name in ("archive", "replay", "report", "audit"))
PACKAGES = ("gantrymq", "gantrymq.client", "gantrymq.console", "gantrymq.pipelines", *FOLDERS)
PLACES = {*PACKAGES, "gantrymq.sync", "gantrymq.spark", "gantrymq.testing"}
MARTS = "gantrymq.pipelines.marts"
"""The tables of a report are named by their marts, each of which is a module."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_can_be_loaded(name: str) -> None:
    """
    The list, the table of homes and the modules agree.
    """
    package = import_module(name)
    homes = [each for names in package._HOMES.values() for each in names]

    assert sorted(package.__all__) == sorted(homes)
    assert [] == [each for each in homes if not hasattr(package, each)]


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    """
    With the name and the package, as of any module.
    """
    with pytest.raises(AttributeError, match=r"'gantrymq.client' has no attribute 'Wanted'"):
        import_module("gantrymq.client").Wanted  # noqa: B018


def test_guides_import_from_public_places() -> None:
    """
    A program that is copied from a guide goes on when modules move.
    """
    used = {
        place
        for guide in GUIDES
        for place in re.findall(r"^(?:from|import) (gantrymq[\w.]*)", guide.read_text(), re.M)
    }

    assert used - PLACES == {MARTS}
