"""TLS settings under RocketMQ's names.

RocketMQ takes them as system properties of Java and from the file that `tls.config.file` names.
Here they stand among the settings of a server, on its command line, or in that file, which wins.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gantrymq.base.config import WrittenSettings, unknown_key
from gantrymq.base.errors import ConfigError
from gantrymq.base.tls.network import TlsMode

log = logging.getLogger(__name__)

PREFIX: Final = "tls."
CONFIG_FILE: Final = "tls.config.file"
CONFIG_FILE_DEFAULT: Final = "/etc/rocketmq/tls.properties"
CLIENT_AUTH: Final = ("none", "optional", "require")
WITHOUT_EFFECT: Final = {
    "tls.test.mode.enable": "no certificate is made up: set tls.server.certPath and keyPath",
    "tls.ciphers": "OpenSSL chooses among the ciphers of TLS 1.2 and 1.3",
    "tls.protocols": "TLS 1.2 and 1.3 are spoken, nothing older",
}


@dataclass(frozen=True)
class TlsParty:
    """The certificate of one side, and what it wants of the other side's."""

    cert_path: str = ""
    key_path: str = ""
    key_password: str = field(default="", repr=False)
    trust_path: str = ""
    checks_peer: bool = False

    @property
    def files(self) -> list[str]:
        return [path for path in (self.cert_path, self.key_path, self.trust_path) if path]


@dataclass(frozen=True)
class TlsSettings:
    """All of them. Without certificates servers take plain connections only."""

    mode: TlsMode = TlsMode.PERMISSIVE
    client_auth: str = "none"
    server: TlsParty = TlsParty()
    enable: bool = False
    """Whether the connections that this process opens are TLS."""
    checks_host_name: bool = False
    """Whether a server's certificate has to have its name; RocketMQ does not look."""
    client: TlsParty = TlsParty()


def take_tls(written: WrittenSettings) -> tuple[TlsSettings, WrittenSettings]:
    """The TLS settings among those of a server, and all others."""
    mine = {key: value for key, value in written.values.items() if key.startswith(PREFIX)}
    rest = {key: value for key, value in written.values.items() if key not in mine}
    return tls_settings(mine), WrittenSettings(rest, written.places)


def with_config_file(given: Mapping[str, str]) -> dict[str, str]:
    """Settings by RocketMQ's names, with those of the file that they name."""
    path = given.get(CONFIG_FILE, CONFIG_FILE_DEFAULT)
    values = {
        key: value.strip()
        for key, value in given.items()
        if key.startswith(PREFIX) and key != CONFIG_FILE
    }
    if CONFIG_FILE in given or Path(path).is_file():
        values |= WrittenSettings.in_file(path).values
    return values


def tls_settings(given: Mapping[str, str]) -> TlsSettings:
    """Settings by RocketMQ's names, checked."""
    values = with_config_file(given)
    settings = TlsSettings(
        mode=_mode(values.pop("tls.server.mode", "permissive")),
        client_auth=_client_auth(values.pop("tls.server.need.client.auth", "none")),
        server=_party(values, "server", "authClient"),
        enable=_flag(values, "tls.enable"),
        checks_host_name=_flag(values, "tls.client.checkHostName"),
        client=_party(values, "client", "authServer"),
    )
    for key in values.keys() & WITHOUT_EFFECT.keys():
        log.warning("%s has no effect: %s", key, WITHOUT_EFFECT[key])
        del values[key]
    for key in values:
        raise ConfigError(unknown_key(key, _NAMES))
    _check(settings)
    return settings


_NAMES: Final = (
    "tls.server.mode", "tls.server.need.client.auth", "tls.server.certPath", "tls.server.keyPath",
    "tls.server.keyPassword", "tls.server.trustCertPath", "tls.server.authClient", "tls.enable",
    "tls.client.certPath", "tls.client.keyPath", "tls.client.keyPassword",
    "tls.client.trustCertPath", "tls.client.authServer", "tls.client.checkHostName", CONFIG_FILE,
)  # fmt: skip


def _mode(text: str) -> TlsMode:
    try:
        return TlsMode(text.lower())
    except ValueError as error:
        raise ConfigError(
            f"tls.server.mode={text}: it is disabled, permissive or enforcing"
        ) from error


def _client_auth(text: str) -> str:
    if text.lower() not in CLIENT_AUTH:
        raise ConfigError(f"tls.server.need.client.auth={text}: it is none, optional or require")
    return text.lower()


def _flag(values: dict[str, str], key: str) -> bool:
    text = values.pop(key, "false").lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{key}={text}: it is true or false")
    return text == "true"


def _party(values: dict[str, str], side: str, checks: str) -> TlsParty:
    def take(name: str) -> str:
        return values.pop(f"tls.{side}.{name}", "")

    return TlsParty(
        cert_path=take("certPath"),
        key_path=take("keyPath"),
        key_password=take("keyPassword"),
        trust_path=take("trustCertPath"),
        checks_peer=_flag(values, f"tls.{side}.{checks}"),
    )


def _check(settings: TlsSettings) -> None:
    for side, party in (("server", settings.server), ("client", settings.client)):
        if bool(party.cert_path) != bool(party.key_path):
            raise ConfigError(f"tls.{side}.certPath and tls.{side}.keyPath go together: set both")
    if settings.mode is TlsMode.ENFORCING and not settings.server.cert_path:
        raise ConfigError(
            "tls.server.mode=enforcing needs a certificate: set tls.server.certPath and "
            "tls.server.keyPath"
        )
    if settings.client_auth != "none" and not settings.server.checks_peer:
        raise ConfigError(
            f"tls.server.need.client.auth={settings.client_auth} accepts no client unless "
            "tls.server.authClient=true and tls.server.trustCertPath say which to trust"
        )
    if settings.server.checks_peer and not settings.server.trust_path:
        raise ConfigError("tls.server.authClient=true needs tls.server.trustCertPath")
