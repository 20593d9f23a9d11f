"""Users of RocketMQ 5.3's access control. Pure."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from gantrymq.access.signature import SigningKey


class NamedValue(Enum):
    """A word of RocketMQ's; it is read in any spelling of its letters."""

    @classmethod
    def named(cls, text: str | None) -> Self | None:
        """The value of that name; None if there is none."""
        wanted = (text or "").lower()
        return next((each for each in cls if each.value.lower() == wanted), None)


class UserType(NamedValue):
    """A super user may do everything, a normal one what its policies allow."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(NamedValue):
    """A disabled user is refused whatever its policies say."""

    ENABLE = "enable"
    DISABLE = "disable"


@dataclass(frozen=True)
class User:
    """A name, which is the access key of its requests, and a password, their secret key."""

    username: str
    password: str = field(repr=False)
    user_type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLE
    key: SigningKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", SigningKey(self.password))

    @property
    def is_super(self) -> bool:
        return self.user_type is UserType.SUPER

    @property
    def is_enabled(self) -> bool:
        return self.status is UserStatus.ENABLE
