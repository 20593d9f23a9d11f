"""SQL conditions: what they mean, what is refused, and where the mark stands."""

import json
from pathlib import Path
from typing import Any

import pytest
import sql_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from gantrymq.filter import BadSql, condition
from gantrymq.filter.parser import DEPTH_MAX, NODES_MAX
from gantrymq.filter.sql import CACHED_MAX, Condition
from gantrymq.filter.tokens import CHARACTERS_MAX
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.properties import encode

ANSWERS: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parent / "rocketmq_answers.json").read_text()
)
"""What RocketMQ 5.3.3 itself said to these conditions and properties."""

BEHIND_THE_END = {"c = 'it's'", "a = 5)", "a + 1 = 6", "a LIKES", "a-b = 1"}
"""RocketMQ reads these up to where they stop making sense, and ignores the rest."""
NAMES_HERE = {"contains = 1"}
"""Words that RocketMQ 5 reserves and 4.9 does not; here they may be names."""


def matches(sql: str, **properties: str) -> bool:
    return condition(sql).matches(encode(properties).encode())


@pytest.mark.parametrize("row", ANSWERS, ids=[row["sql"] for row in ANSWERS])
def test_a_condition_means_what_it_means_to_rocketmq(row: dict[str, Any]) -> None:
    """
    Every recorded message matches exactly where RocketMQ's own evaluator said TRUE; what it
    refuses is refused. The only differences are the ones named above.
    """
    refused = row.get("refused") and row["sql"] not in NAMES_HERE
    if refused or row["sql"] in BEHIND_THE_END:
        with pytest.raises(BadSql):
            condition(row["sql"])
        return
    found = [matches(row["sql"], **properties) for properties, _ in row.get("messages", ())]

    assert [said is True for _, said in row.get("messages", ())] == found


