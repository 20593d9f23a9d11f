"""Parts of lists: words in names, and parts that are never empty before the end."""

import pytest

from gantrymq.console.api.paging import begin_of_last, matches, part


@pytest.mark.parametrize(
    "search, expected",
    [("", True), ("ORD", True), ("new ord", True), ("orders-new ", True), ("orders paid", False)],
)
def test_words_in_names(search: str, expected: bool) -> None:
    """Every word has to be in the name, in any order and whatever the case."""
    assert expected == matches("orders-new", search)


def test_parts() -> None:
    """A part begins where it is asked for, and one beyond the end is the last one."""
    rows = list(range(7))

    assert [0, 1, 2] == part(rows, 0, 3)
    assert [6] == part(rows, 6, 3)
    assert [6] == part(rows, 100, 3)
    assert [] == part([], 5, 3)
    assert (0, 3, 6) == (begin_of_last(0, 3), begin_of_last(6, 3), begin_of_last(7, 3))
