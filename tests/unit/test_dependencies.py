"""What an installation brings: locked with hashes, licensed, and bounded from below."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("secure", "lz4", "zstd", "console")
LOCKED = re.compile(
    r"^([A-Za-z0-9_.-]+)==(\S+)(.*(?:\\\n    --hash=sha256:[0-9a-f]{64}.*)+)$", re.M
)
ROW = re.compile(r"^\| ([\w-]+) \| ([\w. -]+) \|$", re.M)
GOOD = {
    "MIT",
    "MIT-0",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Apache-2.0",
    "0BSD",
    "Zlib",
    "CC0-1.0",
    "PSF-2.0",
}


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for name in EXTRAS for each in project["optional-dependencies"][name]]
    return [Requirement(text) for text in [*project["dependencies"], *extras]]


def locked() -> dict[str, set[str]]:
    """The versions by name; some differ by Python's version."""
    found: dict[str, set[str]] = {}
    for name, version, _ in LOCKED.findall((ROOT / "requirements" / "core.txt").read_text()):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def licences() -> dict[str, str]:
    page = (
        (ROOT / "docs" / "dependencies.md")
        .read_text()
        .partition("## Licences")[2]
        .partition("|---|")[2]
    )
    return dict(ROW.findall(page))


def test_what_is_wanted_is_locked() -> None:
    """
    In a version that is allowed.
    """
    versions = locked()
    for each in wanted():
        found = versions[canonicalize_name(each.name)]
        assert all(version in each.specifier for version in found), each.name


def test_every_locked_version_has_a_hash() -> None:
    """
    And says nothing of where it comes from.
    """
    text = (ROOT / "requirements" / "core.txt").read_text()
    names = re.findall(r"^[A-Za-z0-9_.-]+==", text, re.M)

    assert len(names) == len(LOCKED.findall(text)) > 10
    assert "//" not in text


def test_the_lower_bounds_are_those_of_the_project() -> None:
    """
    `make lower-bounds` tries what pyproject.toml promises.
    """
    lines = (ROOT / "requirements" / "lower-bounds.txt").read_text().splitlines()
    tried = {canonicalize_name(r.name): r for r in map(Requirement, lines[1:])}
    for each in wanted():
        (bound,) = [found for found in each.specifier if found.operator == ">="]
        (version,) = tried.pop(canonicalize_name(each.name)).specifier
        assert version.version.startswith(bound.version), each.name
    assert not tried


def test_licences_are_listed_and_good() -> None:
    """
    Every package of the lock, and nothing else.
    """
    found = licences()
    words = {word for text in found.values() for word in re.split(r" (?:AND|OR) ", text)}

    assert set(locked()) == set(found)
    assert words <= GOOD


@pytest.mark.parametrize("name", sorted(licences()))
def test_a_package_says_of_itself_what_the_page_says(name: str) -> None:
    """
    As far as it is installed here, by its own metadata.
    """
    metadata = importlib.metadata.metadata(name)
    classifiers = " ".join(metadata.get_all("Classifier") or [])
    said = " ".join(
        filter(None, (metadata.get("License-Expression"), metadata.get("License"), classifiers))
    )
    for word in re.split(r" (?:AND|OR) ", licences()[name]):
        assert word.split("-")[0] in said, said
