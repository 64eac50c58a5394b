"""A certificate with its chain and its key, as PEM: what is wrong with them, and when they end. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from rackwright.settings.secret import Secret

if TYPE_CHECKING:
    from cryptography import x509

SOON = timedelta(days=14)
"""Time before its end in which a certificate is warned of; the alert in docs/monitoring has the same."""
NO_PEM, NO_KEY, OTHER_KEY, NOT_NOW, OTHER_NAME, NO_CHAIN = (
    *("RW3612", "RW3622", "RW3632", "RW3642", "RW3652"),
    "RW3662",
)


@dataclass(frozen=True)
class CertificateFault:
    """Something for which clients, or HAProxy, would refuse a certificate. The text begins with the key."""

    code: str
    text: str


def certificate_fault(chain: str, key: Secret, names: Sequence[str], now: datetime) -> CertificateFault | None:
    """Return the first fault of a certificate with its chain, in PEM; None for one that may be served.

    names: DNS names that clients use.
    """
    try:
        certificates = _certificates(chain)
    except ValueError as error:
        return CertificateFault(NO_PEM, f"gateway.certificate is not a certificate in PEM: {error}")
    faults = (*_of_key(certificates[0], key), *_of_time(certificates, now), *_of_names(certificates[0], names))
    return next(iter((*faults, *_of_chain(certificates))), None)


def certificate_end(chain: str) -> datetime | None:
    """Return when the first certificate of a chain that ends does so; None for anything else than certificates."""
    try:
        return min(one.not_valid_after_utc for one in _certificates(chain))
    except ValueError:
        return None


def _certificates(chain: str) -> list[x509.Certificate]:
    """Return the certificates of a file. Raises ValueError."""
    from cryptography import x509  # noqa: PLC0415 - few hosts are gateways

    if "PRIVATE KEY-----" in chain:
        raise ValueError("a private key is in the same file; it belongs into gateway.certificate_key")
    try:
        return x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        raise ValueError("it has no `-----BEGIN CERTIFICATE-----` block that can be read") from None


def _of_key(certificate: x509.Certificate, key: Secret) -> Iterator[CertificateFault]:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        PublicFormat,
        load_pem_private_key,
    )

    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    try:
        public = load_pem_private_key(key.unmask().encode(), None).public_key().public_bytes(*form)
    except TypeError:
        yield CertificateFault(
            NO_KEY, "gateway.certificate_key is encrypted with a passphrase, which HAProxy cannot ask for"
        )
    except ValueError:
        yield CertificateFault(NO_KEY, "gateway.certificate_key is not a private key in PEM")
    else:
        if public != certificate.public_key().public_bytes(*form):
            text = f"does not belong to the first certificate of gateway.certificate, {_subject(certificate)}"
            yield CertificateFault(OTHER_KEY, f"gateway.certificate_key {text}")


def _of_time(certificates: Sequence[x509.Certificate], now: datetime) -> Iterator[CertificateFault]:
    for one in certificates:
        if one.not_valid_after_utc <= now:
            yield CertificateFault(
                NOT_NOW, f"gateway.certificate: {_subject(one)} has expired on {one.not_valid_after_utc:%F}"
            )
        elif one.not_valid_before_utc > now:
            yield CertificateFault(
                NOT_NOW, f"gateway.certificate: {_subject(one)} is valid from {one.not_valid_before_utc:%F %R} UTC"
            )


def _of_names(certificate: x509.Certificate, names: Sequence[str]) -> Iterator[CertificateFault]:
    has = certificate_names(certificate)
    missing = [name for name in names if not any(_covers(one, name) for one in has)]
    if missing:
        text = f"is for {', '.join(has) or 'no DNS name'}, and not for {', '.join(missing)} of gateway.names"
        yield CertificateFault(OTHER_NAME, f"gateway.certificate {text}")


def certificate_names(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names of a certificate; its common name no longer counts with clients."""
    from cryptography import x509  # noqa: PLC0415

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [name.lower() for name in found.value.get_values_for_type(x509.DNSName)]


def _covers(pattern: str, name: str) -> bool:
    """Return True if a name of a certificate means this one: `*.` stands for one label."""
    return pattern == name or (pattern.startswith("*.") and pattern[2:] == name.partition(".")[2])


def _of_chain(certificates: Sequence[x509.Certificate]) -> Iterator[CertificateFault]:
    """Yield that the chain breaks off, or has another order than from the certificate upwards."""
    first = certificates[0]
    if len(certificates) == 1 and first.issuer != first.subject:
        text = f"has no chain: the certificate of its issuer, {first.issuer.rfc4514_string()}, does not follow"
        yield CertificateFault(NO_CHAIN, f"gateway.certificate {text}")
    for one, issuer in pairwise(certificates):
        if not _issued(one, issuer):
            text = f"{_subject(one)} is followed by {_subject(issuer)}, which has not issued it"
            yield CertificateFault(NO_CHAIN, f"gateway.certificate: {text}")


def _issued(one: x509.Certificate, issuer: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

    try:
        one.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _subject(certificate: x509.Certificate) -> str:
    return certificate.subject.rfc4514_string() or ", ".join(certificate_names(certificate)) or "a certificate"
