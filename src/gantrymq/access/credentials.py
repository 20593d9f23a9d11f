"""The key pair of a client. Its secret half is in no text that a program prints or logs."""

from collections.abc import Mapping

import msgspec

from gantrymq.base.errors import ConfigError


class Credentials(msgspec.Struct, frozen=True):
    """Access key and secret key, and RocketMQ's optional token, which travels with requests."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.access_key, str) or not self.access_key.strip():
            raise ConfigError("credentials need an access key")
        if not isinstance(self.secret_key, str) or not self.secret_key:
            raise ConfigError(f"the credentials of {self.access_key!r} need a secret key")

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key=<hidden>)"

    __str__ = __repr__


def credentials_of(fields: Mapping[str, object], where: str) -> Credentials:
    """Credentials of a mapping with RocketMQ's names; `where` names it in errors."""
    found = {}
    for name in ("accessKey", "secretKey", "securityToken"):
        value = fields.get(name)
        found[name] = None if value is None or value == "" else str(value)
    access_key, secret_key = found["accessKey"], found["secretKey"]
    if access_key is None or secret_key is None:
        raise ConfigError(f"{where}: write both accessKey and secretKey")
    return Credentials(access_key, secret_key, found["securityToken"])
