"""An authority that gives certificates by ACME, on this machine: Debian's pebble, with a name server that it asks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.conftest import ROOT

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")
DIRECTORY, MANAGEMENT, DNS, DNS_MANAGEMENT = 14000, 15000, 8053, 8055


@dataclass
class Authority:
    """A pebble that listens on an address of this machine, and asks for challenges at port 80."""

    folder: Path
    address: str
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def directory(self) -> str:
        """Its directory's URL."""
        return f"https://{self.address}:{DIRECTORY}/dir"

    @property
    def roots(self) -> Path:
        """The root by which its own certificate is checked; not that of what it issues."""
        return self.folder / "ca.pem"

    @property
    def issued_root(self) -> Path:
        """The root of what it has issued since its start."""
        path = self.folder / "issued.pem"
        path.write_bytes(self._curl(f"https://{self.address}:{MANAGEMENT}/roots/0"))
        return path

    def name_is_at(self, *addresses: str) -> None:
        """Let its name server answer these addresses for each name."""
        for host in ("llm.example.org",):
            body = json.dumps({"host": f"{host}.", "addresses": list(addresses)}).encode()
            for verb, sent in (("clear-a", json.dumps({"host": f"{host}."}).encode()), ("add-a", body)):
                urllib.request.urlopen(f"http://{self.address}:{DNS_MANAGEMENT}/{verb}", sent, timeout=10).read()

    def start(self, **environment: str) -> None:
        """Start it again: it has forgotten accounts and orders, and has another root."""
        self.stop()
        unpacked = subprocess.run([ROOT / "scripts/pebble"], capture_output=True, text=True, check=True).stdout.strip()
        programs = Path(unpacked) / "usr/bin"
        names: list[str | Path] = [
            programs / "pebble-challtestsrv",
            "-dns01",
            f"{self.address}:{DNS}",
            "-defaultIPv6",
            "",
        ]
        names += [argument for kind in ("http01", "https01", "tlsalpn01") for argument in (f"-{kind}", "")]
        self._run(*names, "-management", f"{self.address}:{DNS_MANAGEMENT}")
        self._run(
            *(programs / "pebble", "-config", self.folder / "pebble.json", "-dnsserver", f"{self.address}:{DNS}"),
            environment={"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_AUTHZREUSE": "0", **environment},
        )
        end = time.monotonic() + 20
        while not self._curl(self.directory):
            assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it."""
        for process in self._running:
            process.terminate()
            process.wait(10)
        self._running.clear()

    def _run(self, *words: str | Path, environment: dict[str, str] | None = None) -> None:
        log = (self.folder / "log").open("ab")
        self._running.append(subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **(environment or {})}))

    def _curl(self, url: str) -> bytes:
        words: list[str | Path] = ["curl", "--silent", "--noproxy", "*", "--max-time", "5", "--cacert", self.roots, url]
        return subprocess.run(words, capture_output=True, check=False).stdout


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@contextlib.contextmanager
def authority(folder: Path, address: str) -> Iterator[Authority]:
    """Run an authority at an address of this machine, which the hosts of a lab reach."""
    made = Authority(folder, address)
    key, request, signed = folder / "server.key", folder / "server.csr", folder / "server.pem"
    _openssl("req", "-x509", *EC, "-subj", "/CN=a private root", "-keyout", folder / "ca.key", "-out", made.roots)
    _openssl("req", *EC[:4], "-nodes", "-subj", "/CN=acme", "-keyout", key, "-out", request)
    (folder / "ext").write_text(f"subjectAltName=IP:{address}\n")
    by = ("-CA", made.roots, "-CAkey", folder / "ca.key", "-CAcreateserial", "-extfile", folder / "ext")
    _openssl("x509", "-req", "-in", request, *by, "-days", "30", "-out", signed)
    config = {
        "listenAddress": f"{address}:{DIRECTORY}",
        "managementListenAddress": f"{address}:{MANAGEMENT}",
        "certificate": str(signed),
        "privateKey": str(key),
        "httpPort": 80,
        "tlsPort": 443,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": False,
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
    try:
        yield made
    finally:
        made.stop()
