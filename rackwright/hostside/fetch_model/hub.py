"""The hub, by the image's huggingface_hub. It is used only in a child process, which can be slowed and ended."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

File = dict[str, Any]
"""path, size, and sha256 (large files) or blob, git's hash (small ones)."""


def load_library() -> None:
    """Import the library where children are forked from: each would take most of a second for it.

    A child reports its errors: it repeats the import that failed.
    """
    with suppress(Exception):
        for name in ("hf_api", "file_download"):
            importlib.import_module(f"huggingface_hub.{name}")


class Hub:
    """One repository.

    The library reads 10 MB at a time: a slow connection would look like a stall, and a lost one lose all of it. slow:
    read even less, since a cap works by pausing and would be all bursts.
    """

    def __init__(self, repository: str, token: str | None, slow: bool) -> None:
        self.client: Any = importlib.import_module("huggingface_hub")
        self.downloads: Any = importlib.import_module("huggingface_hub.file_download")
        self.repository, self.token = repository, token or False
        # Older releases look for the size in the module that downloads.
        modules: list[Any] = [importlib.import_module("huggingface_hub.constants"), self.downloads]
        for module in modules:
            module.DOWNLOAD_CHUNK_SIZE = 1 << (18 if slow else 20)

    def resolve(self, revision: str) -> dict[str, Any]:
        """Return the revision's commit, and all its files with the data that the hub publishes of each."""
        api = self.client.HfApi(token=self.token)
        commit = api.model_info(self.repository, revision=revision).sha
        entries = api.list_repo_tree(self.repository, recursive=True, revision=commit)
        return {"commit": commit, "files": [_published(entry) for entry in entries if hasattr(entry, "blob_id")]}

    def append(self, commit: str, file: File, part: Path) -> None:
        """Append to `part` the missing bytes of a file.

        The library's HTTP client is called with the present number of bytes, because its newest release
        starts every file again after an interruption.
        """
        url = self.client.hf_hub_url(self.repository, file["path"], revision=commit)
        location = self.client.get_hf_file_metadata(url, token=self.token).location
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as handle:
            if handle.seek(0, os.SEEK_END) > file["size"]:
                handle.truncate(handle.seek(0))
            here = handle.tell()
            if here < file["size"]:
                headers = self._headers(url, location)
                self.downloads.http_get(location, handle, resume_size=here, headers=headers, expected_size=file["size"])

    def _headers(self, url: str, location: str) -> dict[str, str]:
        headers: dict[str, str] = dict(self.client.utils.build_hf_headers(token=self.token))
        if _server(location) != _server(url):
            headers.pop("authorization", None)  # the token is for the hub, not for a redirect's target, nor in clear
        return {**headers, "Accept-Encoding": "identity"}


def _server(url: str) -> tuple[str, str]:
    return urlparse(url).scheme, urlparse(url).netloc


def _published(entry: Any) -> File:
    large = getattr(entry, "lfs", None)
    sha256 = (getattr(large, "sha256", None) or large["sha256"]) if large else None
    return {"path": entry.path, "size": entry.size, "sha256": sha256, "blob": None if sha256 else entry.blob_id}
