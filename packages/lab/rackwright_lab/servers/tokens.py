"""`python -m rackwright_lab.servers.tokens`: the token server of a registry that wants bearer tokens, as nvcr.io does.

It follows https://distribution.github.io/distribution/spec/auth/: anybody gets a token, and it allows what was asked
for only to the login that the registry has. The registry itself, Debian's, holds each against issuer, audience, time,
signature and the repository that it is used for. A line a token goes to standard output: who, from where, for what.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hmac
import json
import re
import secrets
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from rackwright_lab.servers.registry import TOKEN_ISSUER, TOKEN_PATH

LEEWAY = 60
"""Seconds for which docker-registry takes a token that has expired."""
SCOPE = re.compile(r"repository:([a-z0-9._/-]+):([a-z,*]+)")
ANONYMOUS = ""


@dataclass(frozen=True)
class Issuer:
    """Sign tokens by an EC key, whose certificate the registry trusts. seconds: how long a token is taken."""

    service: str
    key: ec.EllipticCurvePrivateKey
    certificate: bytes
    """As DER."""
    seconds: float

    def token(self, user: str, access: Sequence[Mapping[str, Any]]) -> str:
        """Return a JSON web token for a user."""
        now = int(time.time())
        head = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(self.certificate).decode()]}
        times = {"nbf": now - LEEWAY, "iat": now, "exp": int(now - LEEWAY + self.seconds)}
        claims = {"iss": TOKEN_ISSUER, "sub": user, "aud": self.service, "jti": secrets.token_hex(8), "access": access}
        signed = ".".join(_b64(json.dumps(part).encode()) for part in (head, {**claims, **times}))
        r, s = decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def scopes_of(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return what was asked for. Raises ValueError for what the specification does not know."""
    found = []
    for text in " ".join(texts).split():
        match = SCOPE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        found.append({"type": "repository", "name": match[1], "actions": match[2].split(",")})
    return found


class TokenHandler(BaseHTTPRequestHandler):
    """One connection of a client that wants a token."""

    protocol_version = "HTTP/1.1"
    issuer: Issuer
    login: str
    """`USER:KEY`, that may pull."""

    def do_GET(self) -> None:
        """Answer with a token for what the client may do, or with the reason."""
        url = urlparse(self.path)
        query = parse_qs(url.query)
        user = self._user()
        try:
            wanted = scopes_of(query.get("scope", []))
        except ValueError as error:
            self._answer(400, {"details": f"invalid scope: {error}"})
            return
        if url.path != TOKEN_PATH or query.get("service") != [self.issuer.service]:
            self._answer(400, {"details": "unknown service"})
        elif user is None:
            self._answer(401, {"details": "incorrect username or password"})
        else:
            self._give(user, wanted)

    def _give(self, user: str, wanted: Sequence[dict[str, Any]]) -> None:
        granted = [{**one, "actions": ["pull"]} for one in wanted if user and "pull" in one["actions"]]
        names = " ".join(one["name"] for one in granted) or "nothing"
        print(f"token: {user or 'anonymous'} at {self.client_address[0]}: {names}", flush=True)
        token = self.issuer.token(user, granted)
        issued = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._answer(200, {"token": token, "expires_in": int(self.issuer.seconds), "issued_at": issued})

    def _user(self) -> str | None:
        """Return who asks, ANONYMOUS without a login; None for a wrong one."""
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if not kind:
            return ANONYMOUS
        try:
            given = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        right = kind.lower() == "basic" and hmac.compare_digest(given.encode(), self.login.encode())
        return given.partition(":")[0] if right else None

    def _answer(self, status: int, content: Mapping[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(prog="python -m rackwright_lab.servers.tokens", description=__doc__)
    parser.add_argument("--bind", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--cert", required=True, type=Path)
    parser.add_argument("--key", required=True, type=Path)
    parser.add_argument("--service", required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--password-file", required=True, type=Path)
    parser.add_argument("--seconds", required=True, type=float)
    args = parser.parse_args()
    key = load_pem_private_key(args.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(args.cert.read_bytes()).public_bytes(Encoding.DER)
    TokenHandler.issuer = Issuer(args.service, key, certificate, args.seconds)
    TokenHandler.login = f"{args.user}:{args.password_file.read_text().strip()}"
    address, _, port = args.bind.rpartition(":")
    server = ThreadingHTTPServer((address, int(port)), TokenHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(args.cert, args.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
