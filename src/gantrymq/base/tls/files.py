"""The TLS contexts of a process, made anew for later connections when their files change."""

import logging
import os
import ssl
from collections.abc import Callable
from typing import Final

from gantrymq.base.clock import elapsed_seconds
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network
from gantrymq.base.tls.network import TlsMode, TlsNetwork
from gantrymq.base.tls.settings import TlsParty, TlsSettings

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 1.0
"""How often files are looked at for a change, and only when a connection is made."""
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "require": ssl.CERT_REQUIRED,
}


def tls_network(settings: TlsSettings, below: Network) -> Network:
    """The network that a process with these settings uses; `below` itself if TLS has no part."""
    serves = bool(settings.server.cert_path) or settings.mode is TlsMode.ENFORCING
    if not serves and not settings.enable:
        return below
    files = TlsFiles(settings)
    return TlsNetwork(
        below,
        server=files if serves else None,
        client=files.client_context if settings.enable else None,
    )


class TlsFiles:
    """What ports and opened connections use; connections that exist keep what they began with."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._server = (
            _Kept(settings.server, self._new_server) if settings.server.cert_path else None
        )
        self._client = _Kept(settings.client, self._new_client)

    @property
    def mode(self) -> TlsMode:
        return self._settings.mode

    @property
    def context(self) -> ssl.SSLContext | None:
        """For connections that are accepted; None without a certificate."""
        return self._server.context() if self._server is not None else None

    def lasting_context(self) -> ssl.SSLContext:
        """For a server that takes one context for good: each handshake gets the newest one."""
        lasting = self._new_server()

        def take_newest(session: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            session.context = self.context or lasting

        lasting.sni_callback = take_newest  # called without a name, too
        return lasting

    def client_context(self) -> ssl.SSLContext:
        """For connections that are opened."""
        return self._client.context()

    def _new_server(self) -> ssl.SSLContext:
        context = _context(ssl.PROTOCOL_TLS_SERVER, self._settings.server)
        context.verify_mode = CLIENT_AUTH[self._settings.client_auth]
        return context

    def _new_client(self) -> ssl.SSLContext:
        party = self._settings.client
        context = _context(ssl.PROTOCOL_TLS_CLIENT, party)
        context.check_hostname = party.checks_peer and self._settings.checks_host_name
        if not party.checks_peer:
            context.verify_mode = ssl.CERT_NONE
        elif not party.trust_path:
            context.load_default_certs()
        return context


def _context(protocol: int, party: TlsParty) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    at = party.cert_path
    try:
        if party.cert_path:
            # An empty password, too: without one OpenSSL would ask for it at the terminal.
            context.load_cert_chain(party.cert_path, party.key_path, party.key_password)
        if party.trust_path:
            at = party.trust_path
            context.load_verify_locations(party.trust_path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"TLS cannot be set up with {at}: {_why(error)}") from error
    return context


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        reason = error.reason or "it is no PEM file, or the password of the key is wrong"
        return reason.lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)


class _Kept:
    """A context, and the times of the files that it was made of."""

    def __init__(self, party: TlsParty, make: Callable[[], ssl.SSLContext]) -> None:
        self._party, self._make = party, make
        self._times = self._file_times()
        self._context = make()
        self._looked = elapsed_seconds()

    def context(self) -> ssl.SSLContext:
        now = elapsed_seconds()
        if now - self._looked >= CHECK_SECONDS:
            self._looked = now
            self._look()
        return self._context

    def _look(self) -> None:
        times = self._file_times()
        if times == self._times:
            return
        try:
            self._context = self._make()
        except ConfigError as error:
            log.error("certificates are not renewed, the old ones stay in use: %s", error)
            return
        self._times = times
        log.info("certificates renewed from %s", ", ".join(self._party.files))

    def _file_times(self) -> list[int]:
        return [
            os.stat(path).st_mtime_ns if os.path.exists(path) else 0 for path in self._party.files
        ]
