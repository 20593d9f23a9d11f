"""What CONTRIBUTING.md, the decisions and the README point at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [ROOT / "CONTRIBUTING.md", *DECISIONS]
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.*-]*|\w+\.(?:py|md|toml))(?:::(\w+))?`")
NAME = re.compile(r"((?:`[\w.]+`(?:,| and)? ?)+)in `([\w/.]+\.py)`")
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_the_text_exist(page: Path) -> None:
    """
    A path is below the repository or below the package.
    """
    named = PATH.findall(page.read_text())
    places = (ROOT, ROOT / "src" / "gantrymq", page.parent)

    assert [] == [path for path, _ in named if not any(any(at.glob(path)) for at in places)]
    for path, test in named:
        assert not test or f"def {test}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_are_in_the_files_that_the_text_says(page: Path) -> None:
    """
    "`clamp` in `broker/tables/registry.py`" is a promise about that file.
    """
    for names, path in NAME.findall(" ".join(page.read_text().split())):
        source = (ROOT / "src" / "gantrymq" / path).read_text()
        for name in re.findall(r"[\w.]+", names.replace(" and", "")):
            assert name.rpartition(".")[2] in source, f"{name} in {path}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """
    To a page of the repository, and to a heading that it has.
    """
    for target, heading in LINK.findall(page.read_text()):
        found = (page.parent / target) if target else page

        assert found.exists(), target
        if heading:
            assert heading in _headings(found.read_text()), target


def _headings(text: str) -> set[str]:
    lines = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in lines}


def test_every_page_of_decisions_is_in_the_index() -> None:
    """
    A page that nothing leads to is not found.
    """
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()

    assert [] == [
        path.name
        for path in DECISIONS
        if path.name != "README.md" and f"({path.name})" not in index
    ]


def test_every_decision_says_why_and_what_would_change_it() -> None:
    """
    Those of the pages by subject; the numbered ones are as they were decided.
    """
    for path in DECISIONS:
        if path.name == "README.md" or path.name[0].isdigit():
            continue
        for section in path.read_text().split("\n## ")[1:]:
            words = set(re.findall(r"^\*\*([\w' ]+)\.\*\*", section, re.MULTILINE))

            assert {"Context", "Decision", "In the code", "What would change our mind"} <= words
            assert words & {"Measured", "Reason"}


def test_targets_and_workloads_that_are_named_exist() -> None:
    """
    `make` has the targets, and the bench has the workloads, or several that begin so.
    """
    text = "".join(page.read_text() for page in PAGES)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    quick = re.findall(r"-m bench (?:--quick|--profile)?([a-z\d -]+)", text)
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE))

    assert {"check", "interop", "setup", "spark-long", "test"} <= named <= set(targets)
    table = (ROOT / "bench" / "workloads" / "__init__.py").read_text()
    known = re.findall(r'^ +"([a-z\d-]+)": ', table, re.MULTILINE)
    words = [name for line in quick for name in line.split()]
    assert [] == [
        word for word in words if not any(f"{each}-".startswith(f"{word}-") for each in known)
    ]
