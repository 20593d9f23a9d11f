"""What a request is signed with: HMAC-SHA1 over its field values and its body. Pure.

The values of all extension fields but the signature itself, in the order of their names, then the
body. Code, number and remark of the request are not signed, in RocketMQ neither.
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping
from hashlib import sha1
from hmac import compare_digest
from operator import itemgetter
from typing import Final

from gantrymq.access.credentials import Credentials
from gantrymq.protocol.command import Command

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
SIGNS_UNIQUE_KEY_QUERY: Final = 400
"""The first release number whose clients sign that field; older ones add it after signing."""
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(each ^ 0x36 for each in range(256))
_OUTER: Final = bytes(each ^ 0x5C for each in range(256))
_SHAPES_MAX: Final = 1_024

_Shape = tuple[int, int, int, bool]
"""Code and release of a request, how many fields it has, and whether it is signed."""
_shapes: dict[_Shape, Callable[[Mapping[str, str]], tuple[str, ...]]] = {}
"""The functions that take the values of such requests in order.

Clients send the same names with every message, and sorting them costs as much as the hash. A
function that finds all its names, among as many fields, has found all fields."""


class SigningKey:
    """A secret key that is ready to sign: its two hashes are begun once, not per request."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret_key: str) -> None:
        key = secret_key.encode()
        if len(key) > _BLOCK_BYTES:
            key = sha1(key).digest()
        key = key.ljust(_BLOCK_BYTES, b"\0")
        self._inner, self._outer = sha1(key.translate(_INNER)), sha1(key.translate(_OUTER))

    def __repr__(self) -> str:
        return "SigningKey(<hidden>)"

    def signature(self, fields: bytes, body: bytes) -> bytes:
        """The signature in base64."""
        inner = self._inner.copy()
        inner.update(fields)
        if body:
            inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return b2a_base64(outer.digest(), newline=False)

    def verifies(self, command: Command) -> bool:
        """Whether a request was signed with this key; the same steps as `signature`, in line."""
        said = command.ext.get(SIGNATURE)
        if said is None:
            return False
        inner = self._inner.copy()
        inner.update(signed_fields(command))
        inner.update(command.body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        signed = said.encode()
        if compare_digest(b2a_base64(outer.digest(), newline=False), signed):
            return True
        if SECURITY_TOKEN not in command.ext:
            return False
        # Go's client sends the token and leaves it out of what it signs.
        made = self.signature(_sorted_fields(command, SECURITY_TOKEN), command.body)
        return compare_digest(made, signed)


def signed_fields(command: Command) -> bytes:
    """The field values that the signature covers, one after the other."""
    ext = command.ext
    values_in_order = _shapes.get((command.code, command.version, len(ext), SIGNATURE in ext))
    if values_in_order is not None:
        try:
            return "".join(values_in_order(ext)).encode()
        except KeyError:
            pass  # another client's names
    return _sorted_fields(command)


def _sorted_fields(command: Command, *unsigned: str) -> bytes:
    ext = command.ext
    if command.version < SIGNS_UNIQUE_KEY_QUERY:
        unsigned += (UNIQUE_KEY_QUERY,)
    ordered = sorted(name for name in ext if name != SIGNATURE and name not in unsigned)
    is_signed = SIGNATURE in ext
    if len(ordered) == len(ext) - is_signed > 1:
        if len(_shapes) >= _SHAPES_MAX:  # somebody invents codes: begin anew, and stay small
            _shapes.clear()
        shape = command.code, command.version, len(ext), is_signed
        _shapes[shape] = itemgetter(*ordered)
    return "".join([ext[name] for name in ordered]).encode()


class RequestSigner:
    """Signs requests with one key pair; also a hook of the client."""

    def __init__(self, credentials: Credentials) -> None:
        self._access_key, self._token = credentials.access_key, credentials.security_token
        self._key = SigningKey(credentials.secret_key)

    def sign(self, command: Command) -> None:
        """Add the access key and the signature; whoever changes the request later breaks it."""
        command.ext[ACCESS_KEY] = self._access_key
        if self._token is not None:
            command.ext[SECURITY_TOKEN] = self._token
        made = self._key.signature(signed_fields(command), command.body)
        command.ext[SIGNATURE] = made.decode()

    def before_request(self, address: str, command: Command) -> None:
        self.sign(command)

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """Answers are not signed."""
