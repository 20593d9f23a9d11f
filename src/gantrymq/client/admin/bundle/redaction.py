"""Removes secrets from settings and logs before they leave a machine. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "***"
_WORDS = r"secret|passw(?:or)?d|passphrase|access[_.-]?key|token|credential|private[_.-]?key"
_NAME = rf"(?<![\w.-])[\w.-]*(?:{_WORDS})[\w.-]*"
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
_PAIR: Final = re.compile(
    rf"""(?P<name>["']?{_NAME}["']?\s*[:=]\s*)(?P<value>"[^"]*"|'[^']*'|[^\s"',;&}}\]]+)""",
    re.IGNORECASE,
)
_URL: Final = re.compile(r"(?P<scheme>\b[a-z][\w+.-]*://)[^\s/@\"']+@", re.IGNORECASE)
_AUTHORIZATION: Final = re.compile(r"(?i)(authorization\s*[:=]\s*)(\w+\s+)?[^\s\"',;]+")


def is_secret(name: str) -> bool:
    """Whether the name of a setting looks like that of a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def redact_text(text: str) -> str:
    """Text without the values of secrets and without credentials in URLs."""
    text = _URL.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\g<1>{HIDDEN}", text)
    return _PAIR.sub(lambda found: found["name"] + _hidden(found["value"]), text)


def _hidden(value: str) -> str:
    quote = value[0] if value[0] in "\"'" else ""
    return f"{quote}{HIDDEN}{quote}" if value.strip("\"'") else value


def _is_plain(value: Any) -> bool:
    """Not a table: a topic may be called as a secret is."""
    return not isinstance(value, Mapping | list | tuple)


def redact(value: Any) -> Any:
    """A value for JSON without secrets, in all its depth."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {
            str(name): HIDDEN if each and is_secret(str(name)) and _is_plain(each) else redact(each)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(each) for each in value]
    return value
