"""Faults of the lab's stand-ins, set by tests.

Those of the web server are a file in its state folder that it reads at each request. Those of the stand-in engine are
a file on the lab host, ENGINE_FAULTS, whose text `engine_faults` makes:

    host.run(f"cat > {ENGINE_FAULTS}", stdin=engine_faults({"fault": "die_at_end_of_load"}))

Hosts and paths are globs. The hub's small files come from /REPOSITORY/resolve/COMMIT/FILE, its large ones are
redirected to /cdn/REPOSITORY/SHA256/FILE on the CDN's host.

Kinds and their `value`:
slow (bytes a second, until it is cleared), stall (bytes sent before it stops sending), truncated (fraction sent
before the connection closes, 0.5), wrong_bytes (one byte in the middle changed), "401", "403", "404" (hub error code:
RepoNotFound, RevisionNotFound or EntryNotFound), "429" (seconds for Retry-After), "500", "502", "503", "504".
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rackwright_lab.standins.engine.faults import NAMES
from rackwright_lab.standins.hub import REFS_FILE, TOKENS_FILE

KINDS = frozenset(
    {
        "slow",
        "stall",
        "truncated",
        "wrong_bytes",
        "401",
        "403",
        "404",
        "429",
        "500",
        "502",
        "503",
        "504",
    }
)
ENGINE_FAULTS = "/etc/rackwright-lab/faults.json"
FAULTS_FILE = "faults.json"
REQUESTS_FILE = "requests.jsonl"


@dataclass(frozen=True)
class Fault:
    """One fault: which requests it meets (globs), what it does, and how often (0: always)."""

    kind: str
    host: str = "*"
    path: str = "*"
    method: str = "*"
    value: float | str | None = None
    times: int = 0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def meets(self, method: str, host: str, path: str) -> bool:
        """Tell whether a request is one of those that this fault spoils."""
        pairs = ((method, self.method), (host, self.host), (path, self.path))
        return all(fnmatchcase(name, pattern) for name, pattern in pairs)


def set_fault(
    state: Path,
    kind: str,
    host: str = "*",
    path: str = "*",
    *,
    method: str = "*",
    value: float | str | None = None,
    times: int = 0,
) -> Fault:
    """Add a fault to the server with this state folder; it holds from the next request on.

    Raises ValueError for a kind that does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"no such fault: {kind!r}; there are {', '.join(sorted(KINDS))}")
    fault = Fault(kind, host, path, method, value, times)
    _write(state / FAULTS_FILE, [asdict(one) for one in (*read_faults(state), fault)])
    return fault


def engine_faults(*rules: Mapping[str, Any]) -> str:
    """Return the text of a host's ENGINE_FAULTS: rules with `fault`, and where wanted `value` and `when`.

    rackwright_lab.standins.engine.faults says which there are. Raises ValueError for one that does not exist.
    """
    unknown = sorted({str(rule["fault"]) for rule in rules} - NAMES)
    if unknown:
        raise ValueError(f"no such fault: {', '.join(unknown)}; there are {', '.join(sorted(NAMES))}")
    return json.dumps({"engine": [dict(rule) for rule in rules]})


def clear(state: Path) -> None:
    """Remove all faults."""
    _write(state / FAULTS_FILE, [])


def read_faults(state: Path) -> list[Fault]:
    """Return the faults that are set, the first set first."""
    file = state / FAULTS_FILE
    if not file.is_file():
        return []
    return [Fault(**row) for row in json.loads(file.read_text(encoding="utf-8"))]


def requests(state: Path) -> list[dict[str, Any]]:
    """Return every answered request: method, host, path, range, status, bytes, token (seen or not)."""
    file = state / REQUESTS_FILE
    if not file.is_file():
        return []
    return [json.loads(row) for row in file.read_text(encoding="utf-8").splitlines()]


def forget_requests(state: Path) -> None:
    """Empty the list of requests."""
    (state / REQUESTS_FILE).write_text("", encoding="utf-8")


def set_tokens(state: Path, tokens: Mapping[str, bool]) -> None:
    """Set the hub's valid tokens; true ones may read gated repositories. The file is for its owner only."""
    _write(state / TOKENS_FILE, dict(tokens))


def move_branch(state: Path, repository: str, revision: int, branch: str = "main") -> None:
    """Let a branch of a hub repository point to another of its revisions (counted from 1)."""
    file = state / REFS_FILE
    refs = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    refs.setdefault(repository, {})[branch] = revision
    _write(file, refs)


def _write(file: Path, content: Any) -> None:
    new = file.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(content, stream)
    new.replace(file)
