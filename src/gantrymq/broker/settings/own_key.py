"""The key with which a broker signs its own requests, to name servers and to its master."""

import json
from collections.abc import Callable
from typing import Final

from gantrymq.access.credentials import Credentials, credentials_of
from gantrymq.access.signature import RequestSigner
from gantrymq.base.errors import ConfigError
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.protocol.command import Command

KEY: Final = "innerClientAuthenticationCredentials"
"""RocketMQ 5's name for it. Brokers of 4.9 sign nothing: a slave has to be on the white list of its
master, which works here, too."""
FIRST_USER_KEY: Final = "initAuthenticationUser"


def own_credentials(config: BrokerConfig) -> Credentials | None:
    """The key pair of the settings; raises ConfigError, without the text of the setting."""
    text = config.inner_client_authentication_credentials.strip()
    if not text:
        return None
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(f'{KEY}: write {{"accessKey":"...","secretKey":"..."}}')
    return credentials_of(fields, KEY)


def own_signer(config: BrokerConfig) -> Callable[[Command], None] | None:
    """What signs the requests of this broker; None if it has no key."""
    credentials = own_credentials(config)
    return None if credentials is None else RequestSigner(credentials).sign
