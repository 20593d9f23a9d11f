"""Which queue, which broker, again or not: the pure rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.sending.latency_fault import TABLES, FaultTable
from gantrymq.client.sending.send_policy import (
    BUSY_CODES,
    RETRY_CODES,
    STATUS_BY_CODE,
    next_index,
    sharded,
    sharded_index,
)
from gantrymq.model import Queue

BROKERS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(BROKERS, st.integers(0, 1000))
def test_queues_take_turns(brokers: list[str], cursor: int) -> None:
    """
    Successive turns choose every queue once.
    """
    chosen = [next_index(brokers, cursor + turn) for turn in range(len(brokers))]

    assert sorted(chosen) == list(range(len(brokers)))


@given(BROKERS, st.integers(0, 1000), st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
def test_a_broker_that_failed_is_used_only_when_there_is_no_other(
    brokers: list[str], cursor: int, failed: list[str]
) -> None:
    """
    A queue of a failed broker is chosen only when all brokers have failed.
    """
    chosen = brokers[next_index(brokers, cursor, failed)]

    assert chosen not in failed or set(brokers) <= set(failed)
    assert chosen != failed[-1] or set(brokers) == {failed[-1]}


@given(BROKERS, st.integers(0, 1000), st.sets(st.sampled_from("abc")))
def test_an_available_broker_is_preferred(
    brokers: list[str], cursor: int, available: set[str]
) -> None:
    """
    A queue of an available broker is preferred.
    """
    chosen = brokers[next_index(brokers, cursor, (), available.__contains__)]

    assert chosen in available or not available & set(brokers)


@pytest.mark.parametrize(
    "key, count, expected",
    [("TagA", 4, 3), ("a very long tag name", 8, 6), ("", 4, 0), ("标签", 7, 4)],
)
def test_a_sharding_key_goes_where_rocketmqs_hash_selector_sends_it(
    key: str, count: int, expected: int
) -> None:
    """
    The queue of a sharding key is that of RocketMQ's SelectMessageQueueByHash.
    """
    assert sharded_index(key, count) == expected


@given(st.text(), st.integers(1, 64))
def test_every_key_has_a_queue(key: str, count: int) -> None:
    """
    Every sharding key has a queue.
    """
    queues = [Queue("T", "a", number) for number in range(count)]

    assert sharded(queues, key) in queues


def test_the_codes_worth_another_try_are_rocketmqs() -> None:
    """
    The response codes that are retried, and those that count as stored, are RocketMQ's.
    """
    assert {1, 14, 16, 17, 204, 205} == {int(code) for code in RETRY_CODES}
    assert {2, 1500} == {int(code) for code in BUSY_CODES}
    assert {0, 10, 11, 12} == set(STATUS_BY_CODE)


@pytest.mark.parametrize(
    "table, latency_ms, pause_ms",
    [
        ("4.9", 49, 0), ("4.9", 549, 0), ("4.9", 550, 30_000), ("4.9", 1_000, 60_000),
        ("4.9", 2_000, 120_000), ("4.9", 3_000, 180_000), ("4.9", 15_000, 600_000),
        ("5.1.4", 549, 0), ("5.1.4", 550, 2_000), ("5.1.4", 1_800, 5_000), ("5.1.4", 3_000, 6_000),
        ("5.1.4", 5_000, 10_000), ("5.1.4", 15_000, 30_000),
    ],
)  # fmt: skip
def test_a_slow_broker_is_avoided_as_long_as_the_table_says(
    table: str, latency_ms: int, pause_ms: int
) -> None:
    """
    The time for which a slow broker is avoided is that of RocketMQ's latency table.
    """
    assert TABLES[table].avoid_ms(latency_ms) == pause_ms


@pytest.mark.parametrize("table, seconds", [("4.9", 600), ("5.1.4", 10)])
def test_a_failure_counts_as_a_very_slow_answer(table: str, seconds: int) -> None:
    """
    A failed send makes its broker unavailable as a very slow answer does.
    """
    now = [0.0]
    faults = FaultTable(TABLES[table], lambda: now[0])
    faults.record("a", 1.0, failed=True)

    now[0] = seconds - 0.001
    assert not faults.available("a")
    now[0] = float(seconds)
    assert faults.available("a")


def test_when_all_are_avoided_the_better_half_takes_turns() -> None:
    """
    When all brokers are avoided, the better half of them is used in turn.
    """
    faults = FaultTable(TABLES["4.9"], lambda: 0.0)
    for name, latency_ms in (("a", 5000), ("b", 600), ("c", 700), ("d", 20_000)):
        faults.record(name, latency_ms)

    assert {faults.least_bad() for _ in range(4)} == {"b", "c"}
    assert FaultTable(TABLES["4.9"], lambda: 0.0).least_bad() is None
