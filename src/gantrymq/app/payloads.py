"""What a typed handler is given in place of the message: its body as the annotation says."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.messages.delivery import Delivery

Decode = Callable[[Delivery], Any]


class PayloadRefused(GantryError):
    """A body is not what the handler is declared for; trying again would change nothing."""


def decoder_of(wanted: Any, name: str) -> Decode:
    """How the payload of a handler is made from a message, by its annotation."""
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
