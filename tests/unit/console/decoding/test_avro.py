"""Avro bodies: what fastavro writes is read, and no bytes make the reader run on."""

import contextlib
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.api.decoding.avro import parse_schema, read_avro
from gantrymq.console.api.decoding.limits import CannotDecode

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "paid", "type": "boolean"},
        {"name": "share", "type": "double"},
        {"name": "small", "type": "float"},
        {"name": "raw", "type": "bytes"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "before", "type": "State"},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "next", "type": ["null", "Order"]},
    ],
}
VALUE: dict[str, Any] = {
    "id": -7, "name": "Grüße", "paid": True, "share": 0.25, "small": 1.5, "raw": b"\x01\xff",
    "note": None, "tags": ["a", "b"], "counts": {"x": 3}, "state": "DONE", "before": "NEW",
    "mark": b"ok", "day": date(2026, 11, 18), "at": datetime(2026, 11, 18, 9, 30, tzinfo=UTC),
    "price": Decimal("-12.50"), "next": None,
}  # fmt: skip


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def read(body: bytes, schema: Any) -> Any:
    return read_avro(body, parse_schema(json.dumps(schema)))


def test_every_type_is_read() -> None:
    """A record with every type, a type used by its name, and a record inside of itself."""
    body = written(ORDER, VALUE | {"next": VALUE | {"note": "inner"}})

    found = read(body, ORDER)

    assert found["id"] == -7
    assert found["name"] == "Grüße"
    assert (found["paid"], found["share"], found["small"]) == (True, 0.25, 1.5)
    assert (found["raw"], found["mark"]) == ("0x01ff", "0x6f6b")
    assert (found["tags"], found["counts"]) == (["a", "b"], {"x": 3})
    assert (found["state"], found["before"]) == ("DONE", "NEW")
    assert found["day"] == "2026-11-18"
    assert found["at"] == "2026-11-18T09:30:00Z"
    assert found["price"] == "-12.50"
    assert found["next"]["note"] == "inner"


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text())))
def test_what_is_written_is_read(values: list[Any]) -> None:
    """Numbers, texts and nothing, in any order."""
    schema = {"type": "array", "items": ["null", "long", "string"]}

    assert read(written(schema, values), schema) == values


@pytest.mark.parametrize("head", [b"\x00\x00\x00\x00\x07", b"\xc3\x01" + bytes(8)])
def test_the_heads_of_registries_are_passed_over(head: bytes) -> None:
    """A schema registry's id and Avro's own single-object head may stand before the body."""
    assert read(head + written("string", "hello"), "string") == "hello"


@pytest.mark.parametrize(
    "schema, body",
    [
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}, b"\xfe" * 9),
        (ORDER, b"\x02" * 100_000),
        (
            {"type": "record", "name": "r", "fields": [{"name": "r", "type": ["null", "r"]}]},
            b"\x02" * 100_000,
        ),
        ({"type": "record", "name": "r", "fields": [{"name": "r", "type": "r"}]}, b"x"),
        ("string", b"\xfe\xff\xff\xff\x0f"),
        ("long", b"\xff" * 20),
        ("boolean", b""),
        ("boolean", b"\x01\x01"),
    ],
)
def test_hostile_bodies_are_refused(schema: Any, body: bytes) -> None:
    """Endless lists, deep records and long strings end in an error, soon."""
    with pytest.raises(CannotDecode):
        read(body, schema)


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "JSON"),
        ('{"type": "record", "name": "r"}', "fields"),
        ('"nosuch"', "nosuch"),
        ('{"type": "enum", "name": "e"}', "symbols"),
        ("[" * 200 + "]" * 200, "deep"),
        ('{"type": "array"}', "no Avro type"),
    ],
)
def test_a_wrong_schema_is_explained(text: str, said: str) -> None:
    """The error says what is missing."""
    with pytest.raises(CannotDecode, match=said):
        parse_schema(text)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Any bytes are a value or refused."""
    with contextlib.suppress(CannotDecode):
        read(body, ORDER)
