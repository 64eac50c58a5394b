"""An image's registry as the source of its files: asked without a login first, then with the one that is given.

Protocol: https://distribution.github.io/distribution/spec/api/ and its token authentication.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

from rackwright.hostside.hand_on.origin import HubFiles

KINDS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "*/*",
    )
)
_CHALLENGE = re.compile(r'\b(bearer|basic)\b((?:[\s,]*\w+="[^"]*")*)', re.IGNORECASE)
_PART = re.compile(r'(\w+)="([^"]*)"')
LARGEST_TOKEN = 1 << 16
REFUSED, LATER = (401, 403), (429, *range(500, 600))
FATAL = {**dict.fromkeys(REFUSED, "refuses the login (registry.key)"), 404: "has no such file"}


class RegistryFiles(HubFiles):
    """Manifests and blobs of a repository. login: `USER:KEY` in base64; it goes to the registry and its token server.

    A token ends within minutes: where one is refused, the next is asked for. Several connections do so side by side,
    and what let one in is what the next requests begin with.
    """

    name = "the registry"
    fatal = FATAL

    def __init__(self, url: str, login: str | None, stall: float) -> None:
        super().__init__(url, None, stall)
        self.login, self.authorization, self.challenge = login, "", ""

    def _answer(self, request: urllib.request.Request) -> Any:
        request.add_header("Accept", KINDS)
        logins: list[str | None] = [None, self.login] if self.login else [None]
        authorization = self.authorization
        while True:
            request.headers.pop("Authorization", None)
            if authorization:
                request.add_header("Authorization", authorization)
            try:
                answer = self.opener.open(request, timeout=self.stall)
            except urllib.error.HTTPError as error:
                authorization = self._next(error, logins)
                if not authorization:
                    raise
                error.close()
            else:
                self.authorization = authorization
                return answer

    def _next(self, error: urllib.error.HTTPError, logins: list[str | None]) -> str:
        """Return what lets in by the next login that gives anything; empty where none is left, or none would help."""
        self.challenge = ", ".join(error.headers.get_all("WWW-Authenticate") or ()) or self.challenge
        found = ""
        while error.code in REFUSED and logins and not found:
            found = self._let_in(logins.pop(0))
        return found

    def _let_in(self, login: str | None) -> str:
        """Return what a registry's challenge asks for; empty where it gives nothing for this login."""
        ways = {kind.lower(): dict(_PART.findall(parts)) for kind, parts in _CHALLENGE.findall(self.challenge)}
        if "bearer" in ways:
            return self._token(ways["bearer"], login)
        return f"Basic {login}" if login and "basic" in ways else ""

    def _token(self, parts: dict[str, str], login: str | None) -> str:
        """Return what a token server gives. Raises HTTPError where it may do so later."""
        realm = parts.get("realm", "")
        if not realm.startswith("https://"):
            return ""
        query = urlencode([(key, parts[key]) for key in ("service", "scope") if key in parts])
        request = urllib.request.Request(f"{realm}{'&' if '?' in realm else '?'}{query}")
        if login:
            request.add_header("Authorization", f"Basic {login}")
        try:
            with self.opener.open(request, timeout=self.stall) as answer:
                found = json.loads(answer.read(LARGEST_TOKEN))
        except urllib.error.HTTPError as error:
            if error.code in LATER:
                raise
            return ""
        except ValueError:
            return ""
        token = (found.get("token") or found.get("access_token")) if isinstance(found, dict) else None
        return f"Bearer {token}" if isinstance(token, str) and token.isascii() and token.isprintable() else ""
