"""Protocol Buffers bodies: what Google's library writes is read, with types and without."""

import base64
import contextlib

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.api.decoding.forms import BodyForm, Schema, read_value
from gantrymq.console.api.decoding.limits import CannotDecode
from gantrymq.console.api.decoding.proto_file import parse_proto
from gantrymq.console.api.decoding.proto_types import ProtoTypes
from gantrymq.console.api.decoding.proto_wire import read_descriptors, read_proto, read_raw

FILE = """
// An order, as a shop sends it.
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
option java_package = "com.shop";

message Order {
  reserved 90 to 99, "old";
  int64 id = 1;
  string name = 2 [deprecated = true, (my.opt) = { a: 1 }];
  repeated int32 counts = 3;
  map<string, double> prices = 4;
  State state = 5;
  message Line { string article = 1; sint32 change = 2; }
  repeated Line lines = 6;
  oneof choice { bool yes = 7; bytes raw = 8; }
  fixed32 mark = 9;
  google.protobuf.Timestamp at = 10;
  enum State { option allow_alias = true; NEW = 0; DONE = 1; LOST = -1; }
  Order next = 11;
}
service Shop { rpc Buy(Order) returns (Order) { option x = 1; } }
"""
F = descriptor_pb2.FieldDescriptorProto


def descriptors() -> descriptor_pb2.FileDescriptorSet:
    """The same types, built by hand."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")

    def field(name: str, number: int, kind: int, of: str = "", many: bool = False) -> None:
        label = F.LABEL_REPEATED if many else F.LABEL_OPTIONAL
        made = order.field.add(name=name, number=number, type=kind, label=label)  # type: ignore[arg-type]
        if of:
            made.type_name = of

    field("id", 1, F.TYPE_INT64)
    field("name", 2, F.TYPE_STRING)
    field("counts", 3, F.TYPE_INT32, many=True)
    field("prices", 4, F.TYPE_MESSAGE, ".shop.Order.PricesEntry", many=True)
    field("state", 5, F.TYPE_ENUM, ".shop.Order.State")
    field("lines", 6, F.TYPE_MESSAGE, ".shop.Order.Line", many=True)
    field("yes", 7, F.TYPE_BOOL)
    field("raw", 8, F.TYPE_BYTES)
    field("mark", 9, F.TYPE_FIXED32)
    field("next", 11, F.TYPE_MESSAGE, ".shop.Order")
    line = order.nested_type.add(name="Line")
    line.field.add(name="article", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    line.field.add(name="change", number=2, type=F.TYPE_SINT32, label=F.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="PricesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_DOUBLE, label=F.LABEL_OPTIONAL)
    state = order.enum_type.add(name="State")
    for name, number in (("NEW", 0), ("DONE", 1), ("LOST", -1)):
        state.value.add(name=name, number=number)
    return files


def order() -> Message:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors().file:
        pool.Add(file)  # type: ignore[no-untyped-call]
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))()
    made.id, made.name, made.state, made.raw, made.mark = -5, "Grüße", -1, b"\x00\xff", 7  # type: ignore[attr-defined]
    made.counts.extend([1, -2, 300])  # type: ignore[attr-defined]
    made.prices["a"] = 1.5  # type: ignore[attr-defined]
    made.lines.add(article="pen", change=-3)  # type: ignore[attr-defined]
    made.next.name = "inner"  # type: ignore[attr-defined]
    return made


SEEN = {
    "id": -5, "name": "Grüße", "counts": [1, -2, 300], "prices": {"a": 1.5}, "state": "LOST",
    "lines": [{"article": "pen", "change": -3}], "raw": "0x00ff", "mark": 7,
    "next": {"name": "inner"},
}  # fmt: skip


@pytest.fixture(params=["file", "descriptors"])
def types(request: pytest.FixtureRequest) -> ProtoTypes:
    if request.param == "file":
        return parse_proto(FILE)
    return read_descriptors(descriptors().SerializeToString())


def test_every_kind_of_field_is_read(types: ProtoTypes) -> None:
    """Numbers, packed lists, maps, enums, messages inside, and a message inside of itself."""
    assert read_proto(order().SerializeToString(), types, "Order") == SEEN
    assert read_proto(order().SerializeToString(), types, "shop.Order") == SEEN


def test_a_schema_is_a_file_or_a_descriptor_set_in_base64() -> None:
    """What people paste is told apart."""
    body = order().SerializeToString()
    text = base64.encodebytes(descriptors().SerializeToString()).decode()
    for each in (FILE, text):
        assert read_value(body, Schema(form=BodyForm.PROTOBUF, text=each)) == SEEN


def test_times_of_google_are_known() -> None:
    """An import of google.protobuf.Timestamp needs no file."""
    body = b"\x52\x04\x08\x05\x10\x06"

    assert read_proto(body, parse_proto(FILE)) == {"at": {"seconds": 5, "nanos": 6}}


def test_fields_that_no_schema_names_are_shown_by_number(types: ProtoTypes) -> None:
    """A message of a newer schema loses nothing."""
    assert read_proto(b"\xf8\x01\x05", types, "Order") == {"#31": [5]}


def test_without_types_it_is_shown_by_numbers() -> None:
    """Texts and messages inside are guessed."""
    found = read_raw(order().SerializeToString())

    assert found["#2"] == ["Grüße"]
    assert found["#11"] == [{"#2": ["inner"]}]


@pytest.mark.parametrize(
    "text, said",
    [
        ("message A { B b = 1; }", "'B'"),
        ("message A {\n int32 a = x; }", "line 2"),
        ("message A { int32 a", "ends"),
        ("message { }", "not expected"),
        ("", "no message"),
        ("message A { ~ }", "line 1"),
        ("message A {" * 200, "deep"),
    ],
)
def test_a_wrong_file_is_explained(text: str, said: str) -> None:
    """The error says where."""
    with pytest.raises(CannotDecode, match=said):
        parse_proto(text).message("")


def test_an_unknown_type_is_named_with_those_there_are(types: ProtoTypes) -> None:
    """People see which names they could have meant."""
    with pytest.raises(CannotDecode, match=r"shop\.Order"):
        read_proto(b"", types, "Payment")


@pytest.mark.parametrize(
    "body",
    [
        b"\x5a" * 100_000,
        b"\xff" * 50,
        b"\x12\xff\xff\xff\xff\x07",
        b"\x0b",
        b"\x08",
        b"\x12\x01\xff",
    ],
)
def test_hostile_bodies_are_refused(types: ProtoTypes, body: bytes) -> None:
    """Wrong lengths, numbers without end and deep messages end in an error, soon."""
    with pytest.raises(CannotDecode):
        read_proto(body, types, "Order")


@given(st.binary(max_size=300))
def test_no_bytes_break_the_readers(body: bytes) -> None:
    """Any bytes are a value or refused: as a message, without types, and as a schema."""
    for reader in (lambda: read_raw(body), lambda: read_descriptors(body)):
        with contextlib.suppress(CannotDecode):
            reader()


@given(st.text(alphabet='message enum oneof map<>{}[]();="=1a.,-\n/*', max_size=120))
def test_no_text_breaks_the_file_reader(text: str) -> None:
    """Any text is a schema or refused."""
    with contextlib.suppress(CannotDecode):
        parse_proto(text)
