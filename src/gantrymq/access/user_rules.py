"""The rules of users and policies: RocketMQ 5.3's order of questions and its words. Pure.

The user must be named, known and enabled, and the signature must be right. A super user may do
everything; of any other, the policies decide about each resource that a request is about.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gantrymq.access.accounts import Permission
from gantrymq.access.denials import NotAuthenticated, PolicyDenied
from gantrymq.access.policies import SUBJECT_PREFIX, UserAcl, judge
from gantrymq.access.policy_needs import PolicyNeed, Wish, late_actions, topic_or_group
from gantrymq.access.users import User
from gantrymq.protocol.command import Command

NOBODY_SIGNED = "Authorization failed. Please verify your access rights and try again."


@dataclass(frozen=True)
class UserRules:
    """All users and policies at one time; a change makes a new value."""

    cluster: str
    """The name of the broker's cluster, by which policies mean the broker itself."""
    users: Mapping[str, User] = field(default_factory=dict)
    acls: Mapping[str, UserAcl] = field(default_factory=dict)
    unsigned_codes: Collection[int] = ()
    """The codes of `authenticationWhitelist`."""
    open_codes: Collection[int] = ()
    """The codes of `authorizationWhitelist`."""
    authorizes: bool = True
    """False: every user may do everything."""

    def trusts(self, address: str) -> bool:
        return False

    def who_signs(self, access_key: str | None, address: str) -> User:
        if not access_key:
            raise NotAuthenticated("username cannot be null.")
        user = self.users.get(access_key)
        if user is None:
            raise NotAuthenticated(f"User:{access_key} is not found.")
        if not user.is_enabled:
            raise NotAuthenticated(f"User:{access_key} is disabled.")
        return user

    def wrong_signature(self, access_key: str | None) -> NotAuthenticated:
        return NotAuthenticated("check signature failed.")

    def allow(self, who: User | None, need: PolicyNeed, command: Command, address: str) -> None:
        """Return if the user may send the request; raises PolicyDenied."""
        if not self.authorizes or command.code in self.open_codes:
            return
        if who is not None and who.is_super:
            return
        for wish in need.wishes(command, self.cluster):
            self._allow(who, wish, address)

    def require(
        self, who: User | None, command: Command, topic: str, permission: Permission, address: str
    ) -> None:
        """Return if the user may use the topic; raises PolicyDenied."""
        if not self.authorizes or command.code in self.open_codes:
            return
        actions = late_actions(command.code, permission)
        self._allow(who, (topic_or_group(topic), actions), address)

    def _allow(self, who: User | None, wish: Wish, address: str) -> None:
        if who is None:
            raise PolicyDenied(NOBODY_SIGNED)
        if who.is_super:
            return
        resource, actions = wish
        ruling = judge(self.acls.get(who.username), resource, actions, address)
        if not ruling.allowed:
            raise PolicyDenied(
                f"{SUBJECT_PREFIX}{who.username} has no permission to access {resource} "
                f"from {address}, {ruling.detail}"
            )
