"""The root of every error raised on purpose."""

from typing import ClassVar, Final

import msgspec

DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that it cannot read: text that is no UTF-8 and values in a thousand
others are no errors of its own."""


class GantryError(Exception):
    """A failure that callers can expect and handle. Any other exception is a bug."""

    code: ClassVar[int] = 1
    """The response code a peer sees; 1 is RocketMQ's SYSTEM_ERROR."""


class ProtocolError(GantryError):
    """Bytes do not follow the protocol."""


class ConfigError(GantryError):
    """A setting cannot be used; the text says what to change."""


class WrongType(GantryError, TypeError):
    """An argument has a wrong type; the text says which is right."""


class WrongValue(GantryError, ValueError):
    """An argument has a wrong value; the text says which are right."""
