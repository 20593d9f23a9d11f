"""Bodies in the form that suits them, or that was asked for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.api.decoding.forms import (
    SHOWN_CHARACTERS_MAX,
    BodyForm,
    Schema,
    decode_body,
)


@pytest.mark.parametrize(
    "body, form",
    [
        (b'{"a":1.00}', BodyForm.JSON),
        (b"[1,2]", BodyForm.JSON),
        (b"{broken", BodyForm.TEXT),
        ("Grüße\n".encode(), BodyForm.TEXT),
        (msgspec.msgpack.encode({"a": [1, b"x"]}), BodyForm.MSGPACK),
        (b"\x00\x01\x02\xff", BodyForm.HEX),
        (b"text with \x00", BodyForm.HEX),
        (b"[" * 100_000, BodyForm.TEXT),
        (b"\x91" * 100_000, BodyForm.HEX),
    ],
)
def test_the_form_is_chosen_by_the_bytes(body: bytes, form: BodyForm) -> None:
    """JSON, then readable text, then MessagePack, and hexadecimal for the rest."""
    assert decode_body(body, BodyForm.AUTO).form is form


def test_json_keeps_its_numbers_and_the_order_of_its_fields() -> None:
    """A page shows what was sent, not what a program made of it."""
    found = decode_body(b'{"b":1.00,"a":12345678901234567890123}', BodyForm.AUTO)

    assert found.text == '{\n  "b": 1.00,\n  "a": 12345678901234567890123\n}'


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (r'"M\u00fcller \u4e2d\u6587 \ud83d\ude00"', '"Müller 中文 😀"'),
        (r'"\\u00fc \n \u0022 \u0000"', r'"\\u00fc \n \u0022 \u0000"'),
        (r'"\u202e \ud83d \u00a0"', r'"\u202e \ud83d \u00a0"'),
    ],
)
def test_letters_of_json_are_letters(sent: str, shown: str) -> None:
    """What is no letter stays a number: ends of lines and strings, marks that turn lines around."""
    assert decode_body(sent.encode(), BodyForm.JSON).text == shown


def test_a_body_that_is_not_of_the_form_says_why() -> None:
    """It is shown in its own form meanwhile."""
    found = decode_body(b"hello", BodyForm.JSON)

    assert (found.form, found.text) == (BodyForm.TEXT, "hello")
    assert "no JSON" in found.trouble


def test_avro_needs_its_schema() -> None:
    """The sentence says so."""
    assert "schema" in decode_body(b"\x02", BodyForm.AVRO).trouble


def test_a_kept_schema_is_used_without_asking() -> None:
    """The automatic form reads with the schema of the topic, if it fits."""
    schema = Schema(form=BodyForm.AVRO, text='"string"')

    assert decode_body(b"\x04hi", BodyForm.AUTO, schema).form is BodyForm.AVRO
    assert decode_body(b"plain", BodyForm.AUTO, schema).trouble


def test_a_long_body_is_cut_and_says_so() -> None:
    """Four MiB of text do not go into a page."""
    found = decode_body(b"x" * (4 << 20), BodyForm.AUTO)

    assert found.is_cut
    assert len(found.text) == SHOWN_CHARACTERS_MAX


def test_hexadecimal_rows_have_place_digits_and_characters() -> None:
    """A line is one of a dump."""
    assert decode_body(b"ab\x00", BodyForm.HEX).text.split() == [
        "00000000",
        "61",
        "62",
        "00",
        "ab.",
    ]


@given(st.binary(max_size=200), st.sampled_from(BodyForm))
def test_every_body_has_every_form(body: bytes, form: BodyForm) -> None:
    """No bytes make a page fail."""
    schema = Schema(form=BodyForm.PROTOBUF, text="message A { string a = 1; }")

    assert isinstance(decode_body(body, form, schema).text, str)
