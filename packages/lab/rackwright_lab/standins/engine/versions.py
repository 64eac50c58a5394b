"""Ordering of TensorRT-LLM's versions: 1.2.0rc1 < 1.2.0rc6 < 1.2.0 < 1.3.0rc1."""

from __future__ import annotations

import re

_FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:rc(\d+))?(?:\.post(\d+))?$")
_FINAL = 1_000_000


def order(version: str) -> tuple[int, int, int, int, int]:
    """Return a sortable key. Raises ValueError for anything but X.Y.Z[rcN][.postN]."""
    found = _FORM.match(version)
    if found is None:
        raise ValueError(f"not a TensorRT-LLM version: {version!r}")
    major, minor, patch, rc, post = found.groups()
    return int(major), int(minor), int(patch), int(rc) if rc else _FINAL, int(post or 0)


def within(version: str, since: str = "", gone: str = "") -> bool:
    """Return True if `version` is within [since, gone); an empty bound is open."""
    here = order(version)
    return (not since or here >= order(since)) and (not gone or here < order(gone))
