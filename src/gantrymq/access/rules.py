"""What a guard asks of the rules in force, of whichever generation they are."""

from collections.abc import Collection
from typing import Any, Protocol, TypeVar

from gantrymq.access.accounts import Permission
from gantrymq.access.denials import AccessDenied
from gantrymq.access.signature import SigningKey
from gantrymq.protocol.command import Command


class Signer(Protocol):
    """Whoever signs requests: an account of an access file, or a user."""

    @property
    def key(self) -> SigningKey:
        """What signatures are checked with."""


class RequestNeed(Protocol):
    """What one request code needs besides a signature."""

    @property
    def field(self) -> str | None:
        """The only field on which the decision depends, if there is only one."""

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields on which the decision depends."""

    @property
    def of_body(self) -> Any:
        """What reads resources from the body; None if the decision does not depend on it."""


W = TypeVar("W", bound=Signer)
N_contra = TypeVar("N_contra", bound=RequestNeed, contravariant=True)


class Rules(Protocol[W, N_contra]):
    """All rules in force at one time; a change makes a new value."""

    @property
    def unsigned_codes(self) -> Collection[int]:
        """Requests that are served without a signature, if they need no right."""

    def trusts(self, address: str) -> bool:
        """Whether whoever comes from there may do everything, without a key."""

    def who_signs(self, access_key: str | None, address: str) -> W | None:
        """Who has to sign; None if the address needs no signature. Raises AccessDenied."""

    def wrong_signature(self, access_key: str | None) -> AccessDenied:
        """How a request is refused whose signature is not right."""

    def allow(self, who: W | None, need: N_contra, command: Command, address: str) -> None:
        """Return if the request may be served; raises AccessDenied. None: nobody has signed."""

    def require(
        self, who: W | None, command: Command, topic: str, permission: Permission, address: str
    ) -> None:
        """The same of one more topic, which only the handler of the request has found."""
