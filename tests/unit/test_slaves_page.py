"""docs/guides/slaves.md quotes what brokers say."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "slaves.md").read_text()
SPEAKERS = ("broker/handlers/copies.py", "replication/ha/master.py", "replication/ha/slave.py")


def patterns(path: str) -> list[re.Pattern[str]]:
    """Every formatted text of a module, with anything in place of its values."""
    tree = ast.parse((ROOT / "src" / "gantrymq" / path).read_text())
    return [
        re.compile(
            "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+"
                for part in node.values
            )
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    ]


def test_refusals_are_quoted_as_they_are_said() -> None:
    """
    The last column of the table of slaves that do not fit.
    """
    table = PAGE.partition("## Slaves that do not fit")[2].partition("\n## ")[0]
    quoted = re.findall(r"`([^`]{40,})`", table)
    said = [pattern for path in SPEAKERS for pattern in patterns(path)]

    assert 6 == len(quoted)
    assert [] == [text for text in quoted if not any(each.fullmatch(text) for each in said)]


def test_the_advice_is_quoted_as_it_is_said() -> None:
    """
    What a slave's log says when its master lost messages.
    """
    section = PAGE.partition("## When the master lost what the slave has")[2].partition("\n## ")[0]
    quoted = " ".join(re.findall(r"^    (.*)$", section, re.MULTILINE))
    advice = quoted.partition("still has. ")[2]
    said = patterns("broker/copies/log_comparison.py")

    assert any(each.fullmatch(advice) for each in said), advice
