"""What this machine is set to, as far as lab hosts must have it too: read at run time, kept nowhere else."""

from __future__ import annotations

import re
import resource
from pathlib import Path

from rackwright_lab.machine.shell import run

HANDED_DOWN = (
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::https::Verify-Peer",
)
DEBIAN = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
SHIPPED = Path("/usr/share/ca-certificates/mozilla")
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.S)


def apt_options() -> list[str]:
    """Return the apt settings without which this machine could not fetch a package, as apt.conf lines."""
    dump = run("apt-config", "dump").stdout.splitlines()
    return [row for row in dump if row.split(" ", 1)[0] in HANDED_DOWN]


def mirrors() -> tuple[str, str]:
    """Return the addresses of Debian and of its security updates that this machine's apt uses."""
    urls = run("apt-get", "indextargets", "--format", "$(REPO_URI)", check=False).stdout.split()
    found = [url.rstrip("/") for url in urls]
    archive = next((url for url in found if url.endswith("/debian")), DEBIAN)
    security = next((url for url in found if url.endswith("/debian-security")), SECURITY)
    return archive, security


def sources_list(suite: str) -> str:
    """Return the sources.list of a lab host."""
    archive, security = mirrors()
    lines = [f"deb {archive} {suite} main", f"deb {archive} {suite}-updates main"]
    return "\n".join([*lines, f"deb {security} {suite}-security main"]) + "\n"


def resolv_conf() -> str:
    """Return this machine's resolv.conf; behind systemd-resolved the real one (its own is on loopback)."""
    real = Path("/run/systemd/resolve/resolv.conf")
    return (real if real.is_file() else Path("/etc/resolv.conf")).read_text()


def name_servers() -> list[str]:
    """Return the addresses of this machine's name servers."""
    rows = [row.split() for row in resolv_conf().splitlines()]
    return [row[1] for row in rows if len(row) > 1 and row[0] == "nameserver"]


def own_authorities() -> list[str]:
    """Return the certificates (PEM) that this machine trusts beyond Debian's: a company's proxy, for instance."""
    if not BUNDLE.is_file():
        return []
    shipped = {_body(path.read_text()) for path in SHIPPED.glob("*.crt")}
    return [pem for pem in PEM.findall(BUNDLE.read_text()) if _body(pem) not in shipped]


def _body(pem: str) -> str:
    return "".join(pem.split())


def memlock_is_clamped() -> bool:
    """Return True if this machine cannot lift RLIMIT_MEMLOCK, so that no container of a lab host can either."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    effective = next(
        int(row.split()[1], 16)
        for row in Path("/proc/self/status").read_text().splitlines()
        if row.startswith("CapEff")
    )
    cap_sys_resource = 1 << 24
    return hard != resource.RLIM_INFINITY and not effective & cap_sys_resource
