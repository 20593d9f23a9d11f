"""Fixed layouts of bytes, declared once as named tuples: the names, the types, the order.

    class IndexHeader(NamedTuple):
        begin_ms: I64
        ...

    HEADER = byte_layout(IndexHeader)

Each type carries its format character of `struct`; all numbers are big-endian. docs/formats.md is
printed from the same declarations, so that it cannot differ from what is read and written.
"""

import struct
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

U8 = Annotated[int, "B"]
I16 = Annotated[int, "h"]
U16 = Annotated[int, "H"]
I32 = Annotated[int, "i"]
U32 = Annotated[int, "I"]
I64 = Annotated[int, "q"]
Bytes8 = Annotated[bytes, "8s"]
Bytes17 = Annotated[bytes, "17s"]

_TYPES = {"B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32", "q": "i64"}


class ByteField(NamedTuple):
    """One field of a layout."""

    name: str
    format: str
    """The format character of `struct`, with a count in front of it for bytes."""
    at: int
    """How many bytes of the layout lie in front of it."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return struct.calcsize(f">{self.format}")

    @property
    def type(self) -> str:
        """Its type in words: `i32`, `u8`, `17 bytes`."""
        return _TYPES.get(self.format) or f"{self.size} bytes"


def byte_fields(kind: type[Any], formats: Mapping[str, str] | None = None) -> list[ByteField]:
    """The fields of a layout; `formats` replaces types whose size depends on other bytes."""
    fields: list[ByteField] = []
    at = 0
    for name, hint in get_type_hints(kind, include_extras=True).items():
        code = hint.__metadata__[0]
        field = ByteField(name, (formats or {}).get(code, code), at)
        fields.append(field)
        at += field.size
    return fields


def byte_layout(kind: type[Any], formats: Mapping[str, str] | None = None) -> struct.Struct:
    """The layout as `struct` packs and unpacks it."""
    return struct.Struct(">" + "".join(field.format for field in byte_fields(kind, formats)))
