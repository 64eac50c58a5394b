"""The certificate that a site gives its gateways: read from its file, and judged with its key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rackwright.messages import SettingsError
from rackwright.settings.gateway_certificate import SOON, certificate_end, certificate_fault
from rackwright.settings.host_settings import HostSettings

UNREADABLE = "RW3604"
NEXT = {
    "RW3612": "next: head {path}",
    "RW3622": "next: openssl pkey -in KEY | ansible-vault encrypt_string --stdin-name certificate_key",
    "RW3632": "next: openssl x509 -noout -pubkey -in {path}, and openssl pkey -pubout -in KEY: the same text",
    "RW3642": "next: have it renewed, and write the new one to {path}; the gateways keep what they have",
    "RW3652": "next: openssl x509 -noout -ext subjectAltName -in {path}; ask for one with all names",
    "RW3662": "next: cat CERTIFICATE INTERMEDIATE >{path}: the certificate first, then the one that issued it",
}
"""The next command by code; `{path}` stands for the file."""


def read_chain(settings: HostSettings) -> str | None:
    """Return a gateway's certificate and its chain, as the site has them; None for a host that is not given any.

    Raises SettingsError for a file that cannot be read.
    """
    gateway = settings.gateway
    if not gateway.tls or gateway.certificate is None:
        return None
    return _read(_path(settings, gateway.certificate), "gateway.certificate")


def read_roots(settings: HostSettings) -> str | None:
    """Return the roots by which an authority's own certificate is checked; None for the host's.

    Raises SettingsError for a file that cannot be read, or has no certificate.
    """
    acme = settings.gateway.acme
    if acme is None or acme.roots is None:
        return None
    path = _path(settings, acme.roots)
    text = _read(path, "gateway.acme.roots")
    if certificate_end(text) is None:
        raise SettingsError(f"gateway.acme.roots: {path} has no certificate in PEM; next: head {path}", code=UNREADABLE)
    return text


def _read(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not PEM"
        raise SettingsError(f"{key}: {path} cannot be read: {why}; next: ls -l {path}", code=UNREADABLE) from None


def certificate_refusal(settings: HostSettings) -> SettingsError | None:
    """Return why a gateway's certificate must not be served; None where nothing speaks against it."""
    gateway, chain = settings.gateway, read_chain(settings)
    if chain is None or gateway.certificate is None or gateway.certificate_key is None:
        return None
    fault = certificate_fault(chain, gateway.certificate_key, gateway.names, datetime.now(UTC))
    if fault is None:
        return None
    path = _path(settings, gateway.certificate)
    return SettingsError(f"{fault.text} ({path}); {NEXT[fault.code].format(path=path)}", code=fault.code)


def certificate_note(settings: HostSettings) -> Iterator[str]:
    """Yield that the certificate ends soon."""
    end = certificate_end(read_chain(settings) or "")
    if end is not None and (remaining := end - datetime.now(UTC)) < SOON:
        yield f"gateway.certificate ends on {end:%F}, in {max(remaining.days, 0)} days: renew it, and deploy"


def _path(settings: HostSettings, certificate: str) -> Path:
    return settings.site / Path(certificate).expanduser()
