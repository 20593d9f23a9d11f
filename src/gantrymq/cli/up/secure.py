"""What `gantry up --secure` turns on: a key pair and certificates, made once and kept.

Everything lies in the folder `secure` below the data folder, readable to its owner alone:

    authority.pem, authority.key    signs the servers' certificate
    server.pem, server.key          of name server and brokers, made anew when it grows old
    plain_acl.yml                   the accounts; `mqadmin updateAclConfig` adds others
    server.properties               the settings of all servers
    client.yml                      what a client needs: one key pair, and the authority to trust

`client.yml` is one file for everybody: YAML as RocketMQ's `tools.yml`, a property file for Java,
and a PEM file with the authority's certificate, so that `trustCertPath` may name it.
"""

import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from gantrymq.access.key_sources import credentials_of_file
from gantrymq.base.config import format_properties
from gantrymq.base.errors import ConfigError
from gantrymq.base.tls.authority import OwnAuthority, write_private
from gantrymq.base.tokens import secret_text

ADMIN: Final = "gantry-admin"
KEY_FILE: Final = "client.yml"
ACCOUNTS: Final = "plain_acl.yml"


@dataclass(frozen=True)
class SecureFiles:
    """The files that servers and clients are told of."""

    settings: Path
    """The settings of all servers."""
    key_file: Path
    """What clients need."""
    admin: str
    """The access key in it."""


def prepare(root: Path, host: str, now: datetime) -> SecureFiles:
    """Make what is missing below the data folder; keys that exist stay."""
    folder = root / "secure"
    try:
        if not folder.exists():
            _make(folder, now)
        key_file, accounts = folder / KEY_FILE, folder / ACCOUNTS
        for path in (key_file, accounts):
            if not path.exists():
                raise ConfigError(
                    f"{path} is missing: bring it back, or move {folder} away to make new keys"
                )
        hosts = sorted({host, "localhost", "127.0.0.1"})
        OwnAuthority(folder, now).keep_server(folder, hosts)
        settings = folder / "server.properties"
        write_private(settings, _server_settings(folder, accounts, key_file).encode())
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror or error}") from error
    return SecureFiles(settings, key_file, credentials_of_file(key_file).access_key)


def key_file_text(access_key: str, secret_key: str, authority: str) -> str:
    """What a client needs: a key pair, and the certificate of the authority to trust, in PEM."""
    lines = [
        "# What a client needs. Who has this file may do everything: copy it over safe ways only.",
        f"accessKey: {access_key}",
        f"secretKey: {secret_key}",
        "tls.enable: true",
        "tls.client.authServer: true",
        'authority: "',
        authority.strip(),
        '"',
    ]
    return "\n".join([*lines, ""])


def _make(folder: Path, now: datetime) -> None:
    """Make authority and keys. The folder gets its name when it is complete."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    authority = OwnAuthority(fresh, now).cert_path.read_text()
    secret = secret_text()
    write_private(fresh / KEY_FILE, key_file_text(ADMIN, secret, authority).encode())
    rules = {
        "globalWhiteRemoteAddresses": [],
        "accounts": [{"accessKey": ADMIN, "secretKey": secret, "admin": True}],
    }
    write_private(fresh / ACCOUNTS, json.dumps(rules, indent=2).encode())  # JSON is YAML, too
    fresh.rename(folder)


def _server_settings(folder: Path, accounts: Path, key_file: Path) -> str:
    own = credentials_of_file(key_file)
    inner = {"accessKey": own.access_key, "secretKey": own.secret_key}
    return format_properties(
        {
            "aclEnable": "true",
            "aclFile": str(accounts),
            "innerClientAuthenticationCredentials": json.dumps(inner),
            "tls.server.mode": "enforcing",
            "tls.server.certPath": str(folder / "server.pem"),
            "tls.server.keyPath": str(folder / "server.key"),
            "tls.enable": "true",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(folder / "authority.pem"),
        }
    )
