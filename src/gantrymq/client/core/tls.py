"""The network of a client: plain TCP, or TLS as options, environment or key file say."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from gantrymq.access.key_sources import FILE_VARIABLE
from gantrymq.base.config import parse_properties
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network, TcpNetwork
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.network import TlsMode
from gantrymq.base.tls.settings import CONFIG_FILE, PREFIX, TlsParty, tls_settings
from gantrymq.client.core.options import ClientOptions

ENABLE: Final = "ROCKETMQ_TLS_ENABLE"
CONFIG: Final = "ROCKETMQ_TLS_CONFIG"
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
PLAIN: Final = TcpNetwork()


def network_of(options: ClientOptions, environment: Mapping[str, str] | None = None) -> Network:
    """The same network for the same settings, so that clients can share connections."""
    env = os.environ if environment is None else environment
    of_key_file = _settings_of_key_file(options.key_file or env.get(FILE_VARIABLE) or "")
    if not _is_wanted(options, env, of_key_file):
        return PLAIN
    config = options.tls_config or env.get(CONFIG)
    given = {CONFIG_FILE: config} if config else of_key_file
    return _tls(frozenset((given | {"tls.enable": "true"}).items()))


def _is_wanted(
    options: ClientOptions, env: Mapping[str, str], of_key_file: Mapping[str, str]
) -> bool:
    if options.use_tls is not None:
        return options.use_tls
    wanted = env.get(ENABLE, "").lower() or of_key_file.get("tls.enable", "false").lower()
    if wanted not in TRUTHS:
        raise ConfigError(f"{ENABLE}={wanted}: it is true or false")
    return TRUTHS[wanted]


def _settings_of_key_file(path: str) -> dict[str, str]:
    """What a key file says of TLS. A certificate in it is that of the authority to trust."""
    if not path:
        return {}
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"cannot read {path}: {why}") from error
    found = {key: each for key, each in parse_properties(text).items() if key.startswith(PREFIX)}
    return {"tls.client.trustCertPath": path} | found if CERTIFICATE in text else found


@cache
def _tls(given: frozenset[tuple[str, str]]) -> Network:
    # A client may share the file of a server, whose key it cannot read and does not need.
    settings = replace(tls_settings(dict(given)), server=TlsParty(), mode=TlsMode.DISABLED)
    return tls_network(settings, PLAIN)
