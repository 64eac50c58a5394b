"""The lab's own certificate authority, and certificates for the names its servers answer to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.machine.shell import run

DAYS = "825"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM files."""

    certificate: Path
    key: Path


def make_authority(folder: Path, lab: str) -> Pair:
    """Make the authority of a lab in `folder`, once."""
    pair = Pair(folder / "ca.crt", folder / "ca.key")
    if not pair.certificate.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        run(
            "openssl", "req", "-x509", *CURVE, "-days", DAYS, "-subj", f"/CN=Rackwright lab {lab} CA",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", pair.key, "-out", pair.certificate,
        )  # fmt: skip
    return pair


def issue(folder: Path, authority: Pair, label: str, names: tuple[str, ...], address: str) -> Pair:
    """Issue one server certificate for `names` and `address`, once; returns it with its key."""
    pair = Pair(folder / f"{label}.crt", folder / f"{label}.key")
    if pair.certificate.exists():
        return pair
    request, extensions = folder / f"{label}.csr", folder / f"{label}.ext"
    alternatives = ",".join([*(f"DNS:{name}" for name in names), f"IP:{address}"])
    extensions.write_text(
        f"subjectAltName={alternatives}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
        "keyUsage=critical,digitalSignature\n"
    )
    run("openssl", "req", "-new", *CURVE, "-subj", f"/CN={names[0]}", "-keyout", pair.key, "-out", request)
    run(
        "openssl", "x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key,
        "-CAcreateserial", "-days", DAYS, "-extfile", extensions, "-out", pair.certificate,
    )  # fmt: skip
    return pair
