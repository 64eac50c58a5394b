"""Which commit a model's revision is now, and the files at it, as the hub publishes them.

The hub publishes SHA-256 for large files, and git's blob hash for small ones (DECISIONS 18).
Interface: https://huggingface.co/docs/hub/api
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any
from urllib.parse import quote, urljoin

from rackwright.settings.secret import Secret
from rackwright.settings.sections import COMMIT, ModelSource
from rackwright.sources.http import Client, HttpAnswer, NotThereError, SourceError
from rackwright.sources.lockfile import LockedFile, LockedModel

_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
MOST_PAGES = 1000


def model_at_revision(client: Client, hub: str, source: ModelSource, token: Secret | None) -> LockedModel:
    """Commit and wanted files of a model. `hub`: its address. Raises SourceError with what to do."""
    login = _login(token)
    base = _base(hub, source)
    commit = commit_at_revision(client, hub, source, token)
    rows = _rows(client, f"{base}/tree/{commit}?recursive=true", source, login)
    files = {row["path"]: _file(row) for row in rows if row.get("type") == "file" and _wanted(row["path"], source)}
    if not files:
        raise SourceError(
            f"no file of {source.repository} matches include and exclude; check them in group_vars", code="RW0905"
        )
    return LockedModel(commit=commit, files=files)


def commit_at_revision(client: Client, hub: str, source: ModelSource, token: Secret | None) -> str:
    """The commit that a model's revision is now. `hub`: its address. Raises SourceError with what to do."""
    asked = f"{_base(hub, source)}/revision/{quote(source.revision, safe='')}"
    commit = str(_json(client, asked, source, _login(token)).get("sha", ""))
    if not COMMIT.match(commit):
        raise SourceError(
            f"{hub} names no commit for {source.repository} at {source.revision}; is it a model hub?", code="RW0906"
        )
    return commit


def _base(hub: str, source: ModelSource) -> str:
    return f"{hub.rstrip('/')}/api/models/{source.repository}"


def _login(token: Secret | None) -> Secret | None:
    return Secret(f"Bearer {token.unmask()}") if token else None


def _rows(client: Client, url: str, source: ModelSource, login: Secret | None) -> Iterator[dict[str, Any]]:
    for _ in range(MOST_PAGES):
        answer = _answer(client, url, source, login)
        yield from answer.json()
        following = _NEXT.search(answer.headers.get("link", ""))
        if not following:
            return
        url = urljoin(url, following[1])


def _file(row: dict[str, Any]) -> LockedFile:
    large = row.get("lfs")
    if large:
        return LockedFile(size=row["size"], sha256=large.get("oid") or large.get("sha256"))
    return LockedFile(size=row["size"], blob=row["oid"])


def _wanted(path: str, source: ModelSource) -> bool:
    return (not source.include or _any(path, source.include)) and not _any(path, source.exclude)


def _any(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in patterns)


def _json(client: Client, url: str, source: ModelSource, login: Secret | None) -> dict[str, Any]:
    found = _answer(client, url, source, login).json()
    return found if isinstance(found, dict) else {}


def _answer(client: Client, url: str, source: ModelSource, login: Secret | None) -> HttpAnswer:
    answer = client.get(url, {"Accept": "application/json"}, login)
    if answer.status == 200:
        return answer
    raise _refused(source, answer, bool(login))


def _refused(source: ModelSource, answer: HttpAnswer, token: bool) -> SourceError:
    kind, model = answer.headers.get("x-error-code", ""), source.repository
    if kind == "RevisionNotFound":
        text = f"{model} has no revision {source.revision} (404); check model.revision and draft.revision in group_vars"
        return NotThereError(text, code="RW0904")
    if kind == "GatedRepo":
        text = f"{model} is gated: accept its licence with the account of models.hub_token, and run again"
        return SourceError(text, code="RW0909")
    if answer.status in (401, 403, 404):
        hint = (
            "check models.hub_token and the repository's name"
            if token
            else "check its name, or set models.hub_token if it is private"
        )
        return NotThereError(f"{model} was not found on the hub ({answer.status}): {hint}", code="RW0910")
    if answer.status == 429:
        return SourceError(
            "the hub limits how often this address or account may ask (429); set models.hub_token, or run again later",
            code="RW0911",
        )
    return SourceError(f"the hub answers {answer.status} for {model}; run again later", code="RW0912")
