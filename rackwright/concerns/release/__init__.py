"""Releases on the host: each endpoint's files in a folder named by content that appears whole and stays."""

from rackwright.concerns.release.concern import (
    RELEASE,
    TAKES,
    SeenReleases,
    Unresolved,
    binding_of,
    bound_to,
    payload,
    release_of,
    wanted_release,
    wanted_releases,
)

__all__ = [
    "RELEASE",
    "TAKES",
    "SeenReleases",
    "Unresolved",
    "binding_of",
    "bound_to",
    "payload",
    "release_of",
    "wanted_release",
    "wanted_releases",
]
