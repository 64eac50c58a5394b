"""A folder of tokenizer files as aiperf finds it without a network.

aiperf 0.13.0 takes no folder when it is offline: it looks every name up in Hugging Face's cache
(aiperf/common/tokenizer.py, `_resolve_local_snapshot`). So a folder becomes a repository of such a cache.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from rackwright.messages import SettingsError

FILE = "tokenizer.json"
OWNER = "rackwright"
REVISION = "local"
"""The revision at which `main` of such a repository points."""


def refuse_without_tokenizer(folder: str) -> None:
    """Raise SettingsError for a `--tokenizer` that is not a folder with a tokenizer."""
    if not (Path(folder) / FILE).is_file():
        raise SettingsError(
            f"--tokenizer {folder}: no folder with a tokenizer.json; nothing was measured; next: name one with the "
            "model's tokenizer, or leave it out: the host's own files serve",
            code="RW1537",
        )


def in_cache(folder: Path, cache: Path) -> str:
    """Make a folder a repository of a cache; returns the name that aiperf finds it by."""
    name = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:12]
    repository = cache / f"models--{OWNER}--{name}"
    for part in ("refs", "snapshots"):
        (repository / part).mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(REVISION)
    fresh = repository / f"{REVISION}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.absolute())
    fresh.replace(repository / "snapshots" / REVISION)
    return f"{OWNER}/{name}"
