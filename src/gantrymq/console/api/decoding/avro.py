"""Reads Avro bodies with the schema they were written with. Pure.

A body is the bare encoding, or has one of the two usual heads before it: that of schema registries
(a zero byte and four bytes of an id), or Avro's own single-object encoding.
"""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from gantrymq.console.api.decoding.limits import DEPTH_MAX, Budget, CannotDecode

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
REGISTRY_HEAD, SINGLE_HEAD = b"\x00", b"\xc3\x01"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT_BYTES_MAX: Final = 10


class AvroNode:
    """One type of a schema."""

    __slots__ = ("branches", "fields", "kind", "logical", "scale", "size", "symbols", "values")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.logical = ""
        self.scale = 0
        self.size = 0
        self.fields: list[tuple[str, AvroNode]] = []
        self.symbols: list[str] = []
        self.branches: list[AvroNode] = []
        self.values: AvroNode | None = None


def parse_schema(text: str) -> AvroNode:
    """The schema; CannotDecode says what is wrong with it."""
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if text.strip().isidentifier():
            said = text.strip()  # a bare name, such as long
        else:
            raise CannotDecode(f"an Avro schema is JSON: {error}") from None
    return _SchemaReader().node(said, "", 0)


class _SchemaReader:
    """Builds nodes, and knows the names that were declared so far."""

    def __init__(self) -> None:
        self._named: dict[str, AvroNode] = {}

    def node(self, said: Any, space: str, depth: int) -> AvroNode:
        if depth > DEPTH_MAX:
            raise CannotDecode("the schema is nested too deeply")
        if isinstance(said, str):
            return self._by_name(said, space)
        if isinstance(said, list):
            made = AvroNode("union")
            made.branches = [self.node(each, space, depth + 1) for each in said]
            return made
        if not isinstance(said, dict) or "type" not in said:
            raise CannotDecode(f"no Avro type: {str(said)[:80]}")
        kind = said["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, space, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._declared(said, kind, space, depth)
        if kind in ("array", "map"):
            made = AvroNode(kind)
            part = "items" if kind == "array" else "values"
            made.values = self.node(said.get(part), space, depth + 1)
            return made
        return self._with_logical(self._by_name(kind, space), said)

    def _by_name(self, name: str, space: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroNode(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise CannotDecode(f"the schema does not say what {name!r} is")
        return found

    def _with_logical(self, made: AvroNode, said: dict[str, Any]) -> AvroNode:
        logical, scale = said.get("logicalType"), said.get("scale", 0)
        if isinstance(logical, str) and made.kind in ("int", "long", "bytes", "fixed", "string"):
            made.logical = logical
            made.scale = scale if isinstance(scale, int) and 0 <= scale <= 1000 else 0
        return made

    def _declared(self, said: dict[str, Any], kind: str, space: str, depth: int) -> AvroNode:
        name = said.get("name")
        if not isinstance(name, str):
            raise CannotDecode(f"a type {kind} without a name")
        own = said.get("namespace")
        if "." in name:
            space, _, name = name.rpartition(".")
        elif isinstance(own, str):
            space = own
        made = AvroNode("record" if kind == "error" else kind)
        self._named[f"{space}.{name}" if space else name] = made
        if kind == "fixed":
            size = said.get("size")
            if not isinstance(size, int) or size < 0:
                raise CannotDecode(f"fixed {name} without a size")
            made.size = size
            return self._with_logical(made, said)
        if kind == "enum":
            symbols = said.get("symbols")
            if not isinstance(symbols, list):
                raise CannotDecode(f"enum {name} without symbols")
            made.symbols = [str(each) for each in symbols]
            return made
        fields = said.get("fields")
        if not isinstance(fields, list):
            raise CannotDecode(f"record {name} without fields")
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise CannotDecode(f"a field of {name} without a name")
            made.fields.append((each["name"], self.node(each.get("type"), space, depth + 1)))
        return made


def read_avro(body: bytes, schema: AvroNode) -> Any:
    """The body as a value for JSON; CannotDecode if the schema does not fit it."""
    starts = [0]
    if body.startswith(REGISTRY_HEAD) and len(body) >= 5:
        starts.insert(0, 5)
    if body.startswith(SINGLE_HEAD) and len(body) >= 10:
        starts.insert(0, 10)
    trouble = CannotDecode("the body is empty")
    for start in starts:
        try:
            reader = _Reader(body, start)
            value = reader.value(schema, 0)
            reader.check_end()
            return value
        except CannotDecode as error:
            trouble = error
    raise trouble


class _Reader:
    """A position in a body."""

    def __init__(self, body: bytes, at: int) -> None:
        self._body, self._at = body, at
        self._budget = Budget()

    def check_end(self) -> None:
        rest = len(self._body) - self._at
        if rest:
            raise CannotDecode(f"the schema does not fit: {rest} bytes are left over")

    def value(self, node: AvroNode, depth: int) -> Any:
        self._budget.take(depth)
        kind = node.kind
        if kind == "record":
            return {name: self.value(each, depth + 1) for name, each in node.fields}
        if kind == "union":
            return self.value(self._chosen(node.branches, "union"), depth + 1)
        if kind in ("array", "map"):
            return self._blocks(node, depth)
        if kind == "enum":
            return self._chosen(node.symbols, "enum")
        if kind == "fixed":
            return _bytes_value(node, self._take(node.size))
        return self._PRIMITIVE[kind](self, node)

    def _chosen(self, among: list[Any], what: str) -> Any:
        at = self._number()
        if not 0 <= at < len(among):
            raise CannotDecode(f"the schema does not fit: {what} has no branch {at}")
        return among[at]

    def _blocks(self, node: AvroNode, depth: int) -> Any:
        """Items in blocks; a negative count is followed by the size of the block in bytes."""
        of = node.values
        assert of is not None
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        while count := self._number():
            if count < 0:
                count = -count
                self._number()
            for _ in range(count):
                if node.kind == "map":
                    name = self._text()
                    pairs[name] = self.value(of, depth + 1)
                else:
                    items.append(self.value(of, depth + 1))
        return pairs if node.kind == "map" else items

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._body) - self._at:
            raise CannotDecode("the schema does not fit: the body ends too early")
        self._at += size
        return self._body[self._at - size : self._at]

    def _number(self) -> int:
        found = shift = 0
        for _ in range(_VARINT_BYTES_MAX):
            (byte,) = self._take(1)
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
        raise CannotDecode("the schema does not fit: a number of more than ten bytes")

    def _text(self) -> str:
        raw = self._take(self._number())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise CannotDecode("the schema does not fit: a string is no UTF-8") from None

    def _flag(self, _: AvroNode) -> bool:
        return self._take(1) != b"\x00"

    def _real(self, node: AvroNode) -> float:
        size, form = (4, "<f") if node.kind == "float" else (8, "<d")
        found: float = struct.unpack(form, self._take(size))[0]
        return found

    _PRIMITIVE: Final[dict[str, Callable[["_Reader", AvroNode], Any]]] = {
        "null": lambda self, _: None,
        "boolean": _flag,
        "int": lambda self, node: _number_value(node, self._number()),
        "long": lambda self, node: _number_value(node, self._number()),
        "float": _real,
        "double": _real,
        "bytes": lambda self, node: _bytes_value(node, self._take(self._number())),
        "string": lambda self, _: self._text(),
    }


def _number_value(node: AvroNode, number: int) -> Any:
    """Dates and times as text; a number that no calendar has stays one."""
    try:
        if node.logical == "date":
            return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
        if node.logical.startswith(("timestamp-", "local-timestamp-")):
            micros = number * 1000 if node.logical.endswith("millis") else number
            if node.logical.endswith("nanos"):
                micros = number // 1000
            when = (_EPOCH + timedelta(microseconds=micros)).isoformat()
            return when.removesuffix("+00:00") + ("" if "local" in node.logical else "Z")
    except OverflowError:
        return number
    return number


def _bytes_value(node: AvroNode, raw: bytes) -> Any:
    if node.logical == "decimal" and len(raw) <= 64:
        return format(Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-node.scale), "f")
    return "0x" + raw.hex()
