"""What a request is signed with: HMAC-SHA1 over its field values and its body. Pure.

The values of all extension fields but the signature itself, in the order of their names, then the
body. Code, number and remark of the request are not signed, in RocketMQ neither.
"""

from typing import Final

from gantrymq.access.credentials import Credentials
from gantrymq.kernel import HmacSha1
from gantrymq.protocol.command import Command
from gantrymq.protocol.signed_fields import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
SIGNS_UNIQUE_KEY_QUERY: Final = 400
"""The first release number whose clients sign that field; older ones add it after signing."""
_SHAPES_MAX: Final = 1_024

_Shape = tuple[int, int, int, bool]
"""Code and release of a request, how many fields it has, and whether it is signed."""
_shapes: dict[_Shape, tuple[str, ...]] = {}
"""The names of the fields of such requests, in order.

Clients send the same names with every message, and sorting them costs as much as the hash. Who
finds a field for each name, among as many fields, has found all fields."""


class SigningKey:
    """A secret key that is ready to sign and to verify."""

    __slots__ = ("hmac",)

    def __init__(self, secret_key: str) -> None:
        self.hmac = HmacSha1(secret_key.encode())

    def __repr__(self) -> str:
        return "SigningKey(<hidden>)"

    def signature(self, command: Command) -> bytes:
        """The signature of a request in base64."""
        try:
            return self.hmac.signature(command.ext, _names(command), command.body)
        except KeyError:  # another client's names
            return self.hmac.signature(command.ext, _sorted_names(command), command.body)

    def verifies(self, command: Command) -> bool:
        """Whether a request was signed with this key."""
        ext, body = command.ext, command.body
        said = ext.get(SIGNATURE)
        if said is None:
            return False
        try:
            try:
                right = self.hmac.matches(ext, _names(command), body, said)
            except KeyError:  # another client's names
                right = self.hmac.matches(ext, _sorted_names(command), body, said)
            if right or SECURITY_TOKEN not in ext:
                return right
            # Go's client sends the token and leaves it out of what it signs.
            return self.hmac.matches(ext, _sorted_names(command, SECURITY_TOKEN), body, said)
        except UnicodeEncodeError:  # JSON can name half a character; nobody can sign it
            return False


def _names(command: Command) -> tuple[str, ...]:
    """The names of the fields that the signature covers, in order; perhaps of another request."""
    ext = command.ext
    names = _shapes.get((command.code, command.version, len(ext), SIGNATURE in ext))
    return _sorted_names(command) if names is None else names


def _sorted_names(command: Command, *unsigned: str) -> tuple[str, ...]:
    ext = command.ext
    if command.version < SIGNS_UNIQUE_KEY_QUERY:
        unsigned += (UNIQUE_KEY_QUERY,)
    ordered = tuple(sorted(name for name in ext if name != SIGNATURE and name not in unsigned))
    is_signed = SIGNATURE in ext
    if len(ordered) == len(ext) - is_signed:
        if len(_shapes) >= _SHAPES_MAX:  # somebody invents codes: begin anew, and stay small
            _shapes.clear()
        _shapes[command.code, command.version, len(ext), is_signed] = ordered
    return ordered


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
        command.ext[SIGNATURE] = self._key.signature(command).decode()

    def before_request(self, address: str, command: Command) -> None:
        self.sign(command)

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """Answers are not signed."""
