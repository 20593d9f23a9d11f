"""Asks every request of a server for its rights, before a handler sees it.

Which questions are asked, in which order and with which words, is the matter of the rules in force:
those of access files (`account_rules`) or of users and policies (`user_rules`). Both check a
signature for each request. What a key may do with a resource is looked up once for each connection
and version of the rules.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from gantrymq.access.accounts import Permission
from gantrymq.access.denials import AccessDenied, NotAuthenticated
from gantrymq.access.rules import RequestNeed, Rules, Signer
from gantrymq.kernel import SendAccess
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.signed_fields import ACCESS_KEY
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

W = TypeVar("W", bound=Signer)
N = TypeVar("N", bound=RequestNeed)

Require = Callable[[Connection, Command, str, Permission], None]
"""Raises AccessDenied unless whoever signed the request has a right to a topic."""


def nothing_required(
    connection: Connection, command: Command, resource: str, permission: Permission
) -> None:
    """What handlers ask without access control."""


DECISIONS_MAX: Final = 4_096
"""Decisions that are kept for one connection; others are made each time."""
SEND_TOPIC: Final = "b"
"""The field of a send's topic."""
TOLD_MAX: Final = 32
"""Refusals that are logged for one connection."""


class _Known:
    """What was decided for one connection under one version of the rules."""

    __slots__ = ("allowed", "must_sign", "rules", "sends", "told", "trusted")

    def __init__(self, rules: Rules[Any, Any], trusted: bool) -> None:
        self.rules, self.trusted = rules, trusted
        self.must_sign: dict[str | None, Any] = {}
        """By access key, who has to sign from the peer's address."""
        self.allowed: set[tuple[object, ...]] = set()
        self.told: set[str] = set()
        self.sends: SendAccess | None = None
        """Whose sends may be taken without a look at each: those of the first key that sent."""

    def keep(self, decision: tuple[object, ...], who: Any, need: Any, command: Command) -> None:
        """Keep that a request was allowed."""
        self.allowed.add(decision)
        if command.code != RequestCode.SEND_MESSAGE_V2 or need.field != SEND_TOPIC:
            return
        access_key = command.ext[ACCESS_KEY].encode()
        if self.sends is None:
            self.sends = SendAccess(access_key, who.key.hmac, set())
        if self.sends.access_key == access_key:
            self.sends.topics.add(command.ext[SEND_TOPIC])


class AccessGuard(Generic[W, N]):
    """The guard of one server. `rules` may be exchanged at any time."""

    def __init__(self, rights: Mapping[int, N], rules: Rules[W, N], otherwise: N) -> None:
        """`otherwise` is what codes need that have no row."""
        self._rights, self._otherwise = rights, otherwise
        self.rules = rules

    def __call__(self, connection: Connection, command: Command) -> None:
        """Return if the request may be served; raises AccessDenied."""
        known = connection.access
        if not isinstance(known, _Known) or known.rules is not self.rules:
            known = _Known(self.rules, self.rules.trusts(connection.peer[0]))
            connection.access = known
        if known.trusted:
            return
        try:
            ext = command.ext
            access_key = ext.get(ACCESS_KEY)
            who = known.must_sign.get(access_key)
            if who is None:
                who = _find(known, access_key, connection.peer[0])
                if who is None:
                    return
            if not who.key.verifies(command):
                raise known.rules.wrong_signature(access_key)
            need = self._rights.get(command.code, self._otherwise)
            if need.field is not None:
                decision: tuple[object, ...] = access_key, command.code, ext.get(need.field)
            else:
                decision = access_key, command.code, *map(ext.get, need.fields)
            if decision not in known.allowed:
                known.rules.allow(who, need, command, connection.peer[0])
                if need.of_body is None and len(known.allowed) < DECISIONS_MAX:
                    known.keep(decision, who, need, command)
        except AccessDenied as denied:
            unsigned = isinstance(denied, NotAuthenticated)
            if unsigned and command.code in self.rules.unsigned_codes:
                self._allow_unsigned(connection, command, known)
                return
            _tell(connection, command, known, denied.why)
            raise

    def lets_through(self, connection: Connection) -> tuple[bool, SendAccess | None]:
        """Whether sends of a connection may be taken without a look at each, and which.

        Not before requests were decided under the rules in force. None: all, whoever signs them.
        """
        known = connection.access
        if not isinstance(known, _Known) or known.rules is not self.rules:
            return False, None
        return known.trusted or known.sends is not None, known.sends

    def _allow_unsigned(self, connection: Connection, command: Command, known: _Known) -> None:
        """Return if the request needs no right; raises AccessDenied."""
        need = self._rights.get(command.code, self._otherwise)
        try:
            self.rules.allow(None, need, command, connection.peer[0])
        except AccessDenied as denied:
            _tell(connection, command, known, denied.why)
            raise denied from None

    def signer(self, connection: Connection, command: Command) -> W | None:
        """Who has signed a request that is being served; None if nobody had to."""
        known = connection.access
        if not isinstance(known, _Known) or known.trusted:
            return None
        access_key, address = command.ext.get(ACCESS_KEY), connection.peer[0]
        if command.code in self.rules.unsigned_codes:
            found = known.must_sign.get(access_key)
            return found if found is not None and found.key.verifies(command) else None
        # Found anew: the rules may have changed since the request came.
        return self.rules.who_signs(access_key, address)

    def require(
        self, connection: Connection, command: Command, resource: str, permission: Permission
    ) -> None:
        """Ask for one more right, of a request whose handler only now knows what it is about."""
        known = connection.access
        if not isinstance(known, _Known) or known.trusted:
            return
        try:
            who = self.signer(connection, command)
            self.rules.require(who, command, resource, permission, connection.peer[0])
        except AccessDenied as denied:
            _tell(connection, command, known, denied.why)
            raise


def _find(known: _Known, access_key: str | None, address: str) -> Any:
    """Who has to sign; None if the address needs no signature."""
    who = known.rules.who_signs(access_key, address)
    if who is not None:
        known.must_sign[access_key] = who
    return who


def _tell(connection: Connection, command: Command, known: _Known, why: str) -> None:
    """Log a refusal, the same one once for each connection."""
    if why not in known.told and len(known.told) < TOLD_MAX:
        known.told.add(why)
        log.warning("%s: code %d denied: %s", connection.address, command.code, why)
