"""dockerd's configuration file: ours is merged into what is there, key by key, and can be taken out again.

Pure. Which keys dockerd takes over on SIGHUP: https://docs.docker.com/reference/cli/dockerd/#configuration-reload-behavior
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rackwright.messages import RackwrightError
from rackwright.settings.model import deep_merge

DAEMON_JSON = "/etc/docker/daemon.json"
RUNTIME = "nvidia-container-runtime"
RELOADABLE = frozenset(
    {
        "authorization-plugins",
        "debug",
        "default-runtime",
        "features",
        "insecure-registries",
        "labels",
        "live-restore",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "max-download-attempts",
        "registry-mirrors",
        "runtimes",
        "shutdown-timeout",
    }
)
"""Top-level keys that need no restart of dockerd."""


class BrokenDaemonJsonError(RackwrightError):
    """daemon.json is no JSON object; the text says where."""

    code = "RW2101"


def parse_daemon_json(text: str | None) -> dict[str, Any]:
    """The file as a mapping, in its order; empty when there is none. Raises BrokenDaemonJsonError."""
    if text is None or not text.strip():
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise BrokenDaemonJsonError(
            f"{DAEMON_JSON} is broken at line {error.lineno}, column {error.colno}: {error.msg}; "
            f"nothing was written. Fix it, then check with: python3 -m json.tool {DAEMON_JSON}"
        ) from error
    if not isinstance(found, dict):
        raise BrokenDaemonJsonError(
            f"{DAEMON_JSON} holds a {type(found).__name__}, dockerd wants an object; fix it and run again"
        )
    return found


def merged(current: Mapping[str, Any], asked: Mapping[str, Any], owned: Iterable[str]) -> dict[str, Any]:
    """What the file should say: `asked` over `current`, without the keys of ours (`owned`) no longer asked for.

    owned: dotted paths from the ownership record. A runtime `nvidia` that is there already stays as it is.
    """
    result: dict[str, Any] = json.loads(json.dumps(current))
    wanted = with_runtime(asked, current)
    kept = set(leaves(wanted))
    for path in owned:
        if path not in kept and path != RUNTIME_KEY:
            _take_out(result, path.split("."))
    return deep_merge(result, wanted)


RUNTIME_KEY = "runtimes.nvidia"


def with_runtime(asked: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """`asked`, and the runtime `nvidia` unless the file has one that is NVIDIA's."""
    runtimes = current.get("runtimes")
    there = runtimes.get("nvidia") if isinstance(runtimes, dict) else None
    if isinstance(there, dict) and str(there.get("path", "")).rsplit("/", 1)[-1] == RUNTIME:
        return dict(asked)
    return deep_merge({"runtimes": {"nvidia": {"args": [], "path": RUNTIME}}}, dict(asked))


def leaves(value: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted paths of all values that are no mappings, the runtime as one: what we own of the file."""
    found: list[str] = []
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if isinstance(inner, dict) and inner and path != RUNTIME_KEY:
            found += leaves(inner, f"{path}.")
        else:
            found.append(path)
    return found


def _take_out(tree: dict[str, Any], path: list[str]) -> None:
    head, *rest = path
    if not rest:
        tree.pop(head, None)
    elif isinstance(tree.get(head), dict):
        _take_out(tree[head], rest)
        if not tree[head]:
            del tree[head]


def changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Top-level keys that differ."""
    return {key for key in {*before, *after} if before.get(key) != after.get(key)}


def render_daemon_json(tree: Mapping[str, Any], like: str | None) -> str:
    """The file's text, indented as the present one is."""
    found = re.search(r'\n([ \t]+)"', like or "")
    indent: str | int = found[1] if found else 4
    return json.dumps(tree, indent=indent) + "\n"


def diff(before: str | None, after: str) -> str:
    """Unified diff of the file."""
    lines = difflib.unified_diff((before or "").splitlines(), after.splitlines(), DAEMON_JSON, DAEMON_JSON, lineterm="")
    return "\n".join(lines)
