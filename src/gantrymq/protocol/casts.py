"""How fastjson casts what a body says to what a Java class declares.

A peer may write a number as text and text as a number, an enum by its name or by its ordinal, a
member's name in another case, null, or an object where a list of objects is wanted. The rules are
those that the recordings in `tests/dialogues/recordings/dialect-*.json` show. A value that Java
takes for null leaves the member at its default.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from gantrymq.base.errors import ProtocolError
from gantrymq.base.javatypes import ENUM, INT_MAX, LONG_MAX

Cast = Callable[[Any], Any]
_ABSENT: Final = msgspec.UNSET
_NULLS = ("", "null", "NULL")
_TRUE = frozenset({"1", "Y", "y", "T"})
_FALSE = frozenset({"0", "N", "F", "f"})
_encoder = msgspec.json.Encoder(decimal_format="number")


def cast_to(value: Any, kind: Any) -> Any:
    """A parsed value in the shape of a declared type; ProtocolError if it does not fit."""
    found = _cast(kind)(value)
    return None if found is _ABSENT else found


@cache
def member_names(kind: Any) -> frozenset[str]:
    """Every name that a type and the types inside it declare."""
    names: set[str] = set()
    seen: set[type] = set()
    waiting = [inspect.type_info(kind)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, inspect.StructType):
            if info.cls not in seen:
                seen.add(info.cls)
                names |= {field.encode_name for field in info.fields}
                waiting += [field.type for field in info.fields]
        elif isinstance(info, inspect.ListType):
            waiting.append(info.item_type)
        elif isinstance(info, inspect.DictType):
            waiting.append(info.value_type)
        elif isinstance(info, inspect.UnionType):
            waiting += info.types
        elif isinstance(info, inspect.Metadata):
            waiting.append(info.type)
    return frozenset(names)


@cache
def _cast(kind: Any) -> Cast:
    return _cast_for(inspect.type_info(kind))


def _cast_for(info: inspect.Type) -> Cast:
    if isinstance(info, inspect.UnionType):
        wanted = [each for each in info.types if not isinstance(each, inspect.NoneType)]
        return _or_null(_cast_for(wanted[0])) if len(wanted) == 1 else _unchanged
    if isinstance(info, inspect.StructType):
        # Only GantryMQ writes structs as lists on the wire, so they need no loose reading.
        return _unchanged if info.array_like else _struct_cast(info.cls)
    if isinstance(info, inspect.ListType):
        return _list_cast(info.item_type)
    if isinstance(info, inspect.DictType):
        return _map_cast(_key_cast(info.key_type), _cast_for(info.value_type))
    if isinstance(info, inspect.Metadata):
        names = (info.extra or {}).get(ENUM)
        return _enum_cast(names) if names else _cast_for(info.type)
    if isinstance(info, inspect.IntType):
        return _to_int if info.le == INT_MAX else _to_long
    return _SCALARS.get(type(info), _unchanged)


def _or_null(inner: Cast) -> Cast:
    def cast(value: Any) -> Any:
        found = inner(value)
        return None if found is _ABSENT else found

    return cast


def _unchanged(value: Any) -> Any:
    return value


def _refused(value: Any, wanted: str) -> ProtocolError:
    return ProtocolError(f"{_text(value)[:64]} is no {wanted}")


def _text(value: Any) -> str:
    """A value as JSON text; as Python prints it if a key is an object."""
    try:
        return _encoder.encode(value).decode()
    except TypeError:
        return str(value)


# scalars


def _to_text(value: Any) -> Any:
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        return value
    # Java prints a BigDecimal as Python prints a Decimal: 1e2 is 1E+2.
    return str(value) if isinstance(value, Decimal) else _text(value)


def _to_int(value: Any) -> Any:
    """Java's int; text may end in `.0`, unlike the text of a long."""
    if isinstance(value, str):
        head, point, zeros = value.partition(".")
        value = head if point and not zeros.strip("0") else value
    return _whole(value, INT_MAX, "int")


