"""Decodes the body of a message to the type that a handler is annotated with."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.messages.delivery import Delivery

Decode = Callable[[Delivery], Any]


class PayloadRefused(GantryError):
    """The body does not fit the handler's annotation; a retry would not help."""


def decoder_of(wanted: Any, name: str) -> Decode:
    """The function that makes a handler's payload from a message, by its annotation."""
    if wanted is inspect.Parameter.empty or wanted is Delivery:
        return lambda message: message
    if wanted is bytes:
        return lambda message: message.body
    if wanted is str:
        return _checked(bytes.decode, wanted)
    if hasattr(wanted, "model_validate_json"):  # a pydantic model, recognized by this method
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
