"""One body in the form that was asked for, or in the form that suits it. Pure."""

import base64
import binascii
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from gantrymq.console.api.decoding.avro import parse_schema, read_avro
from gantrymq.console.api.decoding.limits import SCHEMA_CHARACTERS_MAX, CannotDecode
from gantrymq.console.api.decoding.plain import (
    for_json,
    hex_rows,
    is_readable,
    pretty_json,
    read_msgpack,
    shown_value,
    text_of,
)
from gantrymq.console.api.decoding.proto_file import parse_proto
from gantrymq.console.api.decoding.proto_types import ProtoTypes
from gantrymq.console.api.decoding.proto_wire import read_descriptors, read_proto, read_raw

SHOWN_CHARACTERS_MAX: Final = 256 * 1024
"""Of one body on a page."""


class BodyForm(Enum):
    """How a body is shown."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    MSGPACK = "msgpack"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    HEX = "hex"


class Schema(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What Avro and Protocol Buffers bodies are read with."""

    form: BodyForm
    """avro or protobuf"""
    text: str
    """An Avro schema in JSON; a .proto file, or a FileDescriptorSet in base64."""
    message: str = ""
    """The message type of a Protocol Buffers body; without it the first one of the file."""


class DecodedBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body as text."""

    form: BodyForm
    text: str
    is_cut: bool = False
    trouble: str = ""
    """Why it is not in the form that was asked for."""


def check_schema(schema: Schema) -> None:
    """CannotDecode says what is wrong with a schema."""
    _reader(schema.form, schema.text, schema.message)


@lru_cache(maxsize=64)
def _reader(form: BodyForm, text: str, message: str) -> Callable[[bytes], Any]:
    if len(text) > SCHEMA_CHARACTERS_MAX:
        raise CannotDecode(f"a schema of more than {SCHEMA_CHARACTERS_MAX:,} characters")
    if form is BodyForm.AVRO:
        schema = parse_schema(text)
        return lambda body: read_avro(body, schema)
    if form is not BodyForm.PROTOBUF:
        raise CannotDecode(f"there are no schemas for {form.value}")
    types = _proto_types(text)
    types.message(message)
    return lambda body: read_proto(body, types, message)


def _proto_types(text: str) -> ProtoTypes:
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return parse_proto(text)
    return read_descriptors(data)


def read_value(body: bytes, schema: Schema) -> Any:
    """The value of a body with a schema."""
    return _reader(schema.form, schema.text, schema.message)(body)


def decode_body(body: bytes, form: BodyForm, schema: Schema | None = None) -> DecodedBody:
    """The body in a form. If it is not of that form it is shown in its own, and says so."""
    if form is BodyForm.AUTO:
        return _suited(body, schema)
    try:
        return _cut(form, _forms(body, form, schema))
    except CannotDecode as error:
        found = _suited(body, None)
        return msgspec.structs.replace(found, trouble=str(error))


def _forms(body: bytes, form: BodyForm, schema: Schema | None) -> str:
    if form is BodyForm.JSON:
        return pretty_json(body)
    if form is BodyForm.TEXT:
        return text_of(body)
    if form is BodyForm.MSGPACK:
        return shown_value(for_json(read_msgpack(body)))
    if form is BodyForm.HEX:
        return hex_rows(body)
    if schema is not None and schema.form is form:
        return shown_value(read_value(body, schema))
    if form is BodyForm.PROTOBUF:
        return shown_value(read_raw(body))
    raise CannotDecode("an Avro body can only be read with its schema")


def _suited(body: bytes, schema: Schema | None) -> DecodedBody:
    """With the schema if it fits; else JSON, readable text, MessagePack, or hexadecimal."""
    trouble = ""
    if schema is not None:
        try:
            return _cut(schema.form, shown_value(read_value(body, schema)))
        except CannotDecode as error:
            trouble = str(error)
    form, text = _plain(body)
    return msgspec.structs.replace(_cut(form, text), trouble=trouble)


def _plain(body: bytes) -> tuple[BodyForm, str]:
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            return BodyForm.JSON, pretty_json(body)
        except CannotDecode:
            pass
    try:
        text = text_of(body)
        if is_readable(text):
            return BodyForm.TEXT, text
    except CannotDecode:
        pass
    try:
        value = read_msgpack(body)
        if isinstance(value, dict | list):
            return BodyForm.MSGPACK, shown_value(for_json(value))
    except CannotDecode:
        pass
    return BodyForm.HEX, hex_rows(body)


def _cut(form: BodyForm, text: str) -> DecodedBody:
    is_cut = len(text) > SHOWN_CHARACTERS_MAX
    return DecodedBody(form=form, text=text[:SHOWN_CHARACTERS_MAX], is_cut=is_cut)
