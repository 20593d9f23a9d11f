"""Certificates of a cluster's own: an authority, and what it signs for servers.

For `gantry up --secure`. Who has an authority already names its files in the TLS settings instead.
The library that makes certificates is an extra: the rest of TLS is the standard library's.
"""

import ipaddress
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.base.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS: Final = 3_650
SERVER_DAYS: Final = 397
"""What browsers accept; a new one is made by the first start after half of it."""
RENEW_DAYS: Final = SERVER_DAYS // 2
CLOCK_SKEW: Final = timedelta(days=1)


class OwnAuthority:
    """An authority that lives in a folder: `authority.pem`, and its key beside it."""

    def __init__(self, folder: Path, now: datetime) -> None:
        _need_library()
        self._now = now
        self.cert_path, self._key_path = folder / "authority.pem", folder / "authority.key"
        if not self.cert_path.exists() and not self._key_path.exists():
            self._make()  # one of them alone is damage: a new authority is one nobody trusts
        self._key, self._cert = _read_key(self._key_path), _read_cert(self.cert_path)

    def _make(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("GantryMQ authority")
        made = _builder(self._now, AUTHORITY_DAYS, name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        _write_key(self._key_path, key)
        _write_cert(self.cert_path, made, key)

    def keep_server(self, folder: Path, hosts: list[str]) -> None:
        """See that `server.pem` and `server.key` name these hosts and are good for long enough."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        cert_path, key_path = folder / "server.pem", folder / "server.key"
        if cert_path.exists() and key_path.exists():
            found = _read_cert(cert_path)
            lasts = found.not_valid_after_utc - self._now > timedelta(days=RENEW_DAYS)
            if lasts and found.issuer == self._cert.subject and _hosts_of(found) >= set(hosts):
                return
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_host_name(host) for host in hosts])
        made = _builder(
            self._now, SERVER_DAYS, _name("GantryMQ server"), self._cert.subject, key
        ).add_extension(names, critical=False)
        _write_key(key_path, key)
        _write_cert(cert_path, made, self._key)


def _need_library() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "making certificates needs a library that is not installed: "
            'pip install "gantrymq[secure]"'
        ) from error


def _name(text: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host_name(host: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts_of(cert: "x509.Certificate") -> set[str]:
    from cryptography import x509

    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def _builder(
    now: datetime,
    days: int,
    subject: "x509.Name",
    issuer: "x509.Name",
    key: "EllipticCurvePrivateKey",
) -> "x509.CertificateBuilder":
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _read_key(path: Path) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(_unreadable(path)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(_unreadable(path))
    return key


def _read_cert(path: Path) -> "x509.Certificate":
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(_unreadable(path)) from error


def _unreadable(path: Path) -> str:
    return f"{path} cannot be read: bring it back, or move the folder away to make everything anew"


def _write_key(path: Path, key: "EllipticCurvePrivateKey") -> None:
    """In PKCS#8, as Java wants it."""
    from cryptography.hazmat.primitives import serialization

    data = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(path, data)


def _write_cert(
    path: Path, made: "x509.CertificateBuilder", key: "EllipticCurvePrivateKey"
) -> None:
    from cryptography.hazmat.primitives import hashes, serialization

    signed = made.sign(key, hashes.SHA256())
    write_private(path, signed.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