def _to_long(value: Any) -> Any:
    return _whole(value, LONG_MAX, "long")


def _whole(value: Any, high: int, name: str) -> Any:
    if value is None or value in _NULLS:
        return _ABSENT
    if isinstance(value, str):
        digits = value.replace(",", "")
        if not digits.removeprefix("-").removeprefix("+").isdecimal() or len(digits) > 20:
            raise _refused(value, name)
        value = int(digits)
    if not isinstance(value, int | float | Decimal) or not -high - 1 <= value <= high:
        raise _refused(value, name)
    return int(value)


def _to_float(value: Any) -> Any:
    if value is None or value in _NULLS:
        return _ABSENT
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _refused(value, "number") from None


def _to_bool(value: Any) -> Any:
    """A number is true when its whole part is 1."""
    if value is None or value in _NULLS:
        return _ABSENT
    if isinstance(value, str):
        if value in _TRUE or value.lower() == "true":
            return True
        if value in _FALSE or value.lower() == "false":
            return False
        raise _refused(value, "boolean")
    return value if isinstance(value, bool) else _to_int(value) == 1


_SCALARS: dict[type[inspect.Type], Cast] = {
    inspect.StrType: _to_text,
    inspect.BoolType: _to_bool,
    inspect.FloatType: _to_float,
}


def _enum_cast(names: tuple[str, ...]) -> Cast:
    by_name = {name.lower(): name for name in names}

    def cast(value: Any) -> Any:
        """An enum by name or by ordinal; Java reads an unknown name as null."""
        if value is None or isinstance(value, str):
            return by_name.get((value or "").lower(), _ABSENT)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(names):
            raise _refused(value, f"one of {', '.join(names)}")
        return names[value]

    return cast


# containers


def _list_cast(item: inspect.Type) -> Cast:
    of_objects = isinstance(item, inspect.StructType)
    inner = _cast_for(item)

    def cast(value: Any) -> Any:
        """A list; one object counts as a list of one, any other value is refused."""
        if value is None:
            return _ABSENT
        if of_objects and isinstance(value, dict):
            value = [value]
        if not isinstance(value, list):
            raise _refused(value, "list")
        return [found for each in value if (found := inner(each)) is not _ABSENT]

    return cast


def _key_cast(info: inspect.Type) -> Cast:
    """A key of a map; an object becomes the value that it describes, which can be hashed."""
    inner = _cast_for(info)
    if not isinstance(info, inspect.StructType):
        return inner
    cls = info.cls
    return lambda value: msgspec.convert(inner(value), cls)


def _map_cast(name: Cast, inner: Cast) -> Cast:
    def cast(value: Any) -> Any:
        if value is None or value == "":
            return _ABSENT
        if not isinstance(value, dict):
            raise _refused(value, "map")
        pairs = ((name(key), inner(each)) for key, each in value.items())
        return {key: None if each is _ABSENT else each for key, each in pairs}

    return cast


@cache
def _struct_cast(cls: type) -> Cast:
    members: dict[str, tuple[str, Cast]] = {}
    loosely: dict[str, str] = {}

    def fill() -> None:
        info = inspect.type_info(cls)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            name = field.encode_name
            members[name] = name, _cast_for(field.type)
            loosely.setdefault(_loose(name), name)
            if isinstance(field.type, inspect.BoolType):
                loosely.setdefault(f"is{_loose(name)}", name)

    def cast(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _refused(value, cls.__name__)
        if not members:
            fill()
        found: dict[str, Any] = {}
        for key, each in value.items():
            member = members.get(key) or members.get(loosely.get(_loose(str(key)), ""))
            if member is not None and (inner := member[1](each)) is not _ABSENT:
                found[member[0]] = inner
        return found

    return cast


def _loose(name: str) -> str:
    """A name in the form for comparing: without case, underscores and hyphens."""
    return name.replace("_", "").replace("-", "").lower()
