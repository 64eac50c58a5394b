"""Paths at which an engine answers requests of a model; all others are not for clients."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright_engines.data import table


@dataclass(frozen=True)
class ServedPaths:
    """Paths of one engine that clients may ask."""

    inference: tuple[str, ...]
    """Exact paths; each request stands alone."""
    stateful: tuple[str, ...]
    """Beginnings of paths that need what an earlier request has stored in one server."""


def served_paths(engine_kind: str) -> ServedPaths:
    """Return the paths of an engine that clients may ask."""
    facts = table("served_paths")
    row = facts[engine_kind]
    return ServedPaths(tuple(row["inference"]), (*row["stateful"], *facts["stored"]))


def first_parts() -> frozenset[str]:
    """Return the first parts of all engines' paths: a path cannot name a model called so."""
    kinds = [kind for kind in table("served_paths") if kind != "stored"]
    return frozenset(path.split("/")[1] for kind in kinds for path in served_paths(kind).inference) | {"healthz"}
