"""The digest of a tag, as its registry says: without a login first, then with the key (DECISIONS 17).

Protocol: https://distribution.github.io/distribution/spec/api/ and its token authentication.
"""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import urlencode

from rackwright.settings.image_reference import HUB, HUB_HOST, registry_of, repository_of, tag_of
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Registry
from rackwright.sources.errors import NotThereError, SourceError
from rackwright.sources.http import Client, HttpAnswer
from rackwright.sources.opener import host_of
from rackwright.sources.shapes import Manifest, Token, shaped

KINDS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CHALLENGE = re.compile(r'\b(bearer|basic)\b((?:[\s,]*\w+="[^"]*")*)', re.IGNORECASE)
_PART = re.compile(r'(\w+)="([^"]*)"')


def digest_of_tag(client: Client, reference: str, registry: Registry) -> str:
    """Return the digest that a reference's tag names: the index's, if any. Raises SourceError with what to do."""
    name = registry_of(reference)
    answer, _ = manifest_of(client, reference, registry, tag_of(reference))
    shaped(Manifest, answer.json(), name)
    found = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
    stated = answer.headers.get("docker-content-digest", found)
    if stated != found:
        raise SourceError(
            f"{reference}: {name} says {stated}, and what it sent is {found}: something on the way changed it",
            code="RW0908",
        )
    return found


def manifest_of(client: Client, reference: str, registry: Registry, name: str) -> tuple[HttpAnswer, Secret | None]:
    """Return a manifest of a reference's repository, and the login that its blobs take. name: a tag or a digest.

    Raises SourceError with what to do.
    """
    key = registry.key if registry_of(reference) == registry.host else None
    url = address_of(reference, "manifests", name)
    answer, login = _manifest(client, url, None)
    if answer.status in (401, 403) and key:
        answer, login = _manifest(client, url, Secret(f"Basic {_basic(registry.user, key)}"))
    if answer.status != 200:
        raise _refused(reference, answer.status, bool(key))
    return answer, login


def _manifest(client: Client, url: str, login: Secret | None) -> tuple[HttpAnswer, Secret | None]:
    accept = {"Accept": KINDS}
    first = client.get(url, accept)
    challenges = _challenges(first.headers.get("www-authenticate", ""))
    if first.status != 401 or not (challenges.keys() - (set() if login else {"basic"})):
        return first, None
    if "bearer" not in challenges:
        return client.get(url, accept, login), login
    token = _token(client, challenges["bearer"], login)
    return (client.get(url, accept, token), token) if token else (first, None)


def _challenges(header: str) -> dict[str, dict[str, str]]:
    """Return the ways to log in that a registry offers, `bearer` or `basic`, each with its parts."""
    return {kind.lower(): dict(_PART.findall(parts)) for kind, parts in _CHALLENGE.findall(header)}


def _token(client: Client, parts: dict[str, str], login: Secret | None) -> Secret | None:
    realm = parts.get("realm", "")
    if not realm.startswith("https://"):
        return None
    query = urlencode([(name, parts[name]) for name in ("service", "scope") if name in parts])
    answer = client.get(f"{realm}{'&' if '?' in realm else '?'}{query}", {}, login)
    if answer.status != 200:
        return None
    found = shaped(Token, answer.json(), host_of(realm))
    token = found.token or found.access_token
    return Secret(f"Bearer {token}") if token else None


def address_of(reference: str, kind: str, name: str) -> str:
    """Return where a manifest or blob of a reference's repository is asked for. kind: `manifests` or `blobs`."""
    registry = registry_of(reference)
    host = HUB_HOST if registry == HUB else registry
    return f"https://{host}/v2/{path_of(reference)}/{kind}/{name}"


def path_of(reference: str) -> str:
    """Return a reference's repository as its registry names it."""
    registry, path = registry_of(reference), repository_of(reference)
    if registry == HUB:
        return path if "/" in path else f"library/{path}"
    return path.removeprefix(f"{registry}/")


def _basic(user: str, key: Secret) -> str:
    return base64.b64encode(f"{user}:{key.unmask()}".encode()).decode()


def _refused(reference: str, status: int, key: bool) -> SourceError:
    registry = registry_of(reference)
    if status in (401, 403) and key:
        return SourceError(
            f"{registry} refuses the key (registry.key) for {reference} ({status}); make a new one, or ask for access",
            code="RW0907",
        )
    if status in (401, 403):
        text = f"{registry} wants a key for {reference} ({status}), and none is set: set registry.key in group_vars"
        return SourceError(text, code="RW0913")
    if status == 404:
        return NotThereError(f"{registry} has no {reference} (404); check image in group_vars", code="RW0914")
    return SourceError(f"{registry} answers {status} for {reference}; run again later", code="RW0915")
