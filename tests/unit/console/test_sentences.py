"""What the admin client says in English, in Chinese."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import gantrymq
from gantrymq.console.texts import Texts
from gantrymq.console.texts.sentences import (
    CHINESE,
    SentenceTable,
    acts,
    bodies,
    findings,
    histories,
    jobs,
    progress,
    refusals,
    servers,
)

ROOT: Final = Path(gantrymq.__file__).parent
SOURCES: Final = (
    ROOT / "client" / "admin",
    ROOT / "client" / "core",
    ROOT / "remoting",
    ROOT / "base",
    *(ROOT / "console" / each for each in ("api", "access", "pages")),
)
BESIDE: Final = (ROOT / "console" / "app.py", ROOT / "console" / "jobs.py")
OF_MSGSPEC: Final = {"Expected", "got", "Invalid", "enum", "value", "Object", "contains",
                     "unknown", "missing", "required"}  # fmt: skip
CJK: Final = re.compile(r"[\u4e00-\u9fff]")
TABLES: Final = {
    pattern: told
    for table in (findings, progress, histories, acts, refusals, bodies, jobs, servers)
    for pattern, told in table.SENTENCES.items()
}


def test_a_pattern_takes_names_numbers_and_forms() -> None:
    """
    `{n:d}` is a number, `[is|are]` one of both, `[s]` may be missing.
    """
    table = SentenceTable({"{n:d} member[s] of {group} [is|are] down": "{group}: {n} fehlen"})
    assert table("2 members of billing are down") == "billing: 2 fehlen"
    assert table("1 member of a.b (c) is down") == "a.b (c): 1 fehlen"
    assert table("1,000 members of a are down") == "a: 1,000 fehlen"
    for other in ("no members of a are down", "2 members of a are down again", ""):
        assert table(other) == other


def test_a_sentence_within_a_sentence_is_translated() -> None:
    """
    Where the pattern says that it is one: names and reasons of others stay as they are.
    """
    table = SentenceTable({"{queue}: {why:s}": "{queue} - {why}"}, {"no member runs": "niemand da"})
    assert table("no member runs: no member runs") == "no member runs - niemand da"


def test_braces_in_names_are_text() -> None:
    """A client id may have any character."""
    assert CHINESE("does not answer: {0} {x}") == "没有应答：{0} {x}"


@pytest.mark.parametrize("pattern", TABLES)
def test_each_translation_uses_every_value(pattern: str) -> None:
    """Nothing that the English tells is left out."""
    holes = re.findall(r"\{(\w+)(?::[ds])?\}", pattern)
    assert len(set(holes)) == len(holes)
    assert sorted(set(holes)) == sorted(set(re.findall(r"\{(\w+)\}", TABLES[pattern])))


@pytest.mark.parametrize("pattern", TABLES)
def test_each_pattern_is_what_somebody_says(pattern: str, words_said: set[str]) -> None:
    """Every word of it stands in a text of the sources: who changes one changes both."""
    words = set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\{.*?\}|\[.*?\]", " ", pattern)))
    assert words <= words_said, words - words_said


@pytest.fixture(scope="module")
def words_said() -> set[str]:
    """The words of all texts of the admin client, the API and what they stand on."""
    paths = [*BESIDE, *(path for folder in SOURCES for path in folder.rglob("*.py"))]
    texts = [
        node.value
        for path in [*paths, ROOT / "console" / "clusters.py"]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    words = set(re.findall(r"[A-Za-z]{3,}", " ".join(texts)))
    return words | {f"{word}s" for word in words} | OF_MSGSPEC


SAID: Final = [
    "orders@a:0: stuck: nothing finished for 90 s (held by c1)",
    "orders@a:0, orders@a:1 and 3 more: no member says that it holds it",
    "orders@a:0 of billing, held by c1, c2: not pulled for 40 s",
    "orders@a:3 is held by c1, stuck: offset 17 holds up all behind it: look at that process",
    "3 messages of orders@a:0 were deleted before billing read them: it asked for offset 0 and "
    "goes on at 3",
    "orders: more consumers: 1 for 4 queues, up to 3 more would help",
    "waits for its producer to decide, asked 3 times so far",
    "given back after 1 delivery: TimeoutError: bank; waits for the next",
    "dead after 16 deliveries (the group's limit: 16)",
    "producer group shop rolled back the transaction when asked",
    "sent by group shop in 3 ms, stored less safely than asked for",
    "ready for delivery 3: the group stands at 7 in orders@a:0, the message is next",
    "acknowledged: the group stands at 8 in orders@a:0",
]


@pytest.mark.parametrize("sentence", SAID)
def test_what_groups_and_messages_do_is_told_in_chinese(sentence: str) -> None:
    """No English is left but names, reasons that programs gave, and words of RocketMQ."""
    told = Texts("zh").told(sentence)
    assert CJK.search(told)
    rest = re.sub(r"orders@a:\d|TimeoutError: bank|\b(orders|billing|shop|c1|c2)\b", "", told)
    assert not re.findall(r"[A-Za-z]+", rest), told
    assert Texts("en").told(sentence) == sentence
