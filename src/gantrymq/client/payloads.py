"""What a typed handler is given in place of the message: its body as the annotation says."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.delivery import Delivery

Decode = Callable[[Delivery], Any]


class HandlerRefused(GantryError):
    """A handler cannot run as declared, or not beside another; the text says what to change."""


class PayloadRefused(GantryError):
    """A body is not what the handler is declared for; trying again would change nothing."""


def arguments_of(function: Callable[..., Any]) -> tuple[Decode, int]:
    """How the first argument is made, and how many a handler wants."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    except NameError as error:
        raise HandlerRefused(f"handler {name}: its annotations cannot be read: {error}") from error
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not 1 <= len(positional) == len(parameters) <= 3:
        raise HandlerRefused(
            f"handler {name} must take (payload), (payload, message) or "
            "(payload, message, transaction)"
        )
    return _decoder(positional[0].annotation, name), len(positional)


def _decoder(wanted: Any, name: str) -> Decode:
    if wanted is inspect.Parameter.empty or wanted is Delivery:
        return lambda message: message
    if wanted is bytes:
        return lambda message: message.body
    if wanted is str:
        return _checked(bytes.decode, wanted)
    if hasattr(wanted, "model_validate_json"):  # a pydantic model, known by its manners
        return _checked(wanted.model_validate_json, wanted)
    try:
        unknown = isinstance(msgspec.inspect.type_info(wanted), msgspec.inspect.CustomType)
        decode = msgspec.json.Decoder(wanted).decode
    except (TypeError, NameError) as error:
        raise HandlerRefused(f"handler {name}: no payload of type {wanted!r}: {error}") from error
    if unknown:
        raise HandlerRefused(
            f"handler {name}: {wanted!r} cannot be read from JSON; use a msgspec Struct, a "
            "dataclass, a pydantic model, dict, list, str, bytes or Delivery"
        )
    return _checked(decode, wanted)


def _checked(decode: Callable[[bytes], Any], wanted: Any) -> Decode:
    kind = getattr(wanted, "__name__", str(wanted))

    def read(message: Delivery) -> Any:
        try:
            return decode(message.body)
        except Exception as error:
            raise PayloadRefused(f"the body is no {kind}: {error}") from error

    return read
