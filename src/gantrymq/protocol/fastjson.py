"""The JSON dialect of fastjson 1.2, which RocketMQ's bodies use.

It differs from JSON in: numeric keys without quotes, whole objects as keys, names without quotes,
single quotes, stray commas, comments, and {"$ref": ...} for an object written before. msgspec
reads valid JSON; only text that it refuses is read here, character by character.
How values become what a type declares is in `casts`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

import msgspec

from gantrymq.base.errors import DECODE_ERRORS, ProtocolError
from gantrymq.protocol.casts import cast_to, member_names

DEPTH_MAX: Final = 64
BYTES_MAX: Final = 16_777_216

DIALECT_BYTES_MAX: Final = 256 * 1024
"""Of a request that is no JSON: it is read character by character, which holds a server up."""

_SPACE = re.compile("[ \t\r\n\f\b,]*")
_WORD = re.compile("[^ \t\r\n:,{}[\\]\"']*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "v": "\x0b"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": None}

REFERRED_VALUES_MAX: Final = 100_000
"""In all objects together that references stand for: a short text could mean endless ones."""
_TOLD_MAX: Final = 300

_NAME = re.compile(rb'"([^"\\]*)"\s*:')

T = TypeVar("T")
_encoder = msgspec.json.Encoder()


def _exact(text: str) -> Decimal:
    """A number that keeps 1.50 as it is written: it may be meant as text."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise msgspec.ValidationError("a number has an exponent that is too large") from None


_exact_decoder = msgspec.json.Decoder(float_hook=_exact)


class ObjectKey(dict[str, Any]):
    """An object as the key of a map; it hashes by content."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset((str(k), str(v)) for k, v in self.items()))


def loads(data: bytes | str) -> Any:
    """Parse JSON or the dialect; object keys become `ObjectKey`, integer keys stay text."""
    return _loads(data, msgspec.json.decode)


def _loads(
    data: bytes | str, quickly: Callable[[bytes | str], Any], dialect_max: int = BYTES_MAX
) -> Any:
    if len(data) > BYTES_MAX:
        raise ProtocolError(f"body of {len(data)} bytes is over the limit of {BYTES_MAX}")
    try:
        value = quickly(data)
    except DECODE_ERRORS:
        if len(data) > dialect_max:
            raise ProtocolError(f"a body of {len(data)} bytes has to be JSON") from None
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        value = _Parser(text).whole()
    mark: Any = b"$ref" if isinstance(data, bytes) else "$ref"
    return _resolved(value) if mark in data else value


def load_as(data: bytes | str, kind: type[T], dialect_max: int = BYTES_MAX) -> T:
    """Parse into a declared type, with values as loose as fastjson takes them.

    Members are found by their exact names: this is for bodies of servers and for files. Raises
    ProtocolError if the value does not fit the type, or is larger than `dialect_max` and no JSON.
    """
    text = data.encode() if isinstance(data, str) else data
    try:
        return msgspec.json.decode(text, type=kind)
    except DECODE_ERRORS:
        return _cast_as(text, kind, dialect_max)


def load_request(text: bytes, kind: type[T]) -> T:
    """The same for requests of clients: fastjson accepts any spelling of members' names."""
    try:
        found = msgspec.json.decode(text, type=kind)
    except DECODE_ERRORS:
        return _cast_as(text, kind, DIALECT_BYTES_MAX)
    return found if _only_names_of(kind, text) else _cast_as(text, kind, DIALECT_BYTES_MAX)


def _cast_as(text: bytes, kind: type[T], dialect_max: int) -> T:
    try:
        value = _loads(text, _exact_decoder.decode, dialect_max)
        return msgspec.convert(cast_to(value, kind), kind)
    except (msgspec.ValidationError, ProtocolError) as error:
        # Its text may have the whole value in it.
        raise ProtocolError(f"body is no {_name_of(kind)}: {str(error)[:_TOLD_MAX]}") from error


def _only_names_of(kind: Any, text: bytes) -> bool:
    """Whether the text has only names of the type, so that none can be another spelling."""
    names = {name.decode("utf-8", "replace") for name in _NAME.findall(text)}
    return member_names(kind) >= names


