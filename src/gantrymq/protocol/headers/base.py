"""How an extension map becomes a typed header and back."""

from collections.abc import Mapping
from typing import Self

import msgspec

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.command import java_text


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A typed view of a command's string map; wire names are Java's camelCase."""

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> Self:
        """Read "3" as 3 and "true" as True; unknown fields belong to somebody else and are left."""
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ProtocolError(f"{cls.__name__}: {error}") from error

    def to_ext(self) -> dict[str, str]:
        """The string map to send; what is None stays away."""
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        pairs = ((wire, getattr(self, name)) for name, wire in names)
        return {wire: java_text(value) for wire, value in pairs if value is not None}


class Nothing(Header, frozen=True, kw_only=True):
    """No fields at all."""