@settings(max_examples=600, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_compiled_condition_agrees_with_a_slow_one(rng: Any) -> None:
    """
    For any condition and any properties the generated code answers what an evaluator does that
    follows RocketMQ's classes step by step.
    """
    tree = reference.random_tree(rng)
    sql = reference.written(tree, rng)
    messages = [reference.random_properties(rng) for _ in range(4)]
    try:
        reference.check(tree)
    except reference.JavaError:
        with pytest.raises(BadSql):
            condition(sql)
        return
    expected = [reference.matches(tree, properties) for properties in messages]

    assert expected == [matches(sql, **properties) for properties in messages]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab5 '()=<>-+,.%_/*$\nNOTINLIKE", max_size=30))
def test_any_text_is_read_or_refused(sql: str) -> None:
    """
    Whatever a client sends as a condition, it is a condition or a BadSql, and nothing else.
    """
    try:
        outcome = condition(sql).matches(b"a\x015\x02")
    except BadSql as error:
        outcome = 0 <= error.at <= len(sql)

    assert isinstance(outcome, bool)


@pytest.mark.parametrize(
    "pattern, value, expected",
    [
        ("a%", "abc", True),
        ("a%", "ba", False),
        ("%c", "abc", True),
        ("%b%", "abc", True),
        ("a_c", "abc", True),
        ("a_c", "ac", False),
        ("_", "é", True),
        ("%", "anything\nat all", True),
        ("a.c", "abc", False),
        ("ab%bc", "abc", False),
        ("ab%bc", "abbc", True),
        ("%ab%ab%", "aab", False),
        ("%ab%ab%", "abab", True),
        ("it''s", "it's", True),
    ],
)
def test_like_knows_percent_and_underscore(pattern: str, value: str, expected: bool) -> None:
    """
    % is any text, also none; _ is one character; everything else is itself.
    """
    assert (expected, not expected) == (
        matches(f"a LIKE '{pattern}'", a=value),
        matches(f"a NOT LIKE '{pattern}'", a=value),
    )


def test_like_takes_an_escape() -> None:
    """
    Behind the escape character % and _ are themselves.
    """
    assert [True, False] == [
        matches("a LIKE '5!%%' ESCAPE '!'", a=value) for value in ("5%x", "5x")
    ]


def test_like_of_a_missing_property_is_unknown() -> None:
    """
    As everywhere in SQL; CONTAINS and its kin are false instead, as in RocketMQ.
    """
    assert [False] * 3 == [
        matches(sql) for sql in ("a LIKE '%'", "a NOT LIKE 'x'", "NOT (a LIKE 'x')")
    ]
    assert matches("NOT (a CONTAINS 'x')")


def test_no_like_pattern_takes_forever() -> None:
    """
    A pattern that makes a backtracking matcher try all ways is answered at once.
    """
    assert not matches("a LIKE '" + "%x" * 200 + "%y'", a="x" * 20_000)


def test_a_pattern_without_end_is_refused() -> None:
    """
    It would be held against every message on the broker's loop.
    """
    with pytest.raises(BadSql, match="1000 characters"):
        condition("a LIKE '" + "%x" * 501 + "'")


def test_like_is_no_reserved_word() -> None:
    """
    A property may be called like an operator of ours; no condition of RocketMQ's changes meaning.
    """
    assert matches("like LIKE 'l%' AND escape = '1'", like="long", escape="1")


@pytest.mark.parametrize(
    "sql, at, problem",
    [
        ("", 0, "a property or a value is missing, found the end"),
        ("a == 1", 3, "a property or a value is missing, found ="),
        ("a != 1", 2, "there is no !=, write <>"),
        ("a = 1 b = 2", 6, "b stands behind the end of the condition"),
        ("a = 007", 5, "0 stands behind the end of the condition; numbers do not begin with 0"),
        ("a + 1 = 2", 2, "+ stands behind the end of the condition; there is no arithmetic"),
        ("a = 'x", 4, "the string has no closing quote"),
        ('a = "x"', 4, "strings stand in single quotes"),
        ("a = 1 /* x", 6, "the comment has no end"),
        ("a > 'x'", 4, "> compares numbers, not strings"),
        ("a > TRUE", 4, "> compares numbers, not conditions"),
        ("a = NULL", 4, "nothing equals NULL, write IS NULL"),
        ("a IN (1)", 6, "IN needs a string in single quotes, not 1"),
        ("NOT a IN ('x')", 0, "IN wants a property on its left; write x NOT IN (...)"),
        ("a BETWEEN 2 AND 1", 16, "BETWEEN wants the smaller number first"),
        ("a BETWEEN 2 OR 1", 12, "BETWEEN needs AND, not OR"),
        ("(a = 1", 6, "the parenthesis needs ), not the end"),
        ("5", 0, "this is a value, not a condition"),
        ("a IS 5", 5, "IS needs NULL, not 5"),
        ("a LIKE 5", 7, "LIKE needs a string in single quotes, not 5"),
        ("a LIKE 'x' ESCAPE 'ab'", 18, "ESCAPE wants one character"),
        ("a = 0.0", 4, "0.0 is no double above zero; write 0 for zero"),
        ("a = 9223372036854775808", 4, "9223372036854775808 is greater than 9223372036854775807"),
        ("(" * 50 + "a = 1" + ")" * 50, DEPTH_MAX, f"nested more than {DEPTH_MAX} deep"),
        (" OR ".join(["a = 1"] * 400), 3001, f"more than {NODES_MAX:,} parts"),
    ],
)
def test_a_bad_condition_is_refused_with_its_place(sql: str, at: int, problem: str) -> None:
    """
    The error names the character, says what is wrong there and carries RocketMQ's code.
    """
    with pytest.raises(BadSql) as caught:
        condition(sql)

    assert (at, problem) == (caught.value.at, caught.value.problem)
    assert ResponseCode.SUBSCRIPTION_PARSE_FAILED == caught.value.code


def test_the_caret_stands_below_the_place() -> None:
    """
    Far into a long condition only the neighbourhood is shown.
    """
    with pytest.raises(BadSql) as caught:
        condition("price > 1 AND " * 20 + "a == 1 AND b = 2")

    _, shown, caret = str(caught.value).split("\n")
    assert "= 1 AND b" == shown[caret.index("^") :][:9]


def test_a_condition_has_a_largest_size() -> None:
    """
    Nobody can keep a broker busy with one endless condition.
    """
    with pytest.raises(BadSql, match="more than 65,536 characters"):
        condition("a = '" + "x" * CHARACTERS_MAX + "'")


def test_chains_of_comparisons_are_bounded_too() -> None:
    """
    Every comparison in a row nests one deeper.
    """
    with pytest.raises(BadSql, match=f"nested more than {DEPTH_MAX} deep"):
        condition("a" + " IS NULL" * 50)


def test_the_last_property_of_a_name_counts() -> None:
    """
    As in Java, where later ones replace earlier ones; a name inside another is none.
    """
    raw = b"a\x011\x02aa\x013\x02a\x012\x02"

    assert [False, True, True] == [
        condition(f"{name} = '{value}'").matches(raw)
        for name, value in (("a", 1), ("a", 2), ("aa", 3))
    ]


def test_conditions_are_remembered_also_bad_ones() -> None:
    """
    A heartbeat that repeats a condition does not have it read again.
    """
    assert condition("a = 'once'") is condition("a = 'once'")
    caught = []
    for _ in range(2):
        with pytest.raises(BadSql) as error:
            condition("a = = 'once'")
        caught.append(error.value)
    assert caught[0] is caught[1]
    assert CACHED_MAX >= 100


def test_a_condition_knows_its_size_and_its_rare_words() -> None:
    """
    Whoever asks many messages plans by the size; a client asks whether a broker has the words.
    """
    made = Condition("a LIKE 'x' OR b CONTAINS 'y' AND c = 1")

    assert (9, {"LIKE", "CONTAINS"}) == (made.weight, set(made.words))
