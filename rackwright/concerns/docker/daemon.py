"""dockerd's configuration file: Rackwright's keys are merged into the existing file, and can be removed again.

Pure. Keys that dockerd reloads on SIGHUP: https://docs.docker.com/reference/cli/dockerd/#configuration-reload-behavior
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rackwright.messages import RackwrightError
from rackwright.settings.host_settings import deep_merge

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
    """daemon.json is not a JSON object; the message gives the position."""

    code = "RW2101"


def parse_daemon_json(text: str | None) -> dict[str, Any]:
    """Return the file as a mapping, in its order; empty when the file is missing. Raises BrokenDaemonJsonError."""
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


def merged(current: Mapping[str, Any], configured: Mapping[str, Any], owned: Iterable[str]) -> dict[str, Any]:
    """Return `configured` over `current`, without Rackwright's keys (`owned`) that are no longer wanted.

    owned: dotted paths from the ownership record. An existing runtime `nvidia` stays unchanged.
    """
    result: dict[str, Any] = json.loads(json.dumps(current))
    wanted = with_runtime(configured, current)
    keys = set(leaves(wanted))
    for path in owned:
        if path not in keys and path != RUNTIME_KEY:
            _take_out(result, path.split("."))
    return deep_merge(result, wanted)


RUNTIME_KEY = "runtimes.nvidia"


def with_runtime(configured: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """Return `configured` with the runtime `nvidia`, unless the file already has NVIDIA's."""
    runtimes = current.get("runtimes")
    runtime = runtimes.get("nvidia") if isinstance(runtimes, dict) else None
    if isinstance(runtime, dict) and str(runtime.get("path", "")).rsplit("/", 1)[-1] == RUNTIME:
        return dict(configured)
    return deep_merge({"runtimes": {"nvidia": {"args": [], "path": RUNTIME}}}, dict(configured))


def leaves(value: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted paths of all values except mappings, the runtime as one: Rackwright's part of the file."""
    found: list[str] = []
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if isinstance(inner, dict) and inner and path != RUNTIME_KEY:
            found += leaves(inner, f"{path}.")
        else:
            found.append(path)
    return found


def _take_out(tree: dict[str, Any], path: list[str]) -> None:
    head, *below = path
    if not below:
        tree.pop(head, None)
    elif isinstance(tree.get(head), dict):
        _take_out(tree[head], below)
        if not tree[head]:
            del tree[head]


def changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the top-level keys that differ."""
    return {key for key in {*before, *after} if before.get(key) != after.get(key)}


def render_daemon_json(tree: Mapping[str, Any], like: str | None) -> str:
    """Return the file's text, indented like the current one."""
    found = re.search(r'\n([ \t]+)"', like or "")
    indent: str | int = found[1] if found else 4
    return json.dumps(tree, indent=indent) + "\n"


def diff(before: str | None, after: str) -> str:
    """Return a unified diff of the file."""
    lines = difflib.unified_diff((before or "").splitlines(), after.splitlines(), DAEMON_JSON, DAEMON_JSON, lineterm="")
    return "\n".join(lines)
