"""The map of features is complete, and what it points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "features.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \|(.*)\|$", re.MULTILINE)
LINK = re.compile(r"\[[^]]+\]\(([^)]+)\)")
FILE = re.compile(r"`([\w/]+\.py)`")
IDS = [
    *(f"P{number}" for number in range(1, 11)),
    *(f"C{number}" for number in range(1, 17)),
    "G1",
    "G3",
    "G4",
    "G7",
    "G8",
    "A1",
    "A2",
    "A3",
    "A4",
    "A5",
    "G5",
    *(f"D{number}" for number in range(1, 9)),
]
ROWS = {
    name: [cell.strip() for cell in rest.split("|")] for name, rest in ROW.findall(MAP.read_text())
}


def test_every_feature_has_one_row() -> None:
    """
    In order, none twice, none missing.
    """
    assert IDS == [name for name, _ in ROW.findall(MAP.read_text())]


@pytest.mark.parametrize("name", IDS)
def test_a_row_names_a_guide_and_tests_that_exist(name: str) -> None:
    """
    A feature without a guide, or without a test, is not there.
    """
    what, guides, tests, _ = ROWS[name]
    pages, files = LINK.findall(guides), FILE.findall(tests)

    assert what
    assert pages
    assert files
    assert [] == [page for page in pages if not (ROOT / "docs" / page).is_file()]
    assert [] == [file for file in files if not (ROOT / "tests" / file).is_file()]


@pytest.mark.parametrize("name", IDS)
def test_a_row_has_a_test_over_tcp(name: str) -> None:
    """
    One of its files uses the fixture that runs every test in memory and over TCP, has foreign
    clients, or asks a console; for the data pipeline it is a real Spark, beside brokers in
    processes of their own.
    """
    files = [ROOT / "tests" / file for file in FILE.findall(ROWS[name][2])]
    real = ("spark", "sparklong") if name.startswith("D") else ("interop", "console")

    assert any("run: Run" in file.read_text() or file.parent.name in real for file in files)
