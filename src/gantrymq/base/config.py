"""Settings: one struct a component, read from RocketMQ's property files.

A key has an effect, or is one of RocketMQ without an effect here (one warning), or is unknown: then
the start fails and names the nearest key. Every error names the file and the line, or the option,
that the setting stands in.
"""

import difflib
import logging
import re
import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from gantrymq.base.errors import ConfigError

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)

_HEX_DIGITS = frozenset(string.hexdigits)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """java.util.Properties: `key=value` or `key:value`, `#` comments, lines going on after `\\`."""
    return {key: value for key, value, _ in _entries(text)}


@dataclass(frozen=True, slots=True)
class WrittenSettings:
    """Settings as the user wrote them, and where each of them stands."""

    values: dict[str, str] = field(default_factory=dict, repr=False)
    """Passwords and keys are among them."""
    places: dict[str, str] = field(default_factory=dict)

    @classmethod
    def in_text(cls, text: str, path: str) -> Self:
        """The settings in the text of a property file."""
        if text.lstrip().startswith("{"):
            raise ConfigError(f"{path}, line 1: this is JSON; write a line key=value a setting")
        entries = list(_entries(text))
        return cls(
            {key: value for key, value, _ in entries},
            {key: f"{path}, line {line}" for key, _, line in entries},
        )

    @classmethod
    def in_file(cls, path: str) -> Self:
        try:
            return cls.in_text(Path(path).read_text(), path)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"cannot read {path}: {why}") from error

    def __or__(self, later: "WrittenSettings") -> "WrittenSettings":
        """Both; a setting of the later one overrides."""
        return WrittenSettings(self.values | later.values, self.places | later.places)

    def quote(self, key: str) -> str:
        """A setting and where it stands, for an error."""
        return quoted(key, self.values[key].strip(), self.places)


def quoted(key: str, value: str, places: Mapping[str, str]) -> str:
    """`key=value`, and where that stands if it is known."""
    return f"{key}={value} ({places[key]})" if key in places else f"{key}={value}"


def replace_properties(text: str, changes: Mapping[str, str]) -> str:
    """The text of a property file with some settings changed and everything else as it was."""
    lines = text.splitlines()
    left = {key: escape_value(value) for key, value in changes.items()}
    stale: set[int] = set()
    for key, _, first, last in reversed(list(_spans(text))):
        if key not in changes or first - 1 in stale:
            continue
        stale.update(range(first - 1, last))
        if key in left:  # the last line of a key is the one that counts
            lines[first - 1] = f"{key}={left.pop(key)}"
            stale.discard(first - 1)
    kept = [line for at, line in enumerate(lines) if at not in stale]
    return "".join(f"{line}\n" for line in [*kept, *(f"{k}={v}" for k, v in left.items())])


def escape_value(value: str) -> str:
    """The value, escaped so that it reads back unchanged."""
    plain = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{plain}" if plain[:1] in (" ", "\t", "\f") else plain


def _entries(text: str) -> list[tuple[str, str, int]]:
    """Key, value and line number of each setting, in the order of the text."""
    return [(key, value, first) for key, value, first, _ in _spans(text)]


def _spans(text: str) -> list[tuple[str, str, int, int]]:
    found = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        first = at + 1
        line = lines[at].lstrip(" \t\f")
        at += 1
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            following = lines[at] if at < len(lines) else ""
            line = line[:-1] + following.lstrip(" \t\f")
            at += 1
        key, value = _split(line)
        found.append((_unescape(key), _unescape(value), first, min(at, len(lines))))
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
            digits = text[at + 2 : at + 6]
            if not set(digits) <= _HEX_DIGITS:
                raise ConfigError(f"\\u{digits} is no character: write \\u and four hex digits")
            parts.append(chr(int(digits, 16)))
            at += 6
        else:
            follow = text[at + 1 : at + 2]
            parts.append(_ESCAPES.get(follow, follow))
            at += 2
    return "".join(parts)


def settings(
    kind: type[T],
    values: Mapping[str, str],
    *,
    ignored: Collection[str] = (),
    places: Mapping[str, str] | None = None,
    **fixed: Any,
) -> T:
    """Build a component's settings from text; an unknown key is an error that names the nearest."""
    known = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    places = places or {}
    chosen: dict[str, Any] = {}
    for key, value in values.items():
        if key in known:
            chosen[key] = value.strip()
        elif key in ignored:
            log.warning("setting %s has no effect here", key)
        else:
            advice = "remove it; -p prints the settings that exist"
            raise ConfigError(unknown_key(key, [*known, *ignored], places.get(key, ""), advice))
    chosen |= {
        kind.__struct_encode_fields__[kind.__struct_fields__.index(k)]: v for k, v in fixed.items()
    }
    return convert(kind, chosen, places)


def convert(kind: type[T], values: Mapping[str, Any], places: Mapping[str, str]) -> T:
    """A struct from text; an error names the value, its place and what would be right."""
    try:
        return msgspec.convert(dict(values), kind, strict=False)
    except msgspec.ValidationError as error:
        found = re.search(r"`\$\.(\w+)`", str(error))
        if found is None:
            raise ConfigError(_placed(str(error), places)) from error
        key = found[1]
        wanted = _wanted(kind, key)
        raise ConfigError(f"{quoted(key, values[key], places)}: write {wanted}") from error
    except ConfigError as error:
        raise ConfigError(_placed(str(error), places)) from error


def _placed(text: str, places: Mapping[str, str]) -> str:
    """An error about a setting, with the place of the first setting that it names."""
    at = next((places[word] for word in re.findall(r"\w+", text) if word in places), None)
    return f"{text} ({at})" if at else text


def _wanted(kind: type[msgspec.Struct], key: str) -> str:
    """The allowed values of a setting, in words."""
    name = kind.__struct_fields__[kind.__struct_encode_fields__.index(key)]
    hint = get_type_hints(kind)[name]
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    return {int: "a whole number", bool: "true or false", float: "a number"}.get(hint, str(hint))


def unknown_key(
    key: str, known: Collection[str], place: str = "", otherwise: str = "remove it"
) -> str:
    """The text of an error: the place of the setting and the nearest key, else `otherwise`."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else otherwise
    at = f" ({place})" if place else ""
    return f"unknown setting {key}{at}; {hint}"


def as_text(config: msgspec.Struct) -> dict[str, str]:
    """A component's settings as text, under RocketMQ's names."""
    names = zip(config.__struct_fields__, config.__struct_encode_fields__, strict=True)
    found = {}
    for name, wire in names:
        value = getattr(config, name)
        found[wire] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
