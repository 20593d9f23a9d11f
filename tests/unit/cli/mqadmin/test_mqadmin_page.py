"""docs/mqadmin.md says what the commands say."""

from pathlib import Path

import mqadmin_page
import pytest

from gantrymq.cli.mqadmin.commands import refused
from gantrymq.cli.mqadmin.table import COMMANDS

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "mqadmin.md").read_text()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_page_has_every_command(command: object) -> None:
    """
    With its options as they are now; printed again with tests/kits/mqadmin_page.py.
    """
    name = command.name  # type: ignore[attr-defined]
    if name in refused.REASONS:
        assert f"| {name} | {refused.REASONS[name][1]} |" in PAGE
    else:
        assert f"## {name}\n" in PAGE
        assert mqadmin_page.usage(name) in PAGE
