"""How an extension map becomes a typed header and back."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from msgspec import inspect

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.command import java_text


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A typed view of a command's string map; wire names are Java's camelCase."""

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> Self:
        """Read "3" as 3 and "true" as True; unknown fields are ignored."""
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError:
            return cls._parse_as_java(fields)

    @classmethod
    def _parse_as_java(cls, fields: Mapping[str, str]) -> Self:
        """Read what Java accepts and msgspec does not: "+3" is 3, any text but "true" is False."""
        try:
            return msgspec.convert(_as_java(cls, fields), cls, strict=False)
        except msgspec.ValidationError as error:
            raise ProtocolError(f"{cls.__name__}: {error}") from error

    def to_ext(self) -> dict[str, str]:
        """The string map to send; None values are left out."""
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        pairs = ((wire, getattr(self, name)) for name, wire in names)
        return {wire: java_text(value) for wire, value in pairs if value is not None}


def _as_java(cls: type[Header], fields: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = dict(fields)
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        value = fields.get(field.encode_name)
        if value is None:
            continue
        kinds = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        if any(isinstance(kind, inspect.BoolType) for kind in kinds):
            found[field.encode_name] = value.lower() == "true"
        elif any(isinstance(kind, inspect.IntType) for kind in kinds):
            found[field.encode_name] = value.removeprefix("+")
    return found


class Nothing(Header, frozen=True, kw_only=True):
    """A header without fields."""
