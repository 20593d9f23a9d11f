"""docs/wounds.md has every wound, and the tests that it names are there."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "wounds.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| wound |")
]
THREADS = [
    "#8239", "#5235", "#7017", "#3015", "#1155", "#2621", "#7182", "#1589", "#2705", "#1440",
    "#1918", "#2836", "#2954", "#5473", "#10827", "alibaba/spring-cloud-alibaba#1847", "#2471",
    "#4425", "#5088", "#4831", "#2138", "#3750", "#3440", "#6566", "#8022", "#6356", "#10291",
    "#3613", "#681", "openmessaging/dledger#287", "#9445", "apache/rocketmq-exporter#190", "#9873",
]  # fmt: skip
"""Each is a promise: a thread leaves this list only with a reason."""


@functools.cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_thread_is_in_one_row() -> None:
    """
    In order, none twice, none missing.
    """
    assert THREADS == [thread for row in ROWS for thread in row[1].split(", ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_wound_has_tests_that_exist(row: list[str]) -> None:
    """
    The functions are there under the names that the table gives.
    """
    wound, _, answer, tests = row
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)

    assert wound
    assert answer
    assert tests
    assert len(named) == tests.count("`") / 2
    assert [] == [test for file, test in named if test not in functions_of(ROOT / "tests" / file)]


def test_the_tests_of_wounds_say_where_they_were_seen() -> None:
    """
    Each test of `cluster/test_wounds.py` stands in the table, in the row of a thread that its
    docstring names.
    """
    tree = ast.parse((ROOT / "tests" / "cluster" / "test_wounds.py").read_text())
    tests = {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    rows = {name: row[1] for row in ROWS for name in tests if f"::{name}`" in row[3]}

    assert tests.keys() == rows.keys()
    for name, said in tests.items():
        assert set(re.findall(r"#\d+", said)) <= set(re.findall(r"#\d+", rows[name])), name
        assert re.search(r"#\d+", said), name
