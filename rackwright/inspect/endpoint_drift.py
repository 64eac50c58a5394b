"""Differences of one endpoint from its last deploy, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackwright.concerns.endpoint.formats import foreign
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.why_switch import edited_by_hand


def damaged_files(own: SeenEndpoint, whole: Mapping[str, bool]) -> Iterator[str]:
    """Releases that are pointed to, whose files are not as they were written. `whole`: those there, by hash."""
    for hash_ in dict.fromkeys(filter(None, (own.current, own.proven))):
        if not whole.get(hash_):
            yield f"files of release {hash_} were {'changed' if hash_ in whole else 'removed'}"


def gone(gpus: Collection[str]) -> str:
    """GPUs that the release was made for, and that the host has no more."""
    return f"gone from the host: {', '.join(sorted(gpus))}"


def out_of_place(own: SeenEndpoint, rests: bool = False) -> Iterator[str]:
    """Compare what runs with what was proven last. rests: the host is drained, so that nothing has to."""
    if why := foreign(own.format):
        yield why
        return
    if own.current != own.proven:
        proven = f"release {own.proven} is the proven one" if own.proven else "no release was ever proven"
        yield f"`current` points to {own.current or 'nothing'}, and {proven}"
    if own.unit is None:
        yield "its unit is gone"
    elif not own.unit_same:
        yield "its unit is not its release's"
    elif own.needs_reload:
        yield "its unit was written and systemd has not read it again"
    if not own.enabled:
        yield "it does not start at boot any more"
    if not (rests and own.active == "inactive"):
        yield from _running(own)


def _running(own: SeenEndpoint) -> Iterator[str]:
    if own.loading:
        return
    if own.running_hash is None or own.active != "active":
        yield f"it does not run: its unit is {own.active} ({own.sub}, {own.result})"
    elif own.running_hash != own.current:
        yield f"release {own.running_hash} runs, and `current` points to {own.current}"
    elif own.health != 200:
        yield f"it runs, but /health answers {own.health or 'nothing'}"
    elif edited := edited_by_hand(own):
        yield edited
