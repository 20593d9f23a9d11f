"""The network of a client: plain TCP, or TLS as its options or the environment say."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network, TcpNetwork
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.network import TlsMode
from gantrymq.base.tls.settings import CONFIG_FILE, TlsParty, tls_settings
from gantrymq.client.core.options import ClientOptions

ENABLE: Final = "ROCKETMQ_TLS_ENABLE"
CONFIG: Final = "ROCKETMQ_TLS_CONFIG"
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False, "": False}
PLAIN: Final = TcpNetwork()


def network_of(options: ClientOptions, environment: Mapping[str, str] | None = None) -> Network:
    """The same network for the same settings, so that clients can share connections."""
    environment = os.environ if environment is None else environment
    wanted = environment.get(ENABLE, "").lower()
    if wanted not in TRUTHS:
        raise ConfigError(f"{ENABLE}={wanted}: it is true or false")
    if not (TRUTHS[wanted] if options.use_tls is None else options.use_tls):
        return PLAIN
    return _tls(options.tls_config or environment.get(CONFIG, ""))


@cache
def _tls(config: str) -> Network:
    given = {"tls.enable": "true"} | ({CONFIG_FILE: config} if config else {})
    # A client may share the file of a server, whose key it cannot read and does not need.
    settings = replace(tls_settings(given), server=TlsParty(), mode=TlsMode.DISABLED)
    return tls_network(settings, PLAIN)
