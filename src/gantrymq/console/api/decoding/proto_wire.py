"""Reads bodies in the wire format of Protocol Buffers, with types or without. Pure."""

import struct
from typing import Any, Final

from gantrymq.console.api.decoding.limits import Budget, CannotDecode
from gantrymq.console.api.decoding.proto_types import (
    SCALARS,
    ProtoField,
    ProtoMessage,
    ProtoTypes,
)

VARINT, FIXED64, BYTES, GROUP_BEGIN, GROUP_END, FIXED32 = range(6)
RAW_DEPTH_MAX: Final = 12
"""Without types every run of bytes may be a message inside; so deep it is tried."""
_VARINT_BYTES_MAX: Final = 10
_FIXED: Final = {
    "fixed64": "<Q", "sfixed64": "<q", "double": "<d", "fixed32": "<I", "sfixed32": "<i",
    "float": "<f",
}  # fmt: skip
_SIGNED: Final = ("int32", "int64")
_ZIGZAG: Final = ("sint32", "sint64")
_KINDS: Final = (
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group",
    "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
"""FieldDescriptorProto.Type, from 1 on."""
REPEATED: Final = 3


def read_proto(body: bytes, types: ProtoTypes, name: str = "") -> Any:
    """The body as a value for JSON; CannotDecode if the type does not fit it."""
    return _Reader(body, types).message(types.message(name), 0, len(body), 0)


def read_raw(body: bytes) -> Any:
    """The body without types: field numbers and the values as they seem."""
    return _Reader(body, ProtoTypes()).raw(0, len(body), 0)


def read_descriptors(data: bytes) -> ProtoTypes:
    """The types of a FileDescriptorSet, as protoc writes it with --descriptor_set_out."""
    types = ProtoTypes()
    try:
        files = read_proto(data, _BOOTSTRAP, "Set")
    except CannotDecode as error:
        raise CannotDecode(f"that is no FileDescriptorSet: {error}") from None
    for file in files.get("file", []):
        scope = file.get("package", "")
        for each in file.get("message_type", []):
            _add_message(types, each, scope)
        for each in file.get("enum_type", []):
            _add_enum(types, each, scope)
    if not types.messages:
        raise CannotDecode("that is no FileDescriptorSet: it declares no message")
    return types


def _add_message(types: ProtoTypes, said: dict[str, Any], scope: str) -> None:
    name = ".".join(part for part in (scope, said.get("name", "")) if part)
    is_entry = bool(said.get("options", {}).get("map_entry"))
    message = types.messages[name] = ProtoMessage(name, {}, is_entry)
    for each in said.get("field", []):
        number = each.get("number", 0)
        at = each.get("type", 0)
        kind = each.get("type_name", "").lstrip(".")
        if not kind:
            kind = _KINDS[at - 1] if 0 < at <= len(_KINDS) else "bytes"
        is_repeated = each.get("label") == REPEATED
        message.fields[number] = ProtoField(each.get("name", ""), number, kind, is_repeated)
    for each in said.get("nested_type", []):
        _add_message(types, each, name)
    for each in said.get("enum_type", []):
        _add_enum(types, each, name)


def _add_enum(types: ProtoTypes, said: dict[str, Any], scope: str) -> None:
    name = ".".join(part for part in (scope, said.get("name", "")) if part)
    types.enums[name] = {
        each.get("number", 0): each.get("name", "") for each in said.get("value", [])
    }


class _Reader:
    """A body, the types, and how many values are left to read."""

    def __init__(self, body: bytes, types: ProtoTypes) -> None:
        self._body, self._types = body, types
        self._budget = Budget()

    def message(self, kind: ProtoMessage, at: int, end: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while at < end:
            self._budget.take(depth)
            number, wire, at = self._tag(at, end)
            field = kind.fields.get(number)
            if field is None:
                value, at = self._raw_value(number, wire, at, end, depth)
                found.setdefault(f"#{number}", []).append(value)
            else:
                at = self._field(found, field, wire, at, end, depth)
        return found

    def _field(
        self, found: dict[str, Any], field: ProtoField, wire: int, at: int, end: int, depth: int
    ) -> int:
        inner = self._types.messages.get(field.kind)
        if inner is not None:
            begin, at = self._span(field, wire, at, end)
            value: Any = self.message(inner, begin, at, depth + 1)
            if inner.is_map_entry:
                pairs = found.setdefault(field.name, {})
                pairs[_key(value.get("key"))] = value.get("value")
                return at
            return _put(found, field, [value], at)
        if field.kind in ("string", "bytes"):
            begin, at = self._span(field, wire, at, end)
            raw = self._body[begin:at]
            return _put(found, field, [_text(field, raw)], at)
        if wire == BYTES:  # packed numbers
            begin, at = self._span(field, wire, at, end)
            values = []
            while begin < at:
                self._budget.take(depth)
                value, begin = self._scalar(field, begin, at)
                values.append(value)
            return _put(found, field, values, at)
        self._check_wire(field, wire)
        value, at = self._scalar(field, at, end)
        return _put(found, field, [value], at)

    def _check_wire(self, field: ProtoField, wire: int) -> None:
        form = _FIXED.get(field.kind)
        meant = VARINT if form is None else FIXED64 if struct.calcsize(form) == 8 else FIXED32
        if wire != meant:
            raise CannotDecode(f"the schema does not fit: field {field.name} is no {field.kind}")

    def _span(self, field: ProtoField, wire: int, at: int, end: int) -> tuple[int, int]:
        if wire != BYTES:
            raise CannotDecode(f"the schema does not fit: field {field.name} is no {field.kind}")
        size, at = self._varint(at, end)
        if size > end - at:
            raise CannotDecode(f"field {field.name} ends behind its message")
        return at, at + size

    def _scalar(self, field: ProtoField, at: int, end: int) -> tuple[Any, int]:
        form = _FIXED.get(field.kind)
        if form is not None:
            size = struct.calcsize(form)
            if size > end - at:
                raise CannotDecode(f"field {field.name} ends behind its message")
            return struct.unpack_from(form, self._body, at)[0], at + size
        number, at = self._varint(at, end)
        if field.kind == "bool":
            return bool(number), at
        if field.kind in _ZIGZAG:
            return (number >> 1) ^ -(number & 1), at
        if field.kind in SCALARS:
            return _signed(number) if field.kind in _SIGNED else number, at
        names = self._types.enums.get(field.kind, {})
        signed = _signed(number)
        return names.get(signed, signed), at

    # without types

    def raw(self, at: int, end: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while at < end:
            self._budget.take(depth)
            number, wire, at = self._tag(at, end)
            value, at = self._raw_value(number, wire, at, end, depth)
            found.setdefault(f"#{number}", []).append(value)
        return found

    def _raw_value(self, number: int, wire: int, at: int, end: int, depth: int) -> tuple[Any, int]:
        if wire == VARINT:
            return self._varint(at, end)
        if wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            if size > end - at:
                raise CannotDecode(f"field #{number} ends behind its message")
            return "0x" + self._body[at : at + size][::-1].hex(), at + size
        if wire == BYTES:
            size, at = self._varint(at, end)
            if size > end - at:
                raise CannotDecode(f"field #{number} ends behind its message")
            return self._raw_bytes(at, at + size, depth), at + size
        raise CannotDecode("groups of proto2 are not read")

    def _raw_bytes(self, at: int, end: int, depth: int) -> Any:
        """Text if it is some, else a message if it reads as one, else bytes."""
        raw = self._body[at:end]
        try:
            text = raw.decode()
            if all(char.isprintable() or char in "\r\n\t" for char in text):
                return text
        except UnicodeDecodeError:
            pass
        if depth < RAW_DEPTH_MAX:
            try:
                return self.raw(at, end, depth + 1)
            except CannotDecode:
                pass
        return "0x" + raw.hex()

    # numbers

    def _tag(self, at: int, end: int) -> tuple[int, int, int]:
        tag, at = self._varint(at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0 or wire > FIXED32:
            raise CannotDecode("the body is no Protocol Buffers message")
        return number, wire, at

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        found = shift = 0
        for byte in self._body[at : min(end, at + _VARINT_BYTES_MAX)]:
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found & (1 << 64) - 1, at
        raise CannotDecode("the body is no Protocol Buffers message: a number does not end")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _text(field: ProtoField, raw: bytes) -> str:
    if field.kind == "bytes":
        return "0x" + raw.hex()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CannotDecode(f"the schema does not fit: {field.name} is no UTF-8") from None


def _key(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _put(found: dict[str, Any], field: ProtoField, values: list[Any], at: int) -> int:
    if field.is_repeated:
        found.setdefault(field.name, []).extend(values)
    elif values:
        found[field.name] = values[-1]
    return at


def _message(name: str, *fields: tuple[int, str, str, bool]) -> ProtoMessage:
    return ProtoMessage(
        name, {number: ProtoField(each, number, kind, many) for number, each, kind, many in fields}
    )


_BOOTSTRAP: Final = ProtoTypes(
    {
        message.name: message
        for message in (
            _message("Set", (1, "file", "File", True)),
            _message(
                "File", (2, "package", "string", False), (4, "message_type", "Message", True),
                (5, "enum_type", "Enum", True),
            ),
            _message(
                "Message", (1, "name", "string", False), (2, "field", "Field", True),
                (3, "nested_type", "Message", True), (4, "enum_type", "Enum", True),
                (7, "options", "Options", False),
            ),
            _message("Options", (7, "map_entry", "bool", False)),
            _message(
                "Field", (1, "name", "string", False), (3, "number", "int32", False),
                (4, "label", "int32", False), (5, "type", "int32", False),
                (6, "type_name", "string", False),
            ),
            _message("Enum", (1, "name", "string", False), (2, "value", "Value", True)),
            _message("Value", (1, "name", "string", False), (2, "number", "int32", False)),
        )
    }
)  # fmt: skip
"""The part of descriptor.proto that names fields."""
