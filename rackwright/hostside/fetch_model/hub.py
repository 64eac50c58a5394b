"""The hub, by the image's huggingface_hub. It is used only in a child process, which can be slowed and ended."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from rackwright.hostside.fetch_model.ranges import append_missing
from rackwright.hostside.hand_on.redirects import server_of

File = dict[str, Any]
"""path, size, and sha256 (large files) or blob, git's hash (small ones)."""


def load_library() -> None:
    """Import the library where children are forked from: each would take most of a second for it.

    A child reports its errors: it repeats the import that failed.
    """
    with suppress(Exception):
        library = importlib.import_module("huggingface_hub")
        for name in ("HfApi", "hf_hub_url"):  # it imports what defines a name when that is first asked for
            getattr(library, name)


class Hub:
    """One repository, by the library's public calls; the bytes of its files are fetched without it.

    slow: a cap works by pausing, and would be all bursts with large blocks. wait: seconds without a byte.
    """

    def __init__(self, repository: str, token: str | None, slow: bool, wait: float) -> None:
        self.client: Any = importlib.import_module("huggingface_hub")
        self.utils: Any = importlib.import_module("huggingface_hub.utils")
        self.repository, self.token, self.wait = repository, token or False, wait
        self.block = 1 << (18 if slow else 20)

    def resolve(self, revision: str) -> dict[str, Any]:
        """Return the revision's commit, and all its files with the data that the hub publishes of each."""
        api = self.client.HfApi(token=self.token)
        commit = api.model_info(self.repository, revision=revision).sha
        entries = api.list_repo_tree(self.repository, recursive=True, revision=commit)
        return {"commit": commit, "files": [_published(entry) for entry in entries if hasattr(entry, "blob_id")]}

    def append(self, commit: str, file: File, part: Path) -> None:
        """Append to `part` the missing bytes of a file: the library starts a file again after an interruption."""
        url = self.client.hf_hub_url(self.repository, file["path"], revision=commit)
        location = self.client.get_hf_file_metadata(url, token=self.token).location
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as handle:
            if handle.seek(0, os.SEEK_END) > file["size"]:
                handle.truncate(handle.seek(0))
            if handle.tell() < file["size"]:
                append_missing(location, self._headers(url, location), handle, file["size"], self.block, self.wait)

    def _headers(self, url: str, location: str) -> dict[str, str]:
        headers: dict[str, str] = dict(self.utils.build_hf_headers(token=self.token))
        if server_of(location) != server_of(url):
            headers.pop("authorization", None)  # the token is for the hub, not for a redirect's target, nor in clear
        return {**headers, "Accept-Encoding": "identity"}


def _published(entry: Any) -> File:
    large = getattr(entry, "lfs", None)
    sha256 = (getattr(large, "sha256", None) or large["sha256"]) if large else None
    return {"path": entry.path, "size": entry.size, "sha256": sha256, "blob": None if sha256 else entry.blob_id}
