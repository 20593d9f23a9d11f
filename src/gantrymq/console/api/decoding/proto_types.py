"""Types of Protocol Buffers: messages with their fields by number, and enums. Pure."""

from dataclasses import dataclass, field
from typing import Final

from gantrymq.console.api.decoding.limits import CannotDecode

SCALARS: Final = frozenset(
    {
        "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
        "bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64",
    }
)  # fmt: skip


@dataclass
class ProtoField:
    """One field of a message."""

    name: str
    number: int
    kind: str
    """A scalar, or the full name of a message or enum."""
    is_repeated: bool = False


@dataclass
class ProtoMessage:
    """A message type."""

    name: str
    fields: dict[int, ProtoField] = field(default_factory=dict)
    is_map_entry: bool = False


@dataclass
class ProtoTypes:
    """All types of one schema, by full name."""

    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)

    def message(self, name: str) -> ProtoMessage:
        """The message of a full name, of a last part of one, or the first one for no name."""
        if not self.messages:
            raise CannotDecode("the schema declares no message")
        if not name:
            return next(iter(self.messages.values()))
        if name in self.messages:
            return self.messages[name]
        found = [each for full, each in self.messages.items() if full.endswith(f".{name}")]
        if len(found) != 1:
            shown = [full for full, each in self.messages.items() if not each.is_map_entry]
            raise CannotDecode(f"no message {name!r} in the schema; it has {', '.join(shown[:20])}")
        return found[0]

    def resolve(self, name: str, scope: str) -> str:
        """The full name of a type that is named inside of another: from the inside out."""
        if name.startswith("."):
            return self._known(name[1:])
        while True:
            full = f"{scope}.{name}" if scope else name
            if full in self.messages or full in self.enums:
                return full
            if not scope:
                raise CannotDecode(f"the schema does not say what {name!r} is")
            scope = scope.rpartition(".")[0]

    def _known(self, full: str) -> str:
        if full not in self.messages and full not in self.enums:
            raise CannotDecode(f"the schema does not say what {full!r} is")
        return full
