"""Reads the JSON that fastjson writes: unquoted numeric keys, and objects as keys.

A map whose keys are objects is returned as `{"<pairs>": [[key, value], ...]}`, so that it differs
from a map whose keys are strings: clients tell the two apart.
"""

import json
from typing import Any

PAIRS = "<pairs>"
_decoder = json.JSONDecoder()
_SPACE = " \t\r\n"


def loads(text: str) -> Any:
    """The value of a whole text."""
    value, at = _value(text, _skip(text, 0))
    if _skip(text, at) != len(text):
        raise ValueError(f"unexpected text after the value at {at}")
    return value


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value(text: str, at: int) -> tuple[Any, int]:
    if text[at] == "{":
        return _object(text, at + 1)
    if text[at] == "[":
        return _array(text, at + 1)
    return _decoder.raw_decode(text, at)


def _object(text: str, at: int) -> tuple[Any, int]:
    pairs: list[tuple[Any, Any]] = []
    at = _skip(text, at)
    while text[at] != "}":
        key, at = _value(text, at)
        at = _expect(text, at, ":")
        value, at = _value(text, at)
        pairs.append((key, value))
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    if any(isinstance(key, dict) for key, _ in pairs):
        return {PAIRS: [list(pair) for pair in pairs]}, at + 1
    return {str(key): value for key, value in pairs}, at + 1


def _array(text: str, at: int) -> tuple[Any, int]:
    values: list[Any] = []
    at = _skip(text, at)
    while text[at] != "]":
        value, at = _value(text, at)
        values.append(value)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return values, at + 1


def _expect(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if text[at] != mark:
        raise ValueError(f"expected {mark!r} at {at}, found {text[at]!r}")
    return _skip(text, at + 1)
