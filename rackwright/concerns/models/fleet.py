"""Models among the hosts of a fleet: the chains in which they are handed on, and who may have what all lack. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from rackwright.concerns.models.concern import sources_of
from rackwright.concerns.models.neighbours import named
from rackwright.plan.hand_on import ChainPart, Sharer, handovers
from rackwright.settings.host_settings import HostSettings

Fleet = Mapping[str, Mapping[str, Sharer]]
"""Each host's part, by its name, in the inventory's order, and by the model's."""


def chains_of(fleet: Fleet, seed_of: Callable[[str], str | None]) -> dict[str, dict[str, ChainPart]]:
    """Return each host's part by its name and the model's. seed_of: gives the seed that a host's settings name."""
    chains = {model: handovers(those, _seed(those, seed_of)) for model, those in _by_model(fleet).items()}
    return {name: {model: chain[name] for model, chain in chains.items() if name in chain} for name in fleet}


def _seed(those: Sequence[Sharer], seed_of: Callable[[str], str | None]) -> str | None:
    """Return the seed that the first host names which lacks the model."""
    first = next((one.host for one in those if one.lacks), None)
    return seed_of(first) if first else None


def without_source(fleet: Fleet) -> dict[str, str]:
    """Return the models that no host has, each with the first host that lacks it."""
    found = _by_model(fleet).items()
    return {model: those[0].host for model, those in found if not any(one.has for one in those)}


def _by_model(fleet: Fleet) -> dict[str, list[Sharer]]:
    found: dict[str, list[Sharer]] = {}
    for those in fleet.values():
        for model, one in those.items():
            found.setdefault(model, []).append(one)
    return found


def asked_for(settings: HostSettings) -> frozenset[str]:
    """Return the models that a host may hand on to runs that it takes no part in, by its settings alone."""
    hand_on = settings.downloads.hand_on
    if hand_on is None or not hand_on.neighbours:
        return frozenset()
    return frozenset(named(source, source.commit) for source in sources_of(settings) if source.commit)


def nearest(order: Sequence[str], host: str) -> list[str]:
    """Return the other hosts of an inventory, those that stand next to a host first."""
    places = {name: number for number, name in enumerate(order)}
    others = (name for name in order if name != host)
    return sorted(others, key=lambda name: abs(places[name] - places[host]))


def label_of(model: str) -> str:
    """Return a model's name among hosts as text for people."""
    repository, commit, *_ = json.loads(model)
    return f"{repository} at {commit[:12]}"
