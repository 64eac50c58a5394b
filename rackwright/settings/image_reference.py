"""Image references: which registry, which repository, and the short form that `docker image ls` prints."""

from __future__ import annotations

HUB = "docker.io"
HUB_HOST = "registry-1.docker.io"
"""Where Docker Hub's registry answers."""


def registry_of(reference: str) -> str:
    """Return the registry's host of an image reference, for example `nvcr.io`; Docker Hub when it names none."""
    first, slash, _ = reference.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else HUB


def repository_of(reference: str) -> str:
    """Return the reference without tag and digest, in the form in which Docker lists it."""
    bare = reference.split("@", 1)[0]
    head, slash, last = bare.rpartition("/")
    name = f"{head}{slash}{last.split(':', 1)[0]}"
    return name.removeprefix(f"{HUB}/").removeprefix("library/")


def tag_of(reference: str) -> str:
    """Return the reference's tag. Raises ValueError when it has none."""
    last = reference.split("@", 1)[0].rpartition("/")[2]
    _, colon, tag = last.partition(":")
    if not colon:
        raise ValueError(f"{reference} has no tag")
    return tag


def login_key(registry: str) -> str:
    """Return how Docker's config.json names a registry in `auths`."""
    return "https://index.docker.io/v1/" if registry == HUB else registry


def slug(text: str) -> str:
    """Return the text as part of a systemd unit's or a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in text)
