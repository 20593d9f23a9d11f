"""Signatures of requests: the compiled kernel gives what the readable one gives."""

import hashlib
import hmac
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from twins import outcome, pure, twin

texts = st.one_of(st.text(max_size=80), st.just("\ud800"), st.just("é" * 70))
fields = st.dictionaries(st.text(max_size=4), texts, max_size=8)
secrets = st.one_of(st.binary(max_size=70), st.binary(min_size=60, max_size=66))


def key(kernel: Any, secret: bytes) -> Any:
    return kernel("HmacSha1")(secret)


@given(secrets, fields, st.binary(max_size=300), st.booleans())
@example(b"k", {"a": "x" * 55}, b"", False)
@example(b"k", {"a": "x" * 56}, b"y" * 64, False)
@example(b"k" * 64, {}, b"y" * 4096, False)
def test_both_sign_alike(secret: bytes, ext: dict[str, str], body: bytes, lacks: bool) -> None:
    """
    Keys shorter and longer than a block, values that are no text, a name without a field.
    """
    names = (*sorted(ext), *(["missing"] if lacks and "missing" not in ext else []))
    signed = [outcome(key(each, secret).signature, ext, names, body) for each in (pure, twin)]

    assert signed[0] == signed[1]
    if isinstance(signed[0], bytes):
        said = signed[0].decode()
        assert key(twin, secret).matches(ext, names, body, said)
        assert not key(twin, secret).matches(ext, names, body + b"x", said)


@pytest.mark.parametrize("size", [*range(130), 1023, 1024, 65_536])
def test_every_length_is_hashed_as_by_the_standard_library(size: int) -> None:
    """
    All ways in which the bytes can lie in the last blocks.
    """
    body = bytes(at & 0xFF for at in range(size))
    expected = b64encode(hmac.new(b"secret", b"value" + body, hashlib.sha1).digest())

    assert expected == key(twin, b"secret").signature({"a": "value"}, ("a",), body)


@given(st.one_of(st.text(max_size=40), st.just("\ud800")))
@example("")
@example("30On15NG+ak+AM2E+q89aC6dUl0")
@example("30On15NG+ak+AM2E+q89aC6dUl0=\0")
def test_nothing_but_the_signature_matches(said: str) -> None:
    """
    Shorter, longer, other characters, half a character.
    """
    arguments = {"AccessKey": "rocketmq2"}, ("AccessKey",), b"body", said
    found = [outcome(key(each, b"12345678").matches, *arguments) for each in (pure, twin)]

    assert found[0] == found[1]
    assert found[0] in (False, UnicodeEncodeError)


def test_no_key_shows_its_secret() -> None:
    """
    Neither form of it.
    """
    assert ["HmacSha1(<hidden>)"] * 2 == [repr(key(each, b"secret")) for each in (pure, twin)]
