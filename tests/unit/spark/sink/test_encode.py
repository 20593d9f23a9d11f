"""Rows to batch sends: what a broker would read out of them, compared with what went in."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gantrymq.client.produce.epochs import stable_id
from gantrymq.protocol import batch, properties
from gantrymq.spark.sink.encode import (
    BAD_DELAY,
    GOOD,
    LARGE_BODY,
    LARGE_PROPERTIES,
    NO_BODY,
    SEPARATOR,
    TWO_DELAYS,
    encode,
    split_sends,
    stable_ids,
)

PREFIX = "0123456789ABCDEF"
MAP = pa.map_(pa.string(), pa.string())


def rows(**columns: Any) -> pa.RecordBatch:
    arrays = {
        name: value if isinstance(value, pa.Array) else pa.array(value)
        for name, value in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def sent(table: pa.RecordBatch, size_max: int = 1 << 20) -> list[tuple[int, bytes, dict[str, str]]]:
    """Flag, body and properties of every message, as a broker reads them."""
    encoded = encode(table, PREFIX, 0)
    targets = np.where(encoded.faults == GOOD, 0, -1)
    found = []
    for send in split_sends(encoded, targets, size_max):
        items = batch.decode(bytes(send.body))
        found += [(item.flag, item.body, properties.decode(item.properties)) for item in items]
    return found


def test_every_column_arrives() -> None:
    """Body, tags, keys, properties, flag, sharding key: each where a consumer looks for it."""
    table = rows(
        body=["one", "zwölf"],
        tags=["t", None],
        keys=["k1 k2", ""],
        flag=pa.array([7, None], pa.int32()),
        shardingKey=["s", None],
        properties=pa.array([[("colour", "red"), ("size", "ü")], None], MAP),
    )

    assert sent(table) == [
        (
            7,
            b"one",
            {
                "UNIQ_KEY": stable_id(PREFIX, 0), "TAGS": "t", "KEYS": "k1 k2",
                "__SHARDINGKEY": "s", "colour": "red", "size": "ü",
            },
        ),
        (0, "zwölf".encode(), {"UNIQ_KEY": stable_id(PREFIX, 1)}),
    ]  # fmt: skip


def test_lists_of_keys_and_bytes_are_taken() -> None:
    """Keys may be a list, a body may be bytes of any value."""
    kind = pa.list_(pa.field("element", pa.string(), nullable=False))
    table = rows(body=[b"", bytes(range(256))], keys=pa.array([["x"], ["a", "b"]], kind)).slice(1)
    ((_, body, found),) = sent(table)

    assert body == bytes(range(256))
    assert found["KEYS"] == "a b"


def test_what_the_system_owns_is_left_out_of_properties() -> None:
    """A frame that was read from a topic can be written: its columns say what counts."""
    entries = [("TAGS", "old"), ("UNIQ_KEY", "x"), ("CLUSTER", "c"), ("mine", "1"), ("", "y"),
               ("empty", "")]  # fmt: skip
    ((_, _, found),) = sent(rows(body=["b"], properties=pa.array([entries], MAP)))

    assert found == {"UNIQ_KEY": stable_id(PREFIX, 0), "mine": "1"}


def test_sliced_batches_are_read_where_they_begin() -> None:
    """Spark hands slices of larger arrays over."""
    table = rows(
        body=[f"b{number}" for number in range(6)],
        tags=[f"t{number}" for number in range(6)],
        properties=pa.array([[("n", str(number))] for number in range(6)], MAP),
    ).slice(2, 3)
    found = sent(table)

    assert [body for _, body, _ in found] == [b"b2", b"b3", b"b4"]
    assert [each["TAGS"] + each["n"] for _, _, each in found] == ["t22", "t33", "t44"]


def test_delays_become_the_properties_that_ask_for_them() -> None:
    """A level, a while in seconds, a time; a row without one does not wait."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = rows(
        body=["a", "b", "c", "d"],
        delayLevel=pa.array([3, None, None, 0], pa.int32()),
        delaySeconds=pa.array([None, 1.5, None, None], pa.float64()),
        deliverTime=pa.array([None, None, moment, None], pa.timestamp("us", "UTC")),
    )
    encoded = encode(table, PREFIX, 0)
    found = [each for _, _, each in sent(table)]

    assert list(encoded.timed) == [True, True, True, False]
    assert found[0]["DELAY"] == "3"
    assert found[1]["TIMER_DELAY_MS"] == "1500"
    assert found[2]["TIMER_DELIVER_MS"] == str(round(moment.timestamp() * 1000))
    assert set(found[3]) == {"UNIQ_KEY"}


@pytest.mark.parametrize(
    "columns, fault",
    [
        ({"body": pa.array([None], pa.string())}, NO_BODY),
        ({"body": [""]}, NO_BODY),
        ({"body": [b"x" * (4 << 20)]}, LARGE_BODY),
        ({"body": ["b"], "tags": ["a\x01b"]}, SEPARATOR),
        ({"body": ["b"], "keys": ["a\x02b"]}, SEPARATOR),
        ({"body": ["b"], "properties": pa.array([[("n", "a\x00b")]], MAP)}, SEPARATOR),
        ({"body": ["b"], "keys": ["k" * 40_000]}, LARGE_PROPERTIES),
        ({"body": ["b"], "delayLevel": [1], "delaySeconds": [2]}, TWO_DELAYS),
        ({"body": ["b"], "delaySeconds": [-1]}, BAD_DELAY),
    ],
)
def test_rows_that_no_broker_takes_are_marked(columns: dict[str, Any], fault: int) -> None:
    """The other rows of the batch are not touched by it."""
    bad = rows(**columns)
    good = rows(**{name: pa.nulls(1, bad.column(name).type) for name in bad.schema.names})
    good = good.set_column(
        good.schema.get_field_index("body"), "body",
        pa.array(["fine"]).cast(bad.column("body").type),
    )  # fmt: skip
    both = pa.Table.from_batches([bad, good.cast(bad.schema)]).combine_chunks().to_batches()[0]

    assert list(encode(both, PREFIX, 0).faults) == [fault, GOOD]
    assert [body for _, body, _ in sent(both)] == [b"fine"]


def test_sends_keep_to_their_size_and_to_one_target() -> None:
    """Rows of a target stay in order; a message larger than a send goes alone."""
    bodies = [f"{number:03}" * (400 if number == 5 else 1) for number in range(10)]
    encoded = encode(rows(body=bodies), PREFIX, 0)
    targets = np.array([0, 1, 0, 1, 0, 1, -1, 1, 0, 1])
    found = split_sends(encoded, targets, 170)
    seen: dict[int, list[bytes]] = {}
    for send in found:
        items = batch.decode(bytes(send.body))
        assert len(items) == send.count
        assert send.count == 1 or len(send.body) <= 170
        assert properties.decode(items[-1].properties)["UNIQ_KEY"] == send.last_id
        seen.setdefault(send.target, []).extend(item.body for item in items)

    assert seen == {
        target: [bodies[row].encode() for row in np.flatnonzero(targets == target)]
        for target in (0, 1)
    }
    assert len(found) > 3


def test_ids_of_many_rows_are_those_of_each() -> None:
    """The quick way and the plain one agree, over the border of two bytes too."""
    found = stable_ids(PREFIX, 65_530, 12)
    assert [row.tobytes().decode() for row in found] == [
        stable_id(PREFIX, number) for number in range(65_530, 65_542)
    ]


def test_no_rows_are_no_messages() -> None:
    """Spark may hand over an empty batch."""
    empty = rows(body=pa.array([], pa.string()), properties=pa.array([], MAP))
    assert sent(empty) == []
