"""The clients of a query: of its name servers, with its key pair and its TLS."""

from pathlib import Path

from gantrymq.access.key_sources import credentials_of_file
from gantrymq.client.core.options import ClientOptions
from gantrymq.spark.options.client_security import UNSECURED, ClientSecurity


def client_options(namesrv: str, security: ClientSecurity = UNSECURED) -> ClientOptions:
    """Options for any client, made in the process that connects: this reads the key pair's file."""
    file = security.credentials_file
    return ClientOptions(
        namesrv=namesrv,
        credentials=None if file is None else credentials_of_file(Path(file)),
        use_tls=True if security.tls_config is not None else security.use_tls,
        tls_config=security.tls_config,
    )
