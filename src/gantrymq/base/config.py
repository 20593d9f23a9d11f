"""Settings: one frozen struct a component, read from RocketMQ's property files.

A key is honoured, or known to RocketMQ but without meaning here (one warning), or unknown: then the
start stops and names the nearest key.
"""

import difflib
import logging
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

from gantrymq.base.errors import ConfigError

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """java.util.Properties: `key=value` or `key:value`, `#` comments, lines going on after `\\`."""
    found = {}
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        key, value = _split(line)
        found[_unescape(key)] = _unescape(value)
    return found


def format_properties(values: Mapping[str, str]) -> str:
    """One `key=value` line each, in the order given."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    at, escaped = 0, False
    while at < len(line) and (escaped or line[at] not in "=: \t\f"):
        escaped = line[at] == "\\" and not escaped
        at += 1
    rest = line[at:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:at], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts, at = [], 0
    while at < len(text):
        mark = text[at]
        if mark != "\\":
            parts.append(mark)
            at += 1
        elif text[at + 1 : at + 2] == "u" and len(text) >= at + 6:
            parts.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        else:
            follow = text[at + 1 : at + 2]
            parts.append(_ESCAPES.get(follow, follow))
            at += 2
    return "".join(parts)


def settings(
    kind: type[T], values: Mapping[str, str], *, ignored: Collection[str] = (), **fixed: Any
) -> T:
    """Build a component's settings from text; an unknown key is an error that names the nearest."""
    known = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    chosen: dict[str, Any] = {}
    for key, value in values.items():
        if key in known:
            chosen[key] = value.strip()
        elif key in ignored:
            log.warning("setting %s has no effect here", key)
        else:
            raise ConfigError(unknown_key(key, [*known, *ignored]))
    chosen |= {kind.__struct_encode_fields__[kind.__struct_fields__.index(k)]: v
               for k, v in fixed.items()}  # fmt: skip
    try:
        return msgspec.convert(chosen, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"{kind.__name__}: {error}") from error


def unknown_key(key: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown setting {key}{hint}"


def as_text(config: msgspec.Struct) -> dict[str, str]:
    """A component's settings as RocketMQ's operators read them."""
    names = zip(config.__struct_fields__, config.__struct_encode_fields__, strict=True)
    found = {}
    for name, wire in names:
        value = getattr(config, name)
        found[wire] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
