"""The lab's nvcr.io and Docker Hub: Debian's docker-registry with TLS, and the ways in which a registry fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from rackwright.processes import module
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.servers.certificates import Pair
from rackwright_lab.servers.server import Server

HOST = "nvcr.io"
MIRROR = "registry.lab.example"
"""The same registry by a name that a site would have for its own."""
DOCKER_HUB = ("registry-1.docker.io", "auth.docker.io", "index.docker.io", "docker.io")
"""Names of Docker Hub; Docker itself asks only the first for an image, and the second when the first says so."""
USER = "$oauthtoken"
TOKEN_PORT, TOKEN_PATH, TOKEN_ISSUER = 8443, "/token", "rackwright-lab"
"""Port and path of its token server, and the issuer that the registry believes."""


@dataclass(frozen=True)
class Registry:
    """One registry of a lab. Images are in the cache, so that they are pushed once for all labs.

    Without a `key_file` it is Docker Hub, where anybody may pull.
    """

    server: Server
    folder: Path
    storage: Path
    certificate: Pair
    key_file: Path | None

    def start(self, with_key: bool = True) -> None:
        """Serve; without `with_key` anybody may pull."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.storage.mkdir(parents=True, exist_ok=True)
        if self.key_file is not None:
            self.accept_key(self.key_file.read_text())
        password = {"htpasswd": {"realm": HOST, "path": str(self.folder / "htpasswd")}}
        self._serve(password if with_key and self.key_file is not None else {})

    def _serve(self, auth: Mapping[str, object]) -> None:
        settings = self.folder / "config.yml"
        settings.write_text(yaml.safe_dump(self._settings(auth)))
        self.server.start("docker-registry", "serve", settings)

    def _settings(self, auth: Mapping[str, object]) -> dict[str, object]:
        tls = {"certificate": str(self.certificate.certificate), "key": str(self.certificate.key)}
        return {
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": False}},
            "storage": {"filesystem": {"rootdirectory": str(self.storage)}},
            "http": {"addr": f"{self.server.address}:{self.server.port}", "tls": tls},
            **({"auth": dict(auth)} if auth else {}),
        }

    def stop(self) -> None:
        """Refuse connections."""
        self.server.stop()
        self.tokens.stop()

    @property
    def tokens(self) -> Server:
        """Its token server, which serves while it wants tokens."""
        name = f"{self.server.name}-tokens"
        return replace(self.server, name=name, log=self.server.log.with_name(f"{name}.log"), port=TOKEN_PORT)

    def require_tokens(self, seconds: float) -> None:
        """Want a bearer token, as nvcr.io and Docker Hub do: given for the lab's key, and taken for so many seconds."""
        if self.key_file is None:
            raise LabError("only a registry with a key gives tokens")
        self.stop()
        pair, bind = self.certificate, f"{self.tokens.address}:{TOKEN_PORT}"
        login = ("--user", USER, "--password-file", self.key_file, "--service", HOST, "--seconds", str(seconds))
        flags = ("--bind", bind, "--cert", pair.certificate, "--key", pair.key, *login)
        self.tokens.start(*module("rackwright_lab.servers.tokens"), *flags)
        realm, bundle = f"https://{bind}{TOKEN_PATH}", str(pair.certificate.with_name("ca.crt"))
        self._serve({"token": {"realm": realm, "service": HOST, "issuer": TOKEN_ISSUER, "rootcertbundle": bundle}})

    def require_key(self, wanted: bool = True) -> None:
        """Ask for the key, or let anybody pull."""
        self.stop()
        self.start(with_key=wanted)

    def accept_key(self, key: str) -> None:
        """Accept this key from now on and no other: what a rotated key looks like."""
        table = run("htpasswd", "-niB", "-C", "4", USER, stdin=f"{key}\n").stdout
        (self.folder / "htpasswd").write_text(table)

    def answer(self, status: int) -> None:
        """Answer every request with that HTTP status (503, 429, ...) until require_key() or heal()."""
        if not 400 <= status <= 599:
            raise LabError(f"a registry fails with a status from 400 to 599, not {status}")
        self.stop()
        pair = self.certificate
        bind = f"{self.server.address}:{self.server.port}"
        flags = ("--bind", bind, "--cert", pair.certificate, "--key", pair.key, "--status", str(status))
        self.server.start(*module("rackwright_lab.servers.refusal"), *flags)

    def heal(self) -> None:
        """Back to a registry that works and, where there is one, asks for the lab's key."""
        self.require_key()
