"""What settings say about users: the first ones, and requests that are open to all."""

import json

from gantrymq.access.users import User, UserType
from gantrymq.base.errors import ConfigError
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.own_key import FIRST_USER_KEY, own_credentials

GRPC_PREFIX = "apache.rocketmq."
"""Requests of RocketMQ's proxy, by the names of their types; there is none here."""


def users_of_settings(config: BrokerConfig) -> list[User]:
    """The super users that a broker makes if it has none of these names; raises ConfigError."""
    found = [_first_user(config.init_authentication_user.strip())]
    own = own_credentials(config)
    if own is not None:
        found.append(User(own.access_key, own.secret_key, UserType.SUPER))
    return [user for user in found if user is not None]


def _first_user(text: str) -> User | None:
    """Without the text of the setting in errors: it has a password."""
    if not text:
        return None
    try:
        fields = json.loads(text)
        username, password = fields["username"], fields["password"]
        if isinstance(username, str) and isinstance(password, str) and username and password:
            return User(username, password, UserType.SUPER)
    except (ValueError, KeyError, TypeError):
        pass
    raise ConfigError(f'{FIRST_USER_KEY}: write {{"username":"...","password":"..."}}')


def codes_of(key: str, text: str) -> frozenset[int]:
    """The request codes of a white list; raises ConfigError."""
    words = [word.strip() for word in text.split(",")]
    codes = set()
    for word in words:
        if word.isdecimal():
            codes.add(int(word))
        elif word and not word.startswith(GRPC_PREFIX):
            raise ConfigError(f"{key}: {word!r} is no number of a request code, as in 105,106")
    return frozenset(codes)
