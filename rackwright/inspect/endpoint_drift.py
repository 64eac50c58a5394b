"""Differences of one endpoint from its last deploy, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackwright.concerns.endpoint.formats import foreign
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.why_switch import edited_by_hand


def damaged_files(endpoint: SeenEndpoint, whole: Mapping[str, bool]) -> Iterator[str]:
    """Releases that are pointed to, whose files are not as they were written. `whole`: those there, by hash."""
    for hash_ in dict.fromkeys(filter(None, (endpoint.current, endpoint.proven))):
        if not whole.get(hash_):
            yield f"files of release {hash_} were {'changed' if hash_ in whole else 'removed'}"


def gone(gpus: Collection[str]) -> str:
    """GPUs that the release was made for, and that the host has no more."""
    return f"gone from the host: {', '.join(sorted(gpus))}"


def out_of_place(endpoint: SeenEndpoint, rests: bool = False) -> Iterator[str]:
    """Compare what runs with what was proven last. rests: the host is drained, so that nothing has to."""
    if why := foreign(endpoint.format):
        yield why
        return
    if endpoint.current != endpoint.proven:
        proven = f"release {endpoint.proven} is the proven one" if endpoint.proven else "no release was ever proven"
        yield f"`current` points to {endpoint.current or 'nothing'}, and {proven}"
    if endpoint.unit is None:
        yield "its unit is gone"
    elif not endpoint.unit_same:
        yield "its unit is not its release's"
    elif endpoint.needs_reload:
        yield "its unit was written and systemd has not read it again"
    if not endpoint.enabled:
        yield "it no longer starts at boot"
    if not (rests and endpoint.active == "inactive"):
        yield from _running(endpoint)


def _running(endpoint: SeenEndpoint) -> Iterator[str]:
    if endpoint.loading:
        return
    if endpoint.running_hash is None or endpoint.active != "active":
        yield f"it does not run: its unit is {endpoint.active} ({endpoint.sub}, {endpoint.result})"
    elif endpoint.running_hash != endpoint.current:
        yield f"release {endpoint.running_hash} runs, and `current` points to {endpoint.current}"
    elif endpoint.health != 200:
        yield f"it runs, but /health answers {endpoint.health or 'nothing'}"
    elif edited := edited_by_hand(endpoint):
        yield edited
