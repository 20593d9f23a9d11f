"""The root of every error raised on purpose."""

from typing import ClassVar


class GantryError(Exception):
    """Something the world did, told to whoever asked. Anything else that is raised is a bug."""

    code: ClassVar[int] = 1
    """The response code a peer sees; 1 is RocketMQ's SYSTEM_ERROR."""


class ProtocolError(GantryError):
    """Bytes that are not what the protocol says they must be."""


class ConfigError(GantryError):
    """A setting that cannot be used; the text says what to change."""


class WrongType(GantryError, TypeError):
    """An argument of a type that it cannot have; the text says which is right."""


class WrongValue(GantryError, ValueError):
    """An argument of the right type, with a value that it cannot have; the text says which can."""
