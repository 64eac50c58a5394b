"""Versions of engines in their order: 1.2.0rc1 < 1.2.0rc6 < 1.2.0 < 1.3.0rc1 < 1.3.0rc1.post1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

FORM = re.compile(r"^v?(\d+)\.(\d+)(?:\.(\d+))?(?:rc(\d+))?(?:\.post(\d+))?(?=$|[-+_.])")
FINAL = 10**6


class Version(NamedTuple):
    """A version as numbers; a release follows its candidates."""

    major: int
    minor: int
    patch: int
    candidate: int
    post: int


def parse_version(text: str) -> Version | None:
    """Return the version that an image tag names (`v0.14.1`, `1.3.0rc1.post1`); None for one without, as `latest`."""
    found = FORM.match(text)
    if not found:
        return None
    major, minor, patch, candidate, post = found.groups()
    return Version(int(major), int(minor), int(patch or 0), int(candidate) if candidate else FINAL, int(post or 0))


def bare(text: str) -> str:
    """Return the version within an image tag: `v0.14.1-cu130` is 0.14.1; the tag itself when it names none."""
    found = FORM.match(text)
    return found[0].removeprefix("v") if found else text


def not_before(version: str, since: str) -> bool:
    """Return True if `version` is `since` or later; an unreadable version counts as the newest."""
    here, first = parse_version(version), parse_version(since)
    return here is None or first is None or here >= first


def nearest_line(version: str, lines: Iterable[str]) -> str:
    """Return the latest of `lines` that is not after `version`; else the first. Lines are in their order."""
    names = list(lines)
    before = [name for name in names if not_before(version, name)]
    return before[-1] if before else names[0]
