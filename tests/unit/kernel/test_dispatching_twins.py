"""Entries and rows of what was written: the compiled kernel adds what the readable one adds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import I64, hosts, properties, pure, record_items, twin

from gantrymq.kernel.records import RecordItem, Walked, encode_records, walk_records
from gantrymq.protocol.record import (
    BLANK_BYTES,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)

KERNELS = (twin, pure)
HOST = bytes(8)
BASE = 4096
PROPERTIES = b"UNIQ_KEY\x01AC11000100002A9F0000\x02TAGS\x01paid\x02KEYS\x01one two\x02"


class End:
    """Stands for the watermark of a queue."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def advance(self, value: int) -> None:
        self.values.append(value)


def queue_of(kernel: Any, stop: int = 0) -> Any:
    queue = kernel("QueueTail")()
    queue.next = queue.stop = stop
    queue.tail, queue.end = bytearray(), End()
    return queue


def outcome(
    kernel: Any, data: bytes, base: int, stops: dict[tuple[bytes, int], int], rows_from: int | None
) -> Any:
    """All that a kernel changes when it dispatches, in values that can be compared."""
    queues = {key: queue_of(kernel, stop) for key, stop in stops.items()}
    names = {queue: key for key, queue in queues.items()}
    rows = None if rows_from is None else kernel("KeyRows")()
    reached, touched, last_ms = kernel("dispatch_records")(data, base, queues, rows, rows_from or 0)
    state = {key: (queue.stop, queue.next, bytes(queue.tail)) for key, queue in queues.items()}
    large = kernel("publish_queues")(touched, 40)
    ends = {key: (queue.next, queue.end.values) for key, queue in queues.items()}
    return (
        reached, [names[queue] for queue in touched], last_ms, state,
        [names[queue] for queue in large], ends, None if rows is None else rows.columns(len(rows)),
    )  # fmt: skip


def both(*arguments: Any) -> Any:
    first, second = (outcome(kernel, *arguments) for kernel in KERNELS)
    assert first == second
    return first


def item(
    queue_id: int, offset: int, sys_flag: int = 0, topic: bytes = b"orders", body: bytes = b"x"
) -> RecordItem:
    return topic, queue_id, offset, 0, sys_flag, 3, HOST, 0, 0, body, PROPERTIES


def written(items: list[RecordItem], base: int = BASE) -> bytes:
    return encode_records(items, base, 1_700_000_000_000, HOST)[0]


@given(
    st.lists(record_items(), max_size=6), st.integers(0, 1 << 40), hosts, st.integers(0, 1 << 45),
    st.one_of(st.none(), st.just(-1), st.integers(0, 1 << 40)), st.integers(0, 60), st.data(),
)  # fmt: skip
def test_whatever_is_written_is_dispatched_alike(
    items: list[RecordItem], base: int, host: bytes, store_ms: int, rows_from: int | None,
    missing: int, choose: st.DataObject,
) -> None:  # fmt: skip
    """
    Also with queues that are not known or stand elsewhere, and when the end is missing.
    """
    data = encode_records(items, base, store_ms, host)[0]
    stops = {
        (item[0], item[1]): item[2] if choose.draw(st.booleans()) else choose.draw(I64)
        for item in items
        if item[2] < (1 << 63) - 1 and choose.draw(st.integers(0, 4))
    }
    both(data[: len(data) - missing] if missing < len(data) else data, base, stops, rows_from)


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 2)), max_size=30))
def test_messages_of_several_queues_are_dispatched_in_one_go(places: list[Any]) -> None:
    """
    Each queue gets its own entries, in order, and is named once.
    """
    stops: dict[Any, int] = dict.fromkeys(places, 7)
    at = dict(stops)
    items = []
    for topic, queue_id in places:
        items.append(item(queue_id, at[topic, queue_id], topic=topic))
        at[topic, queue_id] += 1
    data = written(items)
    reached, touched, _, state, large, ends, (hashes, offsets, _) = both(data, BASE, stops, -1)

    assert reached == BASE + len(data)
    assert touched == list(dict.fromkeys(places))
    assert {key: stop for key, (stop, _, _) in state.items()} == at
    assert all(len(tail) == 20 * (stop - 7) for stop, _, tail in state.values())
    assert {key for key in touched if at[key] - 7 > 2} == set(large)
    assert all(ends[key] == (at[key], [at[key]]) for key in touched)
    assert len(hashes) == 4 * 3 * len(places)
    assert len(offsets) == 8 * 3 * len(places)


@pytest.mark.parametrize(
    "odd",
    [
        item(0, 2, TRANSACTION_PREPARED),
        item(0, 2, TRANSACTION_ROLLBACK),
        item(0, 3),
        item(0, 1),
        item(9, 0),
        item(0, 2, topic=b"unknown"),
        item(0, 0, topic=b"SCHEDULE_TOPIC_XXXX"),
    ],
    ids=["half", "rollback", "hole", "again", "new queue", "new topic", "delayed"],
)
def test_what_is_not_plain_ends_it(odd: RecordItem) -> None:
    """
    What lies before it is dispatched, and nothing from it on.
    """
    before = [item(0, 0), item(0, 1)]
    data = written([*before, odd, item(0, 2)])
    stops = {(b"orders", 0): 0, (b"SCHEDULE_TOPIC_XXXX", 0): 0}
    reached, touched, _, state, *_ = both(data, BASE, stops, -1)

    assert reached == BASE + len(written(before))
    assert touched == [(b"orders", 0)]
    assert state[b"orders", 0][0] == 2


def test_a_committed_transaction_is_plain() -> None:
    """
    A committed message is visible like any other one; only halves and rollbacks are not.
    """
    data = written([item(0, 0, TRANSACTION_COMMIT)])
    assert both(data, BASE, {(b"orders", 0): 0}, -1)[0] == BASE + len(data)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=12), properties(), I64, I64), max_size=12))
def test_index_rows_are_the_same(pending: list[tuple[bytes, bytes, int, int]]) -> None:
    """
    A row for each key, in order; the first ones can be dropped.
    """
    records: list[Walked] = [
        (topic, 0, 0, at, 0, 0, 0, ms, props) for topic, props, at, ms in pending
    ]
    made = []
    for kernel in KERNELS:
        rows = kernel("KeyRows")()
        rows.add(records)
        columns = rows.columns(len(rows))
        half = len(rows) // 2
        first = rows.columns(half)
        rows.drop(half)
        assert tuple(a + b for a, b in zip(first, rows.columns(len(rows)), strict=True)) == columns
        made.append(columns)
    assert made[0] == made[1]


def test_rows_behind_a_log_offset_only() -> None:
    """
    A start indexes nothing twice.
    """
    data = written([item(0, 0), item(0, 1), item(0, 2)])
    records = walk_records(data, BASE, len(data) + BLANK_BYTES, False).records
    columns = both(data, BASE, {(b"orders", 0): 0}, records[0][3])[-1]
    assert len(columns[0]) == 4 * 3 * 2
