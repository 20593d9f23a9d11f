"""Asks every request of a server for its rights, before a handler sees it.

The order is RocketMQ's: an address of the global white list may do everything; then the access key
must be known; an address of the account's own white list may do everything; then the signature must
be right; then the code may need an admin, and each topic and group its permission.

The signature is checked for each request. What an account may do with a resource is looked up once
for each connection and version of the rules.
"""

import logging
from collections.abc import Callable
from typing import Final

from gantrymq.access.accounts import AccessRules, Account, Permission
from gantrymq.access.rights import SIGNED, Need
from gantrymq.access.signature import ACCESS_KEY
from gantrymq.base.errors import GantryError
from gantrymq.model.names import RETRY_PREFIX
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

Require = Callable[[Connection, Command, str, Permission], None]
"""Raises AccessDenied unless the request's account has a right to a topic."""


def nothing_required(
    connection: Connection, command: Command, resource: str, permission: Permission
) -> None:
    """What handlers ask without access control."""


DECISIONS_MAX: Final = 4_096
"""Decisions that are kept for one connection; others are made each time."""
TOLD_MAX: Final = 32
"""Refusals that are logged for one connection."""


class AccessDenied(GantryError):
    """A request without the right to it.

    Code 1 and these words are those of RocketMQ 4.9, whose clients and tools know them; RocketMQ 5
    answers NO_PERMISSION (16), with which brokers say here that a topic or group takes no messages.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"org.apache.rocketmq.acl.common.AclException: {why}")
        self.why = why


class _Known:
    """What was decided for one connection under one version of the rules."""

    __slots__ = ("allowed", "must_sign", "rules", "told", "trusted")

    def __init__(self, rules: AccessRules, trusted: bool) -> None:
        self.rules, self.trusted = rules, trusted
        self.must_sign: dict[str | None, Account] = {}
        """Accounts by access key whose own white list does not have the peer's address."""
        self.allowed: set[tuple[object, ...]] = set()
        self.told: set[str] = set()


class AccessGuard:
    """The guard of one server. `rules` may be exchanged at any time."""

    def __init__(self, rights: dict[int, Need], rules: AccessRules) -> None:
        self._rights = rights
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
            account = known.must_sign.get(access_key)
            if account is None:
                account = _find(known, access_key, connection.peer[0])
                if account is None:
                    return
            if not account.key.verifies(command):
                raise AccessDenied(f"Check signature failed for accessKey={access_key}")
            need = self._rights.get(command.code, SIGNED)
            if need.field is not None:
                decision: tuple[object, ...] = access_key, command.code, ext.get(need.field)
            else:
                decision = access_key, command.code, *map(ext.get, need.fields)
            if decision not in known.allowed:
                _allow(account, need, command)
                if need.of_body is None and len(known.allowed) < DECISIONS_MAX:
                    known.allowed.add(decision)
        except AccessDenied as denied:
            _tell(connection, command, known, denied.why)
            raise

    def require(
        self, connection: Connection, command: Command, resource: str, permission: Permission
    ) -> None:
        """Ask for one more right, of a request whose handler only now knows what it is about."""
        known = connection.access
        if not isinstance(known, _Known) or known.trusted:
            return
        access_key = command.ext.get(ACCESS_KEY)
        # Found anew: the rules may have changed since the request came.
        account = _find(known, access_key, connection.peer[0])
        if account is None or account.may(resource, permission):
            return
        denied = _no_permission(resource)
        _tell(connection, command, known, denied.why)
        raise denied


def _find(known: _Known, access_key: str | None, address: str) -> Account | None:
    """The account that has to sign; None if its white list has the address."""
    if access_key is None:
        raise AccessDenied("No accessKey is configured")
    account = known.rules.accounts.get(access_key)
    if account is None:
        raise AccessDenied(f"No acl config for {access_key}")
    if account.white_addresses.matches(address):
        return None
    known.must_sign[access_key] = account
    return account


def _tell(connection: Connection, command: Command, known: _Known, why: str) -> None:
    """Log a refusal, the same one once for each connection."""
    if why not in known.told and len(known.told) < TOLD_MAX:
        known.told.add(why)
        log.warning("%s: code %d denied: %s", connection.address, command.code, why)


def _allow(account: Account, need: Need, command: Command) -> None:
    if need.admin and not account.admin:
        raise AccessDenied(
            f"Need admin permission for request code={command.code}, "
            f"but accessKey={account.access_key} is not"
        )
    for resource, permission in need.wanted(command):
        if not account.may(resource, permission):
            raise _no_permission(resource)


def _no_permission(resource: str) -> AccessDenied:
    kind = "group" if resource.startswith(RETRY_PREFIX) else "topic"
    name = resource.removeprefix(RETRY_PREFIX)
    return AccessDenied(f"No default permission for {kind}:{name}")