def _name_of(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def dumps(value: Any) -> bytes:
    """Compact JSON; members in the order the type declares them."""
    return _encoder.encode(value)


def dump_object_keyed(name: str, pairs: Iterable[tuple[Any, Any]], **others: Any) -> bytes:
    """{"name":{{...}:...},...}: a map whose keys are objects, exactly as Java clients expect it."""
    inner = b",".join(_encoder.encode(key) + b":" + _encoder.encode(value) for key, value in pairs)
    members = {name: b"{" + inner + b"}"}
    members |= {other: _encoder.encode(value) for other, value in others.items()}
    return b"{" + b",".join(b'"%s":%s' % (k.encode(), members[k]) for k in sorted(members)) + b"}"


def pretty(value: Mapping[str, Any]) -> str:
    """JSON as RocketMQ writes its files: tabs, integer keys without quotes."""
    return _pretty(value, 0)


def _pretty(value: Any, depth: int) -> str:
    if not isinstance(value, dict):
        return _encoder.encode(value).decode()
    if not value:
        return "{}"
    pad = "\t" * (depth + 1)
    rows = []
    for key, item in value.items():
        name = str(key) if isinstance(key, int) else _encoder.encode(key).decode()
        rows.append(f"{pad}{name}:{_pretty(item, depth + 1)}")
    return "{\n" + ",\n".join(rows) + "\n" + "\t" * depth + "}"


class _Parser:
    """Reads the dialect. Each method returns a value or raises ProtocolError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> Any:
        value = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._bad("more text after the value")
        return value

    def _bad(self, what: str) -> ProtocolError:
        return ProtocolError(f"not JSON at character {self._at}: {what}")

    def _skip(self) -> None:
        text, at = self._text, self._behind(_SPACE, self._at)
        while text.startswith(("//", "/*"), at):
            at = self._behind(_SPACE, self._behind_comment(at))
        self._at = at

    def _behind(self, pattern: re.Pattern[str], at: int) -> int:
        """Where a pattern ends that may match nothing."""
        match = pattern.match(self._text, at)
        assert match is not None
        return match.end()

    def _behind_comment(self, at: int) -> int:
        mark = "*/" if self._text[at + 1] == "*" else "\n"
        close = self._text.find(mark, at + 2)
        if close < 0 and mark == "*/":
            raise self._bad("a comment has no end")
        return len(self._text) if close < 0 else close + len(mark)

    def _peek(self) -> str:
        self._skip()
        if self._at >= len(self._text):
            raise self._bad("it ends too early")
        return self._text[self._at]

    def _value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self._bad(f"nested deeper than {DEPTH_MAX}")
        mark = self._peek()
        if mark == "{":
            return self._object(depth)
        if mark == "[":
            return self._array(depth)
        if mark in "\"'":
            return self._quoted(mark)
        return self._word()

    def _object(self, depth: int) -> dict[Any, Any]:
        self._at += 1
        found: dict[Any, Any] = {}
        while self._peek() != "}":
            key = self._value(depth + 1)
            if isinstance(key, dict):
                key = ObjectKey(key)
            elif not isinstance(key, str):
                key = str(key) if key is not None else "null"
            if self._peek() != ":":
                raise self._bad("a ':' is missing after a key")
            self._at += 1
            found[key] = self._value(depth + 1)
        self._at += 1
        return found

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        found = []
        while self._peek() != "]":
            found.append(self._value(depth + 1))
        self._at += 1
        return found

    def _quoted(self, mark: str) -> str:
        text, at, parts = self._text, self._at + 1, []
        while True:
            close, escape = text.find(mark, at), text.find("\\", at)
            if close < 0:
                raise self._bad("a string has no end")
            if escape < 0 or close < escape:
                parts.append(text[at:close])
                self._at = close + 1
                return _joined(parts)
            parts.append(text[at:escape])
            decoded, at = self._escape(escape + 1)
            parts.append(decoded)

    def _escape(self, at: int) -> tuple[str, int]:
        mark = self._text[at : at + 1]
        width = {"u": 4, "x": 2}.get(mark)
        if width is None:
            return _ESCAPES.get(mark, mark), at + 1
        digits = self._text[at + 1 : at + 1 + width]
        try:
            return chr(int(digits, 16)), at + 1 + width
        except ValueError:
            raise self._bad(f"\\{mark}{digits} is no character") from None

    def _word(self) -> Any:
        text, start, at = self._text, self._at, self._behind(_WORD, self._at)
        word = text[start:at]
        if not word:
            raise self._bad(f"{text[start]!r} is out of place")
        self._at = at
        if word in _WORDS:
            return _WORDS[word]
        return _number(word)


def _joined(parts: list[str]) -> str:
    """The pieces as one text; two escapes may be the halves of one character."""
    whole = "".join(parts)
    if len(parts) > 1 and not whole.isascii():
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole


def _number(word: str) -> Any:
    """A number if it looks like one, else the bare name itself."""
    if len(word) > 64:
        return word
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return word


def _resolved(root: Any) -> Any:
    """Replace {"$ref": path} by the object that it names; an unknown path becomes None."""
    left = REFERRED_VALUES_MAX

    def referred(path: Any, parents: tuple[Any, ...]) -> Any:
        nonlocal left
        found = _referent(root, path, parents)
        left -= _count_values(found, left)
        if left < 0:
            raise ProtocolError(f"references to more than {REFERRED_VALUES_MAX} values")
        return found

    def walk(value: Any, parents: tuple[Any, ...]) -> Any:
        if isinstance(value, list):
            return [walk(item, (*parents, value)) for item in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"$ref"}:
            return referred(value["$ref"], parents)
        return {key: walk(item, (*parents, value)) for key, item in value.items()}

    return walk(root, ())


def _count_values(root: Any, most: int) -> int:
    """How many values there are in this one, itself included; it stops counting above `most`."""
    count, open_values = 0, [root]
    while open_values and count <= most:
        value = open_values.pop()
        count += 1
        if isinstance(value, dict):
            open_values += value.values()
        elif isinstance(value, list):
            open_values += value
    return count


def _referent(root: Any, path: Any, parents: tuple[Any, ...]) -> Any:
    if path == "@":
        return parents[-1] if parents else None
    if path == "..":
        return parents[-2] if len(parents) > 1 else None
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    found = root
    for step in path[1:].replace("[", ".").replace("]", "").split("."):
        if not step:
            continue
        if isinstance(found, dict):
            found = found.get(step.strip("'\""))
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found if not (isinstance(found, dict) and set(found) == {"$ref"}) else None
