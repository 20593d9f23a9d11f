"""The rules of access files: RocketMQ 4.9's order of questions and its words. Pure.

An address of the global white list may do everything; then the access key must be known; an address
of the account's own white list may do everything; then the signature must be right; then the code
may need an admin, and each topic and group its permission.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gantrymq.access.accounts import Account, Permission
from gantrymq.access.addresses import AddressPattern
from gantrymq.access.denials import AclDenied
from gantrymq.access.rights import Need
from gantrymq.model.names import RETRY_PREFIX
from gantrymq.protocol.command import Command


@dataclass(frozen=True)
class AccessRules:
    """All rules of the access files at one time; a change makes a new value."""

    accounts: Mapping[str, Account] = field(default_factory=dict)
    white_addresses: tuple[AddressPattern, ...] = ()
    """Whoever comes from there may do everything, without a key."""
    unsigned_codes: Collection[int] = ()

    def trusts(self, address: str) -> bool:
        return any(pattern.matches(address) for pattern in self.white_addresses)

    def who_signs(self, access_key: str | None, address: str) -> Account | None:
        """The account that has to sign; None if its white list has the address."""
        if access_key is None:
            raise AclDenied("No accessKey is configured")
        account = self.accounts.get(access_key)
        if account is None:
            raise AclDenied(f"No acl config for {access_key}")
        return None if account.white_addresses.matches(address) else account

    def wrong_signature(self, access_key: str | None) -> AclDenied:
        return AclDenied(f"Check signature failed for accessKey={access_key}")

    def allow(self, who: Account | None, need: Need, command: Command, address: str) -> None:
        """Return if the account may send the request; raises AclDenied."""
        if who is None:
            return
        if need.admin and not who.admin:
            raise AclDenied(
                f"Need admin permission for request code={command.code}, "
                f"but accessKey={who.access_key} is not"
            )
        for resource, permission in need.wanted(command):
            self.require(who, command, resource, permission, address)

    def require(
        self,
        who: Account | None,
        command: Command,
        topic: str,
        permission: Permission,
        address: str,
    ) -> None:
        """Return if the account has the permission; raises AclDenied."""
        if who is not None and not who.may(topic, permission):
            kind = "group" if topic.startswith(RETRY_PREFIX) else "topic"
            name = topic.removeprefix(RETRY_PREFIX)
            raise AclDenied(f"No default permission for {kind}:{name}")
