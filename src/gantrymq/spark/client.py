"""The clients of a query: of its name servers, with its key pair and its TLS."""

from gantrymq.client.core.options import ClientOptions
from gantrymq.spark.options.client_security import UNSECURED, ClientSecurity


def client_options(namesrv: str, security: ClientSecurity = UNSECURED) -> ClientOptions:
    """Options for any client; the files are read by the process that connects."""
    return ClientOptions(
        namesrv=namesrv,
        key_file=security.credentials_file,
        use_tls=True if security.tls_config is not None else security.use_tls,
        tls_config=security.tls_config,
    )
