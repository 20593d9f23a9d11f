"""Each invariant holds for a good history and is broken by a bad one; the page has all of them."""

from pathlib import Path
from typing import Any

import pytest

from gantrymq.testing import invariants
from gantrymq.testing.invariants import INVARIANTS, Invariant, SendTimes

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
NUMBERS = {"a": SendTimes(1, 1), "b": SendTimes(2, 2), "maybe": SendTimes(0, 9, acknowledged=False)}

# An invariant, what holds, what does not, and who is to blame.
CASES: list[tuple[str, tuple[Any, ...], tuple[Any, ...], list[str]]] = [
    ("acknowledged_is_kept", (["a"], {"a", "b"}), (["a", "b"], {"a"}), ["b"]),
    ("nothing_from_nowhere", (["a", "a"], {"a", "b"}), (["a", "x"], {"a"}), ["x"]),
    ("refused_is_not_stored", (["a"], {"b"}), (["a"], {"a"}), ["a"]),
    ("sent_once_stored_once", (["a", "b"],), (["a", "b", "a", "a"],), ["a", "a"]),
    ("order_is_kept", (["a", "maybe", "b", "a"], NUMBERS), (["b", "a"], NUMBERS), ["a"]),
    ("nothing_before_its_time", ([("a", 2.0, 2.0)],), ([("a", 1.5, 2.0)],),
     ["a came 0.500 s early"]),
    ("withdrawn_is_never_delivered", ({"a"}, ["b"]), ({"a"}, ["b", "a"]), ["a"]),
    ("one_worker_a_key", ("k", ["x"]), ("k", ["x", "y"]), ["x and y work on k"]),
    ("progress_is_not_ahead", ({"q": 3, "gone": 9}, {"q": 3}), ({"q": 4}, {"q": 3}),
     ["q is read up to 4 and ends at 3"]),
    ("members_agree", ({"x": b"abc", "y": b"ab"},), ({"x": b"abc", "y": b"aX"},), ["y at 1"]),
    ("one_leader_a_term", ([(1, "x"), (2, "y"), (2, "y")],), ([(2, "x"), (2, "y")],),
     ["x and y lead in term 2"]),
    ("committed_never_changes", ("x", 10, b"abc", b"ab"), ("x", 10, b"abc", b"aXc"),
     ["x has something else at 11"]),
    ("committed_is_held", ("x", 10, ["x", "y"], 3), ("x", 10, ["x"], 3),
     ["x committed 10, which only x had"]),
    ("old_leaders_stop", ({"x": 1.9}, 2.0), ({"x": 2.1}, 2.0),
     ["x serves for 2.1 s without a majority"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "good", "bad", "culprits"), CASES, ids=[c[0] for c in CASES])
def test_it_holds_or_says_who_broke_it(
    name: str, good: tuple[Any, ...], bad: tuple[Any, ...], culprits: list[str]
) -> None:
    """Its name and the culprits are the text that stories, chaos runs and demo print."""
    invariant: Invariant[...] = getattr(invariants, name)

    assert [] == invariant.broken(*good)
    assert [f"{invariant.name}: {', '.join(culprits)}"] == invariant.broken(*bad)


def test_a_leader_has_all() -> None:
    """The one that takes its answer from a log."""
    leaders_have_all = invariants.leaders_have_all

    assert [] == leaders_have_all.culprits("x", 10, has_it=True)
    assert ["x leads without what was committed up to 10"] == leaders_have_all.culprits(
        "x", 10, has_it=False
    )


def test_every_one_is_tried() -> None:
    """None is added without a case above."""
    names = {name for name, *_ in CASES} | {"leaders_have_all"}

    assert {getattr(invariants, name) for name in names} == set(INVARIANTS)


def test_many_culprits_are_counted() -> None:
    """The text stays short."""
    (text,) = invariants.acknowledged_is_kept.broken(map(str, range(9)), set())

    assert text == "acknowledged is kept: 0, 1, 2, 3, 4 and 4 more"


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda each: each.name)
def test_the_page_has_it(invariant: Invariant[...]) -> None:
    """docs/reliability.md says what always holds, in the words of the table."""
    assert f"| {invariant.name} | {invariant.sentence} |" in PAGE.read_text()
