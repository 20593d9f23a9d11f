"""Reads the types of a .proto file: messages, enums, oneofs and maps of proto2 and proto3. Pure.

Services, options and extensions are passed over. Imports are not followed, except that Google's own
times and wrappers are known; for anything else a FileDescriptorSet has everything in it.
"""

import re
from typing import Final

from gantrymq.console.api.decoding.limits import DEPTH_MAX, SCHEMA_CHARACTERS_MAX, CannotDecode
from gantrymq.console.api.decoding.proto_types import (
    SCALARS,
    ProtoField,
    ProtoMessage,
    ProtoTypes,
)

_TOKEN: Final = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r"|(?P<word>[A-Za-z_][\w.]*|\.[A-Za-z_][\w.]*)"
    r"|(?P<number>[-+]?[0-9][\w.+-]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<mark>[{}\[\]()<>;=,:\-+./])",
    re.S,
)
_LABELS: Final = ("optional", "required", "repeated")
_PASSED_OVER: Final = ("option", "reserved", "extensions", "import", "package", "syntax", "edition")
_KNOWN: Final = {
    "Timestamp": (("seconds", 1, "int64"), ("nanos", 2, "int32")),
    "Duration": (("seconds", 1, "int64"), ("nanos", 2, "int32")),
    "Any": (("type_url", 1, "string"), ("value", 2, "bytes")),
    "Empty": (),
    "StringValue": (("value", 1, "string"),),
    "BytesValue": (("value", 1, "bytes"),),
    "BoolValue": (("value", 1, "bool"),),
    "Int32Value": (("value", 1, "int32"),),
    "Int64Value": (("value", 1, "int64"),),
    "UInt32Value": (("value", 1, "uint32"),),
    "UInt64Value": (("value", 1, "uint64"),),
    "DoubleValue": (("value", 1, "double"),),
    "FloatValue": (("value", 1, "float"),),
}
"""Messages of google.protobuf that other files use most."""


def parse_proto(text: str) -> ProtoTypes:
    """The types of a .proto file; CannotDecode says what is wrong, and in which line."""
    if len(text) > SCHEMA_CHARACTERS_MAX:
        raise CannotDecode(f"a schema of more than {SCHEMA_CHARACTERS_MAX:,} characters")
    parser = _Parser(_tokens(text))
    parser.file()
    types = parser.types
    if not types.messages:
        raise CannotDecode("the .proto file declares no message")
    for name, fields in _KNOWN.items():
        full = f"google.protobuf.{name}"
        if full not in types.messages:
            made = {number: ProtoField(each, number, kind) for each, number, kind in fields}
            types.messages[full] = ProtoMessage(full, made)
    for message in list(types.messages.values()):
        for field in message.fields.values():
            if field.kind not in SCALARS:
                field.kind = types.resolve(field.kind, message.name)
    return types


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """Kind, text and line of each token."""
    found = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise CannotDecode(f"line {line} of the .proto file: {text[at : at + 20]!r}")
        if match.lastgroup is not None:
            found.append((match.lastgroup, match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    return found


class _Parser:
    """Walks over the tokens once."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens, self._at = tokens, 0
        self.types = ProtoTypes()

    def file(self) -> None:
        package = ""
        while self._at < len(self._tokens):
            word = self._next()
            if word == "package":
                package = self._next()
                self._want(";")
            elif word == "message":
                self._message(package, 0)
            elif word == "enum":
                self._enum(package)
            elif word in _PASSED_OVER:
                self._pass_statement()
            elif word in ("service", "extend"):
                self._pass_block()
            elif word != ";":
                raise self._wrong(word)

    def _message(self, scope: str, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise CannotDecode("messages are nested too deeply in the .proto file")
        name = _joined(scope, self._name())
        message = self.types.messages[name] = ProtoMessage(name)
        self._want("{")
        self._fields(message, depth)

    def _fields(self, message: ProtoMessage, depth: int) -> None:
        while (word := self._next()) != "}":
            if word == "message" and self._peek(1) == "{":
                self._message(message.name, depth + 1)
            elif word == "enum" and self._peek(1) == "{":
                self._enum(message.name)
            elif word == "oneof" and self._peek(1) == "{":
                self._name()
                self._want("{")
                self._fields(message, depth + 1)
            elif word in ("extend", "group"):
                self._pass_block()
            elif word in ("option", "reserved", "extensions"):
                self._pass_statement()
            elif word == "map" and self._peek() == "<":
                self._map(message)
            elif word != ";":
                self._field(message, word)

    def _field(self, message: ProtoMessage, word: str) -> None:
        is_repeated = word == "repeated"
        kind = self._next() if word in _LABELS else word
        if kind == "group":
            raise CannotDecode("the .proto file has groups of proto2; give a FileDescriptorSet")
        name = self._name()
        number = self._number()
        message.fields[number] = ProtoField(name, number, kind, is_repeated)
        self._pass_statement()

    def _map(self, message: ProtoMessage) -> None:
        self._want("<")
        key = self._next()
        self._want(",")
        value = self._next()
        self._want(">")
        name = self._name()
        entry = _joined(message.name, f"{name}.Entry")
        fields = {1: ProtoField("key", 1, key), 2: ProtoField("value", 2, value)}
        self.types.messages[entry] = ProtoMessage(entry, fields, is_map_entry=True)
        number = self._number()
        message.fields[number] = ProtoField(name, number, f".{entry}", is_repeated=True)
        self._pass_statement()

    def _enum(self, scope: str) -> None:
        values = self.types.enums[_joined(scope, self._name())] = {}
        self._want("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                self._pass_statement()
            elif word != ";":
                values.setdefault(self._number(), word)
                self._pass_statement()

    # tokens

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise CannotDecode("the .proto file ends in the middle of a declaration")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _want(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            raise self._wrong(found)

    def _name(self) -> str:
        word = self._next()
        if not word.isidentifier():
            raise self._wrong(word)
        return word

    def _number(self) -> int:
        self._want("=")
        word = self._next()
        if word == "-":
            word += self._next()
        try:
            return int(word, 0)
        except ValueError:
            raise self._wrong(word) from None

    def _pass_statement(self) -> None:
        """Up to the semicolon; options may have braces in them."""
        depth = 0
        while (word := self._next()) != ";" or depth:
            depth += (word in "{[") - (word in "}]")

    def _pass_block(self) -> None:
        while self._next() != "{":
            pass
        depth = 1
        while depth:
            word = self._next()
            depth += (word == "{") - (word == "}")

    def _wrong(self, word: str) -> CannotDecode:
        line = self._tokens[self._at - 1][2]
        return CannotDecode(f"line {line} of the .proto file: {word[:40]!r} is not expected here")


def _joined(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
