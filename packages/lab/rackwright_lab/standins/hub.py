"""The model hub's HTTP interface, as far as `huggingface_hub` and `hf download` use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .answer import Answer, Request, error_answer, json_answer
from .hub_content import REPOSITORIES, HubFile, Repository, Store, of_folder

_REPO = r"(?P<repo>(?:datasets/)?[\w.-]+/[\w.-]+)"
_API = rf"/api/(?:models/(?!datasets/)|(?=datasets/)){_REPO}"
_INFO = re.compile(rf"{_API}(?:/revision/(?P<revision>[^/]+))?$")
_TREE = re.compile(rf"{_API}/tree/(?P<revision>[^/]+)(?:/(?P<under>.*))?$")
_RESOLVE = re.compile(rf"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)$")
_CDN = re.compile(rf"/cdn/{_REPO}/(?P<sha256>[0-9a-f]{{64}})/.+$")

REFS_FILE = "hub-refs.json"
"""Where the hub finds which commit a branch leads to, when a test has moved it."""
TOKENS_FILE = "hub-tokens.json"
"""Where it finds which tokens may read what."""
OWN_FOLDER = "hub-own"
"""Repositories with files of their own: OWN_FOLDER/OWNER/NAME/v1/FILE; data sets: OWN_FOLDER/datasets/OWNER/NAME/..."""


class Hub:
    """Answers for huggingface.co.

    Large files are redirected to `cdn`, which must be another origin: the client reads a file's size and hash from
    the redirect itself only when that leaves the hub. Tokens and moved branches are read from STATE at each request;
    rackwright_lab.faults writes them.
    """

    def __init__(self, state: Path, cdn: str) -> None:
        self._state = state
        self._cdn_url = cdn
        self._store = Store(state / "hub")
        self._by_hash: dict[str, HubFile] = {}

    def answer(self, request: Request) -> Answer:
        """Answer one request; what the hub does not know is its 404."""
        for pattern, handler in ((_INFO, self._info), (_TREE, self._tree), (_RESOLVE, self._resolve)):
            found = pattern.match(request.path)
            if found:
                return self._checked(request) or handler(request, found)
        if request.path == "/api/whoami-v2":
            return self._whoami(request)
        return error_answer(404, "", "Sorry, we can't find the page you are looking for.")

    def _tokens(self) -> dict[str, bool]:
        file = self._state / TOKENS_FILE
        tokens: dict[str, bool] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return tokens

    def _checked(self, request: Request) -> Answer | None:
        if request.token and request.token not in self._tokens():
            return error_answer(401, "", "Invalid credentials in Authorization header")
        return None

    def _whoami(self, request: Request) -> Answer:
        if request.token in self._tokens():
            return json_answer({"type": "user", "name": "lab", "auth": {"type": "access_token"}})
        return error_answer(401, "", "Invalid credentials in Authorization header")

    def _find(self, request: Request, name: str, wanted: str) -> tuple[Repository, int] | Answer:
        repository = REPOSITORIES.get(name) or of_folder(self._state / OWN_FOLDER, name)
        if repository is None:
            # Without a token the hub does not tell a missing repository from a private one.
            status, text = (404, "Repository not found") if request.token else (401, "Invalid username or password.")
            return error_answer(status, "RepoNotFound", text)
        moved = self._state / REFS_FILE
        refs = repository.refs()
        if moved.is_file():
            refs |= json.loads(moved.read_text(encoding="utf-8")).get(name, {})
        if wanted not in refs:
            return error_answer(404, "RevisionNotFound", f"Invalid rev id: {wanted}")
        return repository, refs[wanted]

    def _files(self, repository: Repository, revision: int) -> dict[str, HubFile]:
        files = self._store.files(repository, revision)
        self._by_hash.update((file.sha256, file) for file in files.values() if file.large)
        return files

    def _info(self, request: Request, found: re.Match[str]) -> Answer:
        at = self._find(request, found["repo"], found["revision"] or "main")
        if isinstance(at, Answer):
            return at
        repository, revision = at
        blobs = request.query.get("blobs", "").lower() in ("true", "1")
        files = self._files(repository, revision).values()
        name = repository.name.removeprefix("datasets/")
        return json_answer(
            {
                "_id": repository.commit(1)[:24],
                "id": name,
                "modelId": name,
                "author": name.split("/")[0],
                "sha": repository.commit(revision),
                "private": False,
                "gated": "manual" if repository.gated else False,
                "disabled": False,
                "tags": ["safetensors"],
                "lastModified": "2026-01-01T00:00:00.000Z",
                "createdAt": "2025-08-05T00:00:00.000Z",
                "downloads": 0,
                "likes": 0,
                "library_name": "transformers",
                "siblings": [_sibling(file, blobs) for file in files],
            }
        )

    def _tree(self, request: Request, found: re.Match[str]) -> Answer:
        at = self._find(request, found["repo"], found["revision"])
        if isinstance(at, Answer):
            return at
        under = f"{found['under']}/" if found["under"] else ""
        files = [file for file in self._files(*at).values() if file.name.startswith(under)]
        if request.query.get("recursive", "").lower() in ("true", "1"):
            return json_answer([_entry(file) for file in files])
        folders = sorted({file.name[len(under) :].split("/")[0] for file in files if "/" in file.name[len(under) :]})
        rows: list[dict[str, Any]] = [
            {"type": "directory", "oid": "0" * 40, "size": 0, "path": under + one} for one in folders
        ]
        return json_answer(rows + [_entry(file) for file in files if "/" not in file.name[len(under) :]])

    def _resolve(self, request: Request, found: re.Match[str]) -> Answer:
        at = self._find(request, found["repo"], found["revision"])
        if isinstance(at, Answer):
            return at
        repository, revision = at
        if repository.gated and not self._tokens().get(request.token):
            return _gated(repository.name, bool(request.token))
        file = self._files(repository, revision).get(found["file"])
        commit = repository.commit(revision)
        if file is None:
            return error_answer(404, "EntryNotFound", "Entry not found", X_Repo_Commit=commit)
        folder = f"{self._cdn_url}/cdn/{repository.name}"
        return _redirect(folder, file, commit) if file.large else _small(file, commit)

    def cdn_answer(self, request: Request) -> Answer:
        """Answer for the host that large files come from."""
        found = _CDN.match(request.path)
        file = self._by_hash.get(found["sha256"]) if found else None
        if file is None:
            return Answer(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
        headers = {"ETag": f'"{file.sha256}"', "Content-Type": "application/octet-stream"}
        return Answer(200, headers, file=file.path)


def _gated(name: str, authenticated: bool) -> Answer:
    restricted = f"Access to model {name} is restricted"
    if authenticated:
        return error_answer(403, "GatedRepo", f"{restricted} and you are not in the authorized list.")
    return error_answer(401, "GatedRepo", f"{restricted}. You must have access to it and be authenticated.")


def _small(file: HubFile, commit: str) -> Answer:
    headers = {
        "ETag": f'"{file.blob}"',
        "X-Repo-Commit": commit,
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(file.path.name)}",
    }
    return Answer(200, headers, file=file.path)


def _redirect(folder: str, file: HubFile, commit: str) -> Answer:
    location = f"{folder}/{file.sha256}/{quote(file.name)}"
    headers = {
        "Location": location,
        "X-Repo-Commit": commit,
        "X-Linked-Size": str(file.size),
        "ETag": f'"{file.blob}"',
        "X-Linked-Etag": f'"{file.sha256}"',
        "Content-Type": "text/plain; charset=utf-8",
        "Accept-Ranges": "bytes",
    }
    return Answer(302, headers, f"Found. Redirecting to {location}".encode())


def _lfs(file: HubFile, name: str) -> dict[str, Any]:
    return {"lfs": {name: file.sha256, "size": file.size, "pointerSize": 134}} if file.large else {}


def _sibling(file: HubFile, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": file.name}
    return {"rfilename": file.name, "size": file.size, "blobId": file.blob, **_lfs(file, "sha256")}


def _entry(file: HubFile) -> dict[str, Any]:
    return {"type": "file", "path": file.name, "size": file.size, "oid": file.blob, **_lfs(file, "oid")}
