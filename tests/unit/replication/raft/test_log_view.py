"""The log as the rules know it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.replication.raft.log_view import EpochStart, LogView, common_offset

Terms = list[int]


def build(terms: Terms, first: int = 0) -> LogView:
    """A log of one-byte records with these terms."""
    log = LogView()
    for term in terms:
        log = log.grow(term, 1)
    return log.note_synced(log.end).drop_before(first) if first else log


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[Terms, Terms]:
    """Two logs as raft leaves them: equal up to a point, then no term in common."""
    rising = st.lists(st.integers(0, 2), max_size=6)
    shared, left, right = draw(rising), draw(rising), draw(rising)

    def sums(steps: Terms, start: int, pace: int) -> Terms:
        terms = []
        for step in steps:
            start += step * pace
            terms.append(start)
        return terms

    common = sums(shared, 1, 2)
    last = common[-1] if common else 1
    mine = sums(left, last, 2)
    theirs = sums(right, last + 1, 2)
    return common + mine, common + theirs


@given(two_logs())
def test_two_tables_show_where_the_logs_part(logs: tuple[Terms, Terms]) -> None:
    """
    The common offset is the length of the longest common prefix.
    """
    one, other = logs
    prefix = 0
    while prefix < min(len(one), len(other)) and one[prefix] == other[prefix]:
        prefix += 1

    assert prefix == common_offset(build(one), build(other))
    assert prefix == common_offset(build(other), build(one))
    assert prefix == build(one).agreement(0, len(other), build(other).epochs)


def test_a_term_is_looked_up_by_the_record_that_ends_there() -> None:
    """
    An offset between two terms belongs to the record before it.
    """
    log = LogView().grow(1, 100).grow(3, 50)

    assert [0, 1, 1, 3, 3] == [log.term_before(offset) for offset in (0, 1, 100, 101, 150)]
    assert log.holds(100, 1)
    assert not log.holds(100, 3)
    assert not log.holds(151, 3)


def test_a_cut_drops_later_terms() -> None:
    """
    What is cut away leaves no row in the table, and is no longer synced.
    """
    log = LogView().grow(1, 100).grow(3, 50).note_synced(150).truncate(100)

    assert LogView(0, 100, 100, (EpochStart(1, 0),)) == log


def test_retention_keeps_the_term_before_the_first_byte() -> None:
    """
    A follower that ends where the log begins can still be compared.
    """
    log = LogView().grow(1, 100).grow(3, 50).grow(4, 10).note_synced(160)

    assert log.drop_before(100).holds(100, 1)
    assert (EpochStart(3, 100), EpochStart(4, 150)) == log.drop_before(120).epochs


def test_a_follower_behind_retention_has_nothing_in_common() -> None:
    """
    Its log has to begin anew; one that ends exactly there does not.
    """
    leader = build([1, 1, 2, 2], first=2)

    assert common_offset(leader, LogView()) is None
    assert common_offset(leader, build([1])) is None
    assert 2 == common_offset(leader, build([1, 1]))


def test_newer_logs_are_those_with_the_later_term_then_the_longer_ones() -> None:
    """
    The rule by which votes are refused.
    """
    log = build([1, 2])

    assert log.is_newer_than(9, 1)
    assert log.is_newer_than(1, 2)
    assert not log.is_newer_than(2, 2)
    assert not log.is_newer_than(1, 3)


def test_a_table_that_does_not_cover_the_log_is_refused() -> None:
    """
    Bytes without a term cannot be compared.
    """
    with pytest.raises(ValueError, match="epoch table"):
        LogView(0, 10, 0)
    with pytest.raises(ValueError, match="synced"):
        LogView(0, 10, 11, (EpochStart(1, 0),))


@given(st.lists(st.integers(0, 2), max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_the_rows_of_a_range_are_those_of_its_bytes(steps: Terms, start: int, size: int) -> None:
    """
    A range is sent with the rows of exactly the terms of its bytes.
    """
    terms = [1 + sum(steps[: index + 1]) for index in range(len(steps))]
    end = min(start + size, len(terms))
    start = min(start, end)

    rows = build(terms).epochs_of(start, end)

    assert sorted(set(terms[start:end])) == [row.term for row in rows]
