"""Certificates of tests: a root, one that it lets issue others, and those of gateways."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from rackwright.settings.secret import Secret

NAME = "llm.example.org"


@dataclass(frozen=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key(self) -> Secret:
        """Its key as text."""
        form = PrivateFormat.PKCS8
        return Secret(self.private.private_bytes(Encoding.PEM, form, NoEncryption()).decode())

    @property
    def locked_key(self) -> Secret:
        """Its key, behind a passphrase."""
        form = PrivateFormat.PKCS8
        return Secret(self.private.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"open")).decode())


def issued(
    subject: str, by: Issued | None = None, names: tuple[str, ...] = (), days: float = 60, since: float = -1
) -> Issued:
    """Return a new certificate. days, since: until when it is valid and from when, in days from now."""
    private, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject_name)
        .issuer_name(by.certificate.subject if by else subject_name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=min(since, days - 1)))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False)
    return Issued(builder.sign(by.private if by else private, hashes.SHA256()), private)


ROOT = issued("a root")
ISSUER = issued("an issuer", ROOT)
GOOD = issued("a gateway", ISSUER, (NAME,))
CHAIN = GOOD.pem + ISSUER.pem
