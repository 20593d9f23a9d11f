"""The console's own users: names, roles and hashes of passwords, in a file that is read again when
it changes.

    {"ann": {"role": "admin", "password": "scrypt$..."}}

A damaged file lets nobody in who was not known before; the log says so.
"""

import logging
import re
from pathlib import Path
from typing import Final

import msgspec

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import save_text
from gantrymq.base.hidden import repr_without
from gantrymq.console.access.passwords import CHARACTERS_MAX, CHARACTERS_MIN, hashed, parse
from gantrymq.console.access.user import FILE_ROLES, Role

log = logging.getLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class KnownUser(msgspec.Struct, frozen=True):
    """A user as the file has it."""

    role: Role
    password: str
    """Its salted hash."""

    def __repr__(self) -> str:
        return repr_without(self, ("password",))


Users = dict[str, KnownUser]


class UsersFile:
    """The users of a file; a missing file has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._users: Users = {}

    @property
    def users(self) -> Users:
        """The users of the file as it is now; if it is damaged, those that were read last."""
        try:
            stat = self.path.stat()
        except OSError:
            self._seen, self._users = None, {}
            return self._users
        seen = stat.st_mtime_ns, stat.st_size
        if seen != self._seen:
            self._seen = seen
            try:
                self._users = read_users(self.path)
            except ConfigError as error:
                log.error("CONSOLE USERS NOT CHANGED: %s", error)
        return self._users

    def put(self, name: str, role: Role, password: str) -> None:
        """Add a user, or give it another role and password."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name for a user: letters, digits, dot, dash, underscore and @, "
                "64 at most"
            )
        if not CHARACTERS_MIN <= len(password) <= CHARACTERS_MAX:
            raise ConfigError(
                f"a password has {CHARACTERS_MIN} to {CHARACTERS_MAX} characters, "
                f"this one {len(password)}"
            )
        self._save(read_users(self.path) | {name: KnownUser(role, hashed(password))})

    def remove(self, name: str) -> None:
        """Remove a user."""
        users = read_users(self.path)
        if name not in users:
            raise ConfigError(f"no user {name!r} in {self.path}")
        self._save({other: user for other, user in users.items() if other != name})

    def _save(self, users: Users) -> None:
        text = msgspec.json.format(msgspec.json.encode(users), indent=2).decode()
        save_text(OsDisk(), str(self.path.absolute()), text + "\n", private=True)


def read_users(path: Path) -> Users:
    """The users of a file; ConfigError says what is wrong with it."""
    try:
        users = msgspec.json.decode(path.read_bytes(), type=Users)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is damaged: {error}; bring {path}.bak back") from None
    for name, user in users.items():
        if user.role not in FILE_ROLES:
            raise ConfigError(f"{path}: the role of {name!r} must be reader or admin")
        if parse(user.password) is None:
            raise ConfigError(f"{path}: the password of {name!r} is no hash that this console made")
    return users
