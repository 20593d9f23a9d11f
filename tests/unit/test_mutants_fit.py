"""The patches of `tests/mutants` fit the product as it is."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = ROOT / "tests" / "mutants"
sys.path.insert(0, str(MUTANTS))

from try_mutants import applied, read  # noqa: E402

PATCHES = sorted(MUTANTS.glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_a_patch_changes_the_product(patch: Path) -> None:
    """
    It is found in its file, and leaves Python that can be read.
    """
    mutant = read(patch)
    changed = applied(mutant, ROOT)

    assert changed != (ROOT / mutant.file).read_text()
    ast.parse(changed)


def test_there_are_at_least_twelve() -> None:
    """
    As many as were promised.
    """
    assert len(PATCHES) >= 12
