"""Who may read the metrics where access control is on: HTTP's basic authentication.

Any account of the access files, or any user that is enabled, may read: metrics name topics and
groups, but no message and no secret. So Prometheus can have a key without any right. An address on
the white list needs no key, as everywhere.
"""

import base64
import binascii
import logging
from typing import Any, Final

from gantrymq.access.credentials import Credentials
from gantrymq.access.denials import AccessDenied
from gantrymq.access.guard import AccessGuard
from gantrymq.access.signature import RequestSigner
from gantrymq.base.errors import ConfigError
from gantrymq.protocol.command import Command

log = logging.getLogger(__name__)

KEY_CHARACTERS_MAX: Final = 1_024


class ScrapeAccess:
    """Asks the rules of a server's guard, whichever are in force."""

    def __init__(self, guard: AccessGuard[Any, Any]) -> None:
        self._guard = guard

    def allows(self, address: str, authorization: str | None) -> bool:
        """Whether an address may read, with what it says in the header Authorization."""
        rules = self._guard.rules
        if rules.trusts(address):
            return True
        pair = _pair(authorization)
        try:
            who = rules.who_signs(None if pair is None else pair.access_key, address)
            if who is None:
                return True
            right = pair is not None and who.key.verifies(_signed_with(pair))
        except AccessDenied:
            right = False
        if not right and pair is not None:
            log.warning("%s: metrics denied to %r", address, pair.access_key)
        return right


def _pair(authorization: str | None) -> Credentials | None:
    """The key pair of a header `Basic ...`; None if it has none."""
    kind, _, text = (authorization or "").partition(" ")
    if kind.lower() != "basic" or len(text) > KEY_CHARACTERS_MAX:
        return None
    try:
        access_key, _, secret_key = base64.b64decode(text, validate=True).decode().partition(":")
        return Credentials(access_key, secret_key)
    except (binascii.Error, UnicodeDecodeError, ConfigError):
        return None


def _signed_with(pair: Credentials) -> Command:
    """A request that was signed with the secret key: accounts only keep what verifies it."""
    command = Command(code=0, ext={})
    RequestSigner(pair).sign(command)
    return command
