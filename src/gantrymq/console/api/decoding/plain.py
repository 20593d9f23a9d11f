"""JSON, MessagePack, text, and bytes in hexadecimal. Pure."""

import base64
import json
import re
from datetime import datetime
from typing import Any, Final

import msgspec

from gantrymq.console.api.decoding.limits import DEPTH_MAX, CannotDecode

HEX_BYTES_MAX: Final = 16 * 1024
"""Shown of a body in hexadecimal; the rest is in the download."""
_ROW: Final = 16
_BRACKETS: Final = re.compile(rb"[\[\]{}]")
_ESCAPE: Final = re.compile(
    r"(\\\\)|\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|\\u([\da-fA-F]{4})"
)
"""An escaped backslash, a pair of surrogates, or any other character of JSON by its number."""


def pretty_json(body: bytes) -> str:
    """JSON with line breaks and letters for their numbers; figures and order stay as they were."""
    try:
        body.decode()
        # Of a deep body the spaces before each line would be many times the body.
        indent = 2 if nesting(body) <= DEPTH_MAX else -1
        return with_letters(msgspec.json.format(body, indent=indent).decode())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CannotDecode(f"the body is no JSON: {error}") from None


def with_letters(text: str) -> str:
    """JSON in which letters of all languages are not written by their numbers, as `\\u00fc`."""
    return _ESCAPE.sub(_letter, text) if "\\u" in text else text


def _letter(found: re.Match[str]) -> str:
    if found[1]:
        return found[0]
    if found[2]:
        code = 0x10000 + (int(found[2], 16) - 0xD800) * 0x400 + int(found[3], 16) - 0xDC00
    else:
        code = int(found[4], 16)
    return chr(code) if code > 0x9F and chr(code).isprintable() else found[0]


def shown_value(value: Any) -> str:
    """A value that a decoder made, as JSON with line breaks."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=_shown)


def _shown(value: Any) -> Any:
    if isinstance(value, msgspec.msgpack.Ext):
        return {"ext": value.code, "data": "0x" + bytes(value.data).hex()}
    if isinstance(value, bytes | bytearray | memoryview):
        return "0x" + bytes(value).hex()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def read_msgpack(body: bytes) -> Any:
    """A MessagePack body as a value."""
    try:
        return msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise CannotDecode(f"the body is no MessagePack: {error}") from None


def for_json(value: Any, depth: int = 0) -> Any:
    """The same with keys that JSON has: texts."""
    if depth > DEPTH_MAX:
        raise CannotDecode(f"the body is nested deeper than {DEPTH_MAX} levels")
    if isinstance(value, dict):
        return {_key(key): for_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(each, depth + 1) for each in value]
    return value


def nesting(body: bytes) -> int:
    """How many brackets are open at most; those inside of strings count, too."""
    depth = deepest = 0
    for mark in _BRACKETS.findall(body):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(_shown(key) if isinstance(key, bytes) else key)


def text_of(body: bytes) -> str:
    """The body as text; CannotDecode if it is no UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise CannotDecode(f"the body is no UTF-8 text: byte {error.start} is none") from None


def is_readable(text: str) -> bool:
    """Whether a text has no control characters but line breaks and tabs."""
    return text.isprintable() or all(char.isprintable() or char in "\r\n\t" for char in text)


def hex_rows(body: bytes) -> str:
    """Sixteen bytes a line: place, digits, characters."""
    rows = []
    for at in range(0, min(len(body), HEX_BYTES_MAX), _ROW):
        part = body[at : at + _ROW]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        rows.append(f"{at:08x}  {part.hex(' '):<47}  {seen}")
    return "\n".join(rows)


def base64_text(body: bytes) -> str:
    """The body in base64."""
    return base64.b64encode(body).decode()
