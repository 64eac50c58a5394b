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
REFUSED = (401, 403)
FATAL = {**dict.fromkeys(REFUSED, "refuses the login (registry.key)"), 404: "has no such file"}


class RegistryFiles(HubFiles):
    """Manifests and blobs of a repository. login: `USER:KEY` in base64; it goes to the registry and its token server.

    A token ends within minutes: where one is refused, the next is asked for.
    """

    name = "the registry"
    fatal = FATAL

    def __init__(self, url: str, login: str | None, stall: float) -> None:
        super().__init__(url, None, stall)
        self.login, self.authorization = login, ""
        self.challenge = ""

    def _answer(self, request: urllib.request.Request) -> Any:
        request.add_header("Accept", KINDS)
        logins: list[str | None] = [None, self.login] if self.login else [None]
        while True:
            request.headers.pop("Authorization", None)
            if self.authorization:
                request.add_header("Authorization", self.authorization)
            try:
                return self.opener.open(request, timeout=self.stall)
            except urllib.error.HTTPError as error:
                if error.code not in REFUSED or not self._log_in(error, logins):
                    raise
                error.close()

    def _log_in(self, error: urllib.error.HTTPError, logins: list[str | None]) -> bool:
        """Get what the registry asks for, by the next login that gives anything. Return True if there is one."""
        self.challenge = error.headers.get("WWW-Authenticate", "") or self.challenge
        self.authorization = ""
        while logins and not self.authorization:
            self.authorization = self._let_in(logins.pop(0))
        return bool(self.authorization)

    def _let_in(self, login: str | None) -> str:
        """Return what a registry's challenge asks for; empty where it gives nothing for this login."""
        ways = {kind.lower(): dict(_PART.findall(parts)) for kind, parts in _CHALLENGE.findall(self.challenge)}
        if "bearer" in ways:
            return self._token(ways["bearer"], login)
        return f"Basic {login}" if login and "basic" in ways else ""

    def _token(self, parts: dict[str, str], login: str | None) -> str:
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
        except (urllib.error.HTTPError, ValueError):
            return ""
        token = (found.get("token") or found.get("access_token")) if isinstance(found, dict) else None
        return f"Bearer {token}" if isinstance(token, str) and token.isascii() and token.isprintable() else ""
