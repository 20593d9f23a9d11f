"""The text dialogues."""

from pathlib import Path

import pytest
from dialogue import FOLDER, play


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_dialogue(path: Path) -> None:
    """
    Every command prints what stands below it.
    """
    text = path.read_text()

    assert text == play(text)
