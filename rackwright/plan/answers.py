"""Data that a host is asked for once for all concerns: systemd's units, Docker Engine's API. Values, parsers; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.messages import ReadingError

RUNNING = frozenset({"running", "paused", "restarting"})
"""States in which Docker counts a container as running."""
LISTS = ("containers", "images")
NONE = "<none>"
"""Docker's output for a missing tag or digest."""


@dataclass(frozen=True)
class ListedContainer:
    """A container as Docker lists it."""

    id: str
    name: str
    image: str
    """As requested."""
    running: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    """Ports published on the host."""
    published: frozenset[tuple[str, int]] = frozenset()
    """The same with the address of each."""


@dataclass(frozen=True)
class Answers:
    """Shared data of a reading's sections. None for Docker's data means no answer: unknown, and never empty."""

    units: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """systemd's properties by unit."""
    info: Mapping[str, Any] | None = None
    containers: tuple[ListedContainer, ...] | None = None
    images: tuple[tuple[str, str, str], ...] | None = None
    """Repository, tag and digest of each image, as `docker image ls --digests` lists them."""
    inspected: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`docker inspect` of the endpoints' containers, by name."""

    def unit(self, name: str, key: str) -> str:
        """Return a property of a unit; empty where systemd has none."""
        return self.units.get(name, {}).get(key, "")

    def is_active(self, name: str) -> bool:
        """Return True if a unit is up."""
        return self.unit(name, "ActiveState") in ("active", "reloading", "refreshing")

    def named(self, name: str) -> ListedContainer | None:
        """Return the container of that name."""
        return next((one for one in self.containers or () if one.name == name), None)


def parse_answers(units: str, engine: str) -> Answers:
    """Parse both sections. Raises ReadingError when the answer does not match the request."""
    found = dict(_bodies(engine))
    containers, images = found.get("containers"), found.get("images")
    return Answers(
        parse_units(units),
        found.get("info"),
        None if containers is None else tuple(map(_container, containers)),
        None if images is None else tuple(row for image in images for row in image_rows(image)),
        {name: body for name, body in found.items() if name.startswith("rackwright-")},
    )


def parse_units(output: str) -> dict[str, dict[str, str]]:
    """Parse systemd's properties by unit, from a row of names and a block for each."""
    names, _, text = output.partition("\n")
    blocks = text.strip("\n").split("\n\n") if text.strip("\n") else []
    if blocks and len(blocks) != len(names.split()):
        raise ReadingError(f"systemd reported {len(blocks)} units, and was asked for: {names}", code="RW0502")
    rows = (dict(row.split("=", 1) for row in block.split("\n") if "=" in row) for block in blocks)
    return dict(zip(names.split(), rows, strict=False))


def _bodies(output: str) -> Iterator[tuple[str, Any]]:
    """Yield Docker's successful answers by the last part of the path: info, containers, images, a container's name."""
    body: list[str] = []
    for row in output.split("\n"):
        words = row.split(" ")
        if words[0] != "answer" or len(words) != 3:
            body.append(row)
            continue
        _, status, url = words
        if status == "200":
            part = url.partition("?")[0].removesuffix("/json").rpartition("/")[2]
            yield part, _json("\n".join(body), url, list if part in LISTS else dict)
        body = []


def _json(text: str, url: str, kind: type) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, kind):
        raise ReadingError(f"Docker answered {url} with something unexpected: {text[:80]!r}", code="RW0502")
    return found


def _container(entry: Mapping[str, Any]) -> ListedContainer:
    names = [name.removeprefix("/") for name in entry.get("Names") or ()]
    direct = next((name for name in names if "/" not in name), "")
    at = frozenset(
        (port.get("IP", ""), port["PublicPort"]) for port in entry.get("Ports") or () if port.get("PublicPort")
    )
    ports, labels, running = frozenset(port for _, port in at), entry.get("Labels") or {}, entry.get("State") in RUNNING
    return ListedContainer(entry["Id"], direct, entry.get("Image") or "", running, labels, ports, at)


def image_rows(image: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield an image's rows as in `docker image ls --digests`: one for each tag and digest of one repository."""
    digests = _by_repository(image.get("RepoDigests") or (), "@")
    for repository, tags in _by_repository(image.get("RepoTags") or (), ":").items():
        for digest in digests.pop(repository, None) or (NONE,):
            yield from ((repository, tag, digest) for tag in tags)
    for repository, unmatched in digests.items():
        yield from ((repository, NONE, digest) for digest in unmatched)


def image_sizes(engine: str) -> dict[tuple[str, str], int]:
    """Return the bytes of each image by its repository and digest, from the shared section of Docker's answers."""
    images = dict(_bodies(engine)).get("images") or ()
    return {
        (repository, digest): int(image.get("Size") or 0)
        for image in images
        for repository, _, digest in image_rows(image)
    }


def _by_repository(references: Sequence[str], mark: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for reference in references:
        repository, _, version = reference.rpartition(mark)
        if repository != NONE:
            found.setdefault(_familiar(repository), []).append(version)
    return found


def _familiar(repository: str) -> str:
    """Return a repository in the form in which Docker lists it."""
    return repository.removeprefix("docker.io/").removeprefix("library/")
