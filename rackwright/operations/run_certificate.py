"""The certificate of one run, with its key: hosts that hand models on to each other encrypt by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rackwright.settings.secret import Secret

VALID = timedelta(days=3)
SKEW = timedelta(days=1)
"""By so much a host's clock may be behind."""
NAME = "rackwright run"


def run_certificate() -> Secret:
    """Return a new certificate and its key, as PEM. All hosts of the run have both, and accept no other one."""
    from cryptography import x509  # noqa: PLC0415 - most runs need none
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - SKEW, now + VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Secret((private + certificate.public_bytes(Encoding.PEM)).decode())
