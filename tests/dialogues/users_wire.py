"""Signed requests from chosen addresses, for the dialogues about users and policies.

Signs by itself, as `wire` encodes by itself: what is recorded must not depend on what is tested.
"""

import base64
import hmac
import socket
from hashlib import sha1
from typing import Any

from wire import CONNECT_SECONDS_MAX, Connection, Frame

ADMIN, ADMIN_SECRET = "root", "root-secret"
SECRETS = {ADMIN: ADMIN_SECRET, "inner": "inner-secret"}


def secret_of(user: str) -> str:
    """The password of a user of the script."""
    return SECRETS.get(user, f"{user}-secret")


def signed(ext: dict[str, str], body: bytes, user: str, secret: str) -> dict[str, str]:
    """The fields of a request with the key and the signature."""
    fields = {**ext, "AccessKey": user}
    text = "".join(fields[name] for name in sorted(fields)).encode() + body
    made = hmac.new(secret.encode(), text, sha1).digest()
    return {**fields, "Signature": base64.b64encode(made).decode()}


class ConnectionFrom(Connection):
    """A connection that begins at a chosen address of the loopback network."""

    def __init__(self, address: str, source: str) -> None:
        super().__init__(address)
        self._socket.close()
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection(
            (host, int(port)), CONNECT_SECONDS_MAX, source_address=(source, 0)
        )


def ask(connection: Connection, request: dict[str, Any]) -> Frame:
    """Ask as the request's user; `user` None sends no key, `secret` replaces the right one."""
    body = request.get("body", "").encode()
    ext, user = dict(request.get("ext", {})), request.get("user", ADMIN)
    if user is not None:
        ext = signed(ext, body, user, request.get("secret", secret_of(user)))
    return connection.ask(request["code"], ext, body)
