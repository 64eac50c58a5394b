"""The commit of a model's revision, and the files at it, as the hub publishes them.

The hub publishes SHA-256 for large files, and git's blob hash for small ones (DECISIONS 18).
Interface: https://huggingface.co/docs/hub/api
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from rackwright.hostside.fetch_model.files import is_plain
from rackwright.settings.secret import Secret
from rackwright.settings.sections import COMMIT, ModelSource
from rackwright.sources.errors import NotThereError, SourceError
from rackwright.sources.http import Client, HttpAnswer
from rackwright.sources.lockfile import LockedFile, LockedModel
from rackwright.sources.opener import host_of
from rackwright.sources.shapes import Revision, Tree, TreeEntry, TreeFile, shaped

_NEXT = re.compile(r"<([^<>]+)>\s*;[^<]*?\brel=\"?next\b")
MOST_PAGES = 1000
LISTING = 300
"""Seconds for all pages of one model's list."""


def model_at_revision(client: Client, hub: str, source: ModelSource, token: Secret | None) -> LockedModel:
    """Return the commit and wanted files of a model. `hub`: its address. Raises SourceError with what to do."""
    login = _login(token)
    base = _base(hub, source)
    commit = commit_at_revision(client, hub, source, token)
    rows = _rows(client, f"{base}/tree/{commit}?recursive=true", source, login)
    files = {file.path: _locked(file) for file in rows if _wanted(file.path, source) and _plain(file, hub)}
    if not files:
        raise SourceError(
            f"no file of {source.repository} matches include and exclude; check them in group_vars", code="RW0905"
        )
    return LockedModel(commit=commit, files=files)


def commit_at_revision(client: Client, hub: str, source: ModelSource, token: Secret | None) -> str:
    """Return the commit that a model's revision is now. `hub`: its address. Raises SourceError with what to do."""
    url = f"{_base(hub, source)}/revision/{quote(source.revision, safe='')}"
    commit = shaped(Revision, _answer(client, url, source, _login(token)).json(), host_of(hub)).sha
    if not COMMIT.match(commit):
        raise SourceError(
            f"{hub} names no commit for {source.repository} at {source.revision}; is it a model hub?", code="RW0906"
        )
    return commit


def _base(hub: str, source: ModelSource) -> str:
    return f"{hub.rstrip('/')}/api/models/{source.repository}"


def _login(token: Secret | None) -> Secret | None:
    return Secret(f"Bearer {token.unmask()}") if token else None


def _rows(client: Client, url: str, source: ModelSource, login: Secret | None) -> Iterator[TreeFile]:
    deadline, server = time.monotonic() + LISTING, host_of(url)
    for _ in range(MOST_PAGES):
        answer = _answer(client, url, source, login)
        for row in shaped(Tree, answer.json(), server).root:
            if shaped(TreeEntry, row, server).type == "file":
                yield shaped(TreeFile, row, server)
        following = _NEXT.search(answer.headers.get("link", ""))
        if not following:
            return
        url = _next_page(url, following[1])
        if time.monotonic() > deadline:
            break
    raise SourceError(
        f"{server} did not end its list of {source.repository} within {LISTING} s and {MOST_PAGES} pages; run again "
        "later, or check mirrors.hub",
        code="RW0970",
    )


def _next_page(url: str, link: str) -> str:
    """Return the next page at the server that was asked.

    A link that names another server is never followed, with or without a token. A mirror behind TLS names itself by
    http; then the scheme and port that were asked count.
    """
    following = _joined(url, link)
    if host_of(following) != host_of(url):
        raise SourceError(
            f"{host_of(url)} continues its list at another server ({host_of(following) or 'an unknown address'}), "
            "which is refused; check mirrors.hub",
            code="RW0980",
        )
    return urlunsplit((*urlsplit(url)[:2], *urlsplit(following)[2:]))


def _joined(url: str, link: str) -> str:
    try:
        return urljoin(url, link)
    except ValueError:
        return ""


def _plain(file: TreeFile, hub: str) -> bool:
    """Return True for a name that a model's folder can hold. Raises SourceError for any other."""
    if is_plain(file.path):
        return True
    raise SourceError(
        f"{host_of(hub)} names a file that cannot be in a model's folder: {file.path!r}; check mirrors.hub and "
        "model.repository, or leave the file out by model.exclude",
        code="RW0990",
    )


def _locked(file: TreeFile) -> LockedFile:
    if file.lfs:
        return LockedFile(size=file.size, sha256=file.lfs.oid or file.lfs.sha256)
    return LockedFile(size=file.size, blob=file.oid)


def _wanted(path: str, source: ModelSource) -> bool:
    return (not source.include or _any(path, source.include)) and not _any(path, source.exclude)


def _any(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in patterns)


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
