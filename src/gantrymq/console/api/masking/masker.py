"""The rules of one message at work: what they leave of its body, properties and texts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.messages.received import Received
from gantrymq.console.api.decoding.forms import Schema, read_value
from gantrymq.console.api.decoding.limits import CannotDecode
from gantrymq.console.api.decoding.plain import is_readable, read_msgpack, shown_value
from gantrymq.console.api.masking.paths import MASK, Path, mask_path, parse_path
from gantrymq.console.api.masking.patterns import Pattern
from gantrymq.console.api.masking.rules import NEVER_MASKED, MaskKind, MaskRule
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, is_system_topic
from gantrymq.protocol import properties

WITHHELD: Final = (
    "withheld: a rule masks a field of this topic by its path, and this body has no fields: it is "
    "neither JSON nor MessagePack with fields, nor does a kept schema fit it"
)
_ORIGINS: Final = (
    properties.RETRY_TOPIC,
    properties.DEAD_ORIGIN_TOPIC,
    properties.REAL_TOPIC,
)
_SAID: Final = ("GANTRY_ERROR_TEXT", "GANTRY_REASON")
"""Properties that hold what an error said."""
_TOO_DEEP: Final = "withheld: rules mask parts of this topic, and this body is nested too deeply"


class SeenBody(msgspec.Struct, frozen=True):
    """What is left of a body."""

    raw: bytes | None
    """None if it is withheld."""
    is_masked: bool = False
    why: str = ""
    """Why it is withheld."""


def topics_of(message: Received) -> frozenset[str] | None:
    """The topics a message belongs to: its own, and of a copy also that of the original.

    None for a copy that does not say where it comes from: then every rule is about it.
    """
    topic = message.queue.topic
    found = message.properties
    origins = [found[name] for name in _ORIGINS if name in found]
    if holds_copies(topic) and not origins:
        return None
    return frozenset([topic, *origins])


def holds_copies(topic: str) -> bool:
    """Whether messages of other topics lie there: retries, dead letters, those that wait."""
    return topic.startswith((RETRY_PREFIX, DEAD_PREFIX)) or is_system_topic(topic)


class Masker:
    """What rules leave of one message. Without rules it is everything."""

    def __init__(self, rules: Iterable[MaskRule], schema: Schema | None = None) -> None:
        """`schema` is one that an admin keeps for the topic: it tells where fields are."""
        self._paths: list[Path] = []
        self._names: set[str] = set()
        self._patterns: list[Pattern] = []
        self._schema = schema
        self._why = ""
        for rule in rules:
            try:
                self._add(rule)
            except GantryError as error:  # such as a package that is no longer installed
                self._why = f"withheld: {error}"

    def _add(self, rule: MaskRule) -> None:
        if rule.kind is MaskKind.PATH:
            self._paths.append(parse_path(rule.what))
        elif rule.kind is MaskKind.PROPERTY:
            self._names.add(rule.what)
        else:
            self._patterns.append(Pattern(rule.what))

    @property
    def names(self) -> frozenset[str]:
        """The properties that are masked whole."""
        return frozenset(self._names)

    # texts and properties

    def text(self, text: str) -> str:
        """A text without what patterns match."""
        return MASK if self._why else self._by_patterns(text)[0]

    def error(self, text: str) -> str:
        """What an error said. It may repeat any field of the body, so a path hides all of it."""
        return MASK if self._paths and text else self.text(text)

    def story(self, text: str) -> str:
        """A sentence of a history: what follows a colon may be what an error said."""
        told, mark, said = text.partition(": ")
        return self.text(told) + (mark + self.error(said) if mark else "")

    def properties(self, found: Mapping[str, str]) -> dict[str, str]:
        """The properties, the masked ones as stars."""
        return {name: self._value(name, value) for name, value in found.items()}

    def keys(self, keys: Iterable[str]) -> list[str]:
        return [self._value(properties.KEYS, key) for key in keys]

    def tags(self, tags: str | None) -> str | None:
        return None if tags is None else self._value(properties.TAGS, tags)

    def _value(self, name: str, value: str) -> str:
        if name in NEVER_MASKED:
            return value
        if name in _SAID:
            return self.error(value)
        return MASK if name in self._names else self.text(value)

    def _by_patterns(self, text: str) -> tuple[str, int]:
        count = 0
        for pattern in self._patterns:
            text, found = pattern.mask_text(text)
            count += found
        return text, count

    # bodies

    def body(self, body: bytes) -> SeenBody:
        """What is left of a body: the same bytes if no rule finds anything."""
        if self._why:
            return SeenBody(None, True, self._why)
        if not self._paths and not self._patterns:
            return SeenBody(body)
        try:
            return self._masked(body)
        except RecursionError:
            return SeenBody(None, True, _TOO_DEEP)

    def _masked(self, body: bytes) -> SeenBody:
        is_json, value = _json_value(body)
        if is_json and self._paths and not isinstance(value, dict | list):
            return SeenBody(None, True, WITHHELD)  # it may hold the field without its name
        if is_json:
            made, count = self._by_rules(value)
            if count:
                body = _json_bytes(made)
            return self._as_bytes(body, count)
        pack = _msgpack_value(body)
        if pack is not None:
            made, count = self._by_rules(pack)
            if count:
                body = msgspec.msgpack.encode(made)
            return self._as_bytes(body, count)
        if self._paths:
            return self._with_schema(body)
        return self._as_bytes(body, 0)

    def _with_schema(self, body: bytes) -> SeenBody:
        """A body that only a kept schema can read becomes JSON without the masked fields."""
        if self._schema is None:
            return SeenBody(None, True, WITHHELD)
        try:
            made, _ = self._by_rules(read_value(body, self._schema))
        except CannotDecode:
            return SeenBody(None, True, WITHHELD)
        return SeenBody(shown_value(made).encode(), True)

    def _as_bytes(self, body: bytes, count: int) -> SeenBody:
        """What patterns match in the bytes themselves, whatever their form."""
        for pattern in self._patterns:
            try:
                text, found = pattern.mask_text(body.decode())
                body = text.encode() if found else body
            except UnicodeDecodeError:
                body, found = pattern.mask_bytes(body)
            count += found
        return SeenBody(body, count > 0)

    def _by_rules(self, value: Any) -> tuple[Any, int]:
        count = 0
        for path in self._paths:
            value, found = mask_path(value, path)
            count += found
        if self._patterns:
            value, found = self._in_strings(value)
            count += found
        return value, count

    def _in_strings(self, value: Any) -> tuple[Any, int]:
        """Patterns in every string and number of a value: escapes must not hide anything."""
        if isinstance(value, str):
            return self._by_patterns(value)
        if isinstance(value, dict):
            pairs = {}
            count = 0
            for key, each in value.items():
                shown, of_key = self._in_strings(key) if isinstance(key, str) else (key, 0)
                pairs[shown], of_value = self._in_strings(each)
                count += of_key + of_value
            return pairs, count
        if isinstance(value, list | tuple):
            found = [self._in_strings(each) for each in value]
            return [each for each, _ in found], sum(count for _, count in found)
        if isinstance(value, int | float | _Number) and not isinstance(value, bool):
            text, count = self._by_patterns(str(value))
            return (text, count) if count else (value, 0)
        return value, 0


class _Number:
    """A number of a JSON text, kept as it was written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _json_value(body: bytes) -> tuple[bool, Any]:
    try:
        return True, json.loads(body.decode(), parse_int=_Number, parse_float=_Number)
    except ValueError:
        return False, None


def _json_bytes(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=_raw)


def _raw(value: Any) -> Any:
    if isinstance(value, _Number):
        return msgspec.Raw(value.text.encode())
    raise NotImplementedError


def _msgpack_value(body: bytes) -> Any:
    """A MessagePack body; None if it is none, or a text that only looks like one."""
    try:
        if is_readable(body.decode()):
            return None
    except UnicodeDecodeError:
        pass
    try:
        found = read_msgpack(body)
    except CannotDecode:
        return None
    return found if isinstance(found, dict | list) else None
