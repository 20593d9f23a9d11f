"""Style that no linter knows, and tables that must be complete."""

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from gantrymq.broker import routes as broker_routes
from gantrymq.protocol import calls
from gantrymq.protocol.calls import Call
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.refusals import REFUSED

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "gantrymq").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if ".cache" not in path.parts)
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
LINES_PER_FUNCTION_MAX, LINES_PER_MODULE_MAX = 70, 500
WORDS_PER_SENTENCE_MIN = 4
PURE = re.compile(r"\bpure\b(?!-Python)", re.IGNORECASE)
"""Says that a module does no I/O and reads no clock; pure-Python is about the language."""

TO_CLIENTS = {RequestCode(code) for code in (39, 40, 220, 221, 326)}
"""Codes that brokers send and clients answer."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_tidy(path: Path) -> None:
    """
    Functions fit a screen, modules one idea, nothing is marked as unfinished.
    """
    text = path.read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]
    long = [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= LINES_PER_FUNCTION_MAX]

    assert [] == long
    assert text.count("\n") <= LINES_PER_MODULE_MAX
    assert not any(mark in text for mark in ("FIXME", "TODO", "XXX "))


SHARED_NAMES: dict[str, str] = {}
"""Public class names with several homes, each with its reason. `sync` has the client's names."""


def test_a_class_name_means_one_thing() -> None:
    """
    No two public classes share a name, but for those of the blocking client.
    """
    homes = defaultdict(list)
    for path in SOURCES:
        if "sync" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT / "src")))

    assert SHARED_NAMES.keys() == {name for name, found in homes.items() if len(found) > 1}


def test_every_package_says_what_lives_there() -> None:
    """
    The docstring of each `__init__` is the first thing that a stranger reads.
    """
    packages = [path for path in SOURCES if path.name == "__init__.py"]

    assert [] == [path for path in packages if not ast.get_docstring(ast.parse(path.read_text()))]


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_every_test_says_what_it_holds(path: Path) -> None:
    """
    The docstring of each test is a sentence: a few words that end as sentences end.
    """
    mute = [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
        if not is_sentence(ast.get_docstring(node) or "")
    ]

    assert [] == mute


def is_sentence(text: str) -> bool:
    return len(text.split()) >= WORDS_PER_SENTENCE_MIN and text.endswith((".", ":", "?"))


def test_pure_modules_are_held_to_it() -> None:
    """
    import-linter checks exactly the modules whose docstring says that they are pure.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in settings["contracts"] if each["name"].startswith("pure"))
    said = []
    for path in SOURCES:
        if PURE.search(ast.get_docstring(ast.parse(path.read_text())) or ""):
            parts = path.relative_to(ROOT / "src").with_suffix("").parts
            said.append(".".join(parts).removesuffix(".__init__"))

    assert sorted(contract["source_modules"]) == said


def test_every_request_code_is_answered_or_refused_with_a_reason() -> None:
    """
    A code is answered by the name server or a broker, pushed to clients, or refused.
    """
    from gantrymq.nameserver.handlers import NameServerHandlers

    module = ast.parse(Path(broker_routes.__file__).read_text())
    routed = {
        RequestCode[node.attr]
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Code"
    }
    table = NameServerHandlers(*[None] * 5).routes()  # type: ignore[arg-type]
    routed |= {RequestCode(code) for code in (*table.hot, *table.slow)}

    assert set(RequestCode) == routed | set(REFUSED) | TO_CLIENTS
    assert set() == routed & (set(REFUSED) | TO_CLIENTS)


def test_every_call_is_declared_once() -> None:
    """
    No two calls share a code.
    """
    declared = [call.code for call in vars(calls).values() if isinstance(call, Call)]

    assert sorted(set(declared)) == sorted(declared)
