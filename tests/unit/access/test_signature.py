"""What is signed, and which signatures are right."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.access.credentials import Credentials
from gantrymq.access.signature import RequestSigner, SigningKey
from gantrymq.protocol.command import Command

SHEET = {"AccessKey": "rocketmq2", "queueId": "0", "topic": "T"}


def request(ext: dict[str, str], body: bytes = b"", version: int = 399) -> Command:
    return Command(code=10, ext=ext, body=body, version=version)


def test_the_vector_of_rocketmqs_clients() -> None:
    """
    Values in the order of their names, then the body.
    """
    made = SigningKey("12345678").signature(request(dict(SHEET), b"body"))

    assert b"30On15NG+ak+AM2E+q89aC6dUl0=" == made


@given(
    st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=6),
    st.binary(max_size=200),
    st.text(min_size=1, max_size=100),
)
def test_a_signature_is_the_hmac_of_the_standard_library(
    ext: dict[str, str], body: bytes, secret: str
) -> None:
    """
    Keys longer than a block of SHA-1 are hashed first, fields are sorted by name.
    """
    command = request(ext, body)
    RequestSigner(Credentials("somebody", secret)).sign(command)
    signed = "".join(v for k, v in sorted(command.ext.items()) if k != "Signature").encode() + body
    expected = base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha1).digest()).decode()

    assert expected == command.ext["Signature"]
    assert SigningKey(secret).verifies(command)


@pytest.mark.parametrize("changed", ["topic", "queueId", "AccessKey", "body", "more", "Signature"])
def test_any_change_breaks_a_signature(changed: str) -> None:
    """
    A field, a new field, the body, and no signature at all.
    """
    command = request({"queueId": "0", "topic": "T"}, b"body")
    RequestSigner(Credentials("rocketmq2", "12345678")).sign(command)
    if changed == "body":
        command.body = b"other"
    elif changed == "Signature":
        del command.ext["Signature"]
    else:
        command.ext[changed] = "other"

    assert not SigningKey("12345678").verifies(command)


@pytest.mark.parametrize(
    "signs_it, version, right",
    [(False, 399, True), (True, 399, False), (True, 400, True), (False, 400, False)],
)
def test_old_clients_do_not_sign_the_mark_of_a_query_by_unique_key(
    signs_it: bool, version: int, right: bool
) -> None:
    """
    They add `_UNIQUE_KEY_QUERY` after signing; releases from number 400 on sign it.
    """
    command = request({"topic": "T"}, version=400)
    if signs_it:
        command.ext["_UNIQUE_KEY_QUERY"] = "true"
    RequestSigner(Credentials("rocketmq2", "12345678")).sign(command)
    command.ext["_UNIQUE_KEY_QUERY"] = "true"
    command.version = version

    assert right == SigningKey("12345678").verifies(command)


def test_gos_client_leaves_the_token_unsigned() -> None:
    """
    A token may be signed, as Java's client does, or not.
    """
    java = request({"topic": "T"})
    RequestSigner(Credentials("rocketmq2", "12345678", "token")).sign(java)
    go = request({"topic": "T"})
    RequestSigner(Credentials("rocketmq2", "12345678")).sign(go)
    go.ext["SecurityToken"] = "token"

    assert SigningKey("12345678").verifies(java)
    assert SigningKey("12345678").verifies(go)


def test_a_request_is_signed_anew_when_it_is_sent_again() -> None:
    """
    The old signature is not part of what is signed.
    """
    command = request({"topic": "T"})
    signer = RequestSigner(Credentials("rocketmq2", "12345678"))
    signer.sign(command)
    before = command.ext["Signature"]
    signer.sign(command)

    assert before == command.ext["Signature"]


def test_half_a_character_is_no_signature_and_no_fault() -> None:
    """
    JSON headers can carry a lone surrogate, in a signed field and as the signature itself.
    """
    for ext in ({"topic": "\ud800", "Signature": "x"}, {"topic": "T", "Signature": "\ud800"}):
        assert not SigningKey("12345678").verifies(request(ext))


def test_two_clients_with_as_many_fields_do_not_disturb_each_other() -> None:
    """
    The order of names that is remembered for one is not taken for the other.
    """
    signer, key = RequestSigner(Credentials("rocketmq2", "12345678")), SigningKey("12345678")
    requests = [request({"topic": "T", "z": "1"}), request({"queueId": "0", "topic": "T"})] * 2
    for command in requests:
        signer.sign(command)

    assert all(key.verifies(command) for command in requests)
