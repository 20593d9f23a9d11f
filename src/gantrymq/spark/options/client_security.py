"""How a query proves who it is, and whether its connections are encrypted. Pure.

Options name files and never hold a secret: Spark shows options in plans, in its event log and on
its web page. The files are read where a connection is made, on the driver and in every task.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.spark.options import values


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """What is not given comes from the environment, as for every client."""

    credentials_file: str | None = None
    use_tls: bool | None = None
    tls_config: str | None = None


UNSECURED: Final = ClientSecurity()


def parse_client_security(given: Mapping[str, str]) -> ClientSecurity:
    """Read the three options, by their proper names."""
    use_tls = given.get("useTLS")
    security = ClientSecurity(
        credentials_file=given.get("credentialsFile"),
        use_tls=None if use_tls is None else values.flag(use_tls, "useTLS"),
        tls_config=given.get("tlsConfigFile"),
    )
    if security.tls_config is not None and security.use_tls is False:
        raise ConfigError("tlsConfigFile is for useTLS=true: take one of them out")
    return security
