"""Certificates for tests: an authority, and what it signs."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """The files of a certificate and its key, in PEM."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates, and writes them to a folder."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder, self._name = folder, _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.cert = folder / f"{name.replace(' ', '-')}.pem"
        self.cert.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def issue(self, name: str, host: str = "localhost", password: str = "") -> Certificate:
        """A certificate with its key in PKCS#8, as Java wants it; `password` encrypts the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = (
            self._builder(_name(name), key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.cert.write_bytes(_pem(signed))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        return files

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + 30 * DAY)
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
