"""HMAC-SHA1 over the fields and the body of a request: the pure twin of a step of signed requests.

Which fields are signed, and in which order, is for `access.signature` to say.
"""

from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha1
from hmac import compare_digest
from typing import Final

_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(each ^ 0x36 for each in range(256))
_OUTER: Final = bytes(each ^ 0x5C for each in range(256))


class HmacSha1:
    """A secret key that is ready to sign: its two hashes are begun once, not per request."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        if len(secret) > _BLOCK_BYTES:
            secret = sha1(secret).digest()
        key = secret.ljust(_BLOCK_BYTES, b"\0")
        self._inner, self._outer = sha1(key.translate(_INNER)), sha1(key.translate(_OUTER))

    def __repr__(self) -> str:
        return "HmacSha1(<hidden>)"

    def signature(self, fields: Mapping[str, str], names: tuple[str, ...], body: bytes) -> bytes:
        """In base64: the HMAC of the named fields' values and of the body.

        Raises KeyError if a name has no field, UnicodeEncodeError if a value is no text.
        """
        inner = self._inner.copy()
        inner.update("".join([fields[name] for name in names]).encode())
        inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return b2a_base64(outer.digest(), newline=False)

    def matches(
        self, fields: Mapping[str, str], names: tuple[str, ...], body: bytes, said: str
    ) -> bool:
        """Whether `said` is that signature; the comparison takes as long for every wrong one."""
        return compare_digest(self.signature(fields, names, body), said.encode())
